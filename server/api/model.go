package api

import "context"

// Model is one that agents may use.
type Model struct {
	Name string `json:"name"`
}

// Models are all of them.
type Models struct {
	Items []Model `json:"items" nullable:"false" doc:"demo, which needs no key, comes first."`
}

func (a *API) modelRoutes() {
	register(a, route("GET /models", "model-list", "Models that agents may use"), a.models)
}

func (a *API) models(context.Context, *struct{}) (*answer[Models], error) {
	out := Models{Items: []Model{}}
	for _, name := range a.Models {
		out.Items = append(out.Items, Model{Name: name})
	}
	return reply(out), nil
}
