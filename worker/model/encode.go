package model

import (
	"bytes"
	"encoding/json"
)

type wireRequest struct {
	Model         string        `json:"model"`
	Messages      []wireMessage `json:"messages"`
	Tools         []wireTool    `json:"tools,omitempty"`
	MaxTokens     int           `json:"max_tokens,omitempty"`
	Stream        bool          `json:"stream"`
	StreamOptions wireOptions   `json:"stream_options"`
}

type wireOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"` // null beside calls without text: some providers refuse ""
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wireTool struct {
	Type     string       `json:"type"`
	Function wireToolSpec `json:"function"`
}

type wireToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func encode(r Request) ([]byte, error) {
	out := wireRequest{
		Model: r.Model, Messages: make([]wireMessage, 0, len(r.Messages)), MaxTokens: r.MaxTokens,
		Stream: true, StreamOptions: wireOptions{IncludeUsage: true},
	}
	for _, m := range r.Messages {
		out.Messages = append(out.Messages, encodeMessage(m))
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, wireTool{Type: "function", Function: wireToolSpec(t)})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the model is to read code as it was written
	if err := e.Encode(out); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func encodeMessage(m Message) wireMessage {
	w := wireMessage{Role: m.Role, ToolCallID: m.CallID}
	if m.Content != "" || len(m.Calls) == 0 {
		w.Content = &m.Content
	}
	for _, c := range m.Calls {
		w.ToolCalls = append(w.ToolCalls, wireCall{ID: c.ID, Type: "function", Function: wireFunction{Name: c.Name, Arguments: c.Arguments}})
	}
	return w
}
