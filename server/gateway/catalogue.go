package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// DemoModel is the built-in model that needs no key.
const DemoModel = "demo"

// offer is a model under the name callers use.
type offer struct {
	name     string
	owner    string // for the list: "cairn" or the protocol's name
	upstream Upstream
	real     string // the upstream's own name for it
}

// catalogue keeps the order of the file; demo comes first.
type catalogue []offer

func newCatalogue(models []Model, pause time.Duration) (catalogue, error) {
	list := catalogue{{name: DemoModel, owner: "cairn", upstream: demo{pause: pause}, real: DemoModel}}
	for _, m := range models {
		if _, twice := list.find(m.Name); twice {
			return nil, fmt.Errorf("gateway: model name %q is taken", m.Name)
		}
		list = append(list, offer{name: m.Name, owner: m.Protocol, upstream: newOpenAI(m), real: m.Upstream})
	}
	return list, nil
}

func (c catalogue) find(name string) (offer, bool) {
	for _, o := range c {
		if o.name == name {
			return o, true
		}
	}
	return offer{}, false
}

func (c catalogue) names() string {
	var names []string
	for _, o := range c {
		names = append(names, o.name)
	}
	return strings.Join(names, ", ")
}

// Models are the names that callers may use, in the order of the list.
func (g *Gateway) Models() []string {
	var names []string
	for _, o := range g.catalogue {
		names = append(names, o.name)
	}
	return names
}

func (c catalogue) pick(name string) (offer, *problem) {
	o, ok := c.find(name)
	if !ok {
		return o, &problem{
			status: http.StatusNotFound, code: codeUnknownModel, kind: "invalid_request_error", param: "model",
			message: fmt.Sprintf("There is no model %q. There are: %s.", clip(name, 100), c.names()),
		}
	}
	return o, nil
}

func (c catalogue) close() {
	for _, o := range c {
		if closer, ok := o.upstream.(interface{ closeIdle() }); ok {
			closer.closeIdle()
		}
	}
}

type listedModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // the format demands it; 0, since a configured model has no date
	OwnedBy string `json:"owned_by"`
}

// list shows names only: addresses, provider names and keys are the operator's.
func (g *Gateway) list(c *call, w http.ResponseWriter, r *http.Request) *problem {
	run, p := g.authorize(r)
	if p != nil {
		return p
	}
	c.run = run
	models := make([]listedModel, 0, len(g.catalogue))
	for _, o := range g.catalogue {
		models = append(models, listedModel{ID: o.name, Object: "model", OwnedBy: o.owner})
	}
	return c.reply.object(map[string]any{"object": "list", "data": models})
}
