package gateway

import (
	"encoding/json"
	"errors"
)

// Chunk is one wire object of an answer, with what the gateway reads in it.
type Chunk struct {
	Raw       json.RawMessage // as it came, unknown fields included
	usage     usage
	usageOnly bool         // the last chunk of include_usage: no choices, only counts
	content   bool         // carries a piece of the answer
	finished  map[int]bool // choices it mentions; true where it ends one
	failure   *upstreamFault
}

// usage is what the upstream counted. Nil is unknown.
type usage struct{ input, output *int64 }

// upstreamFault is an error object, as providers send it with a status or
// inside a stream. Code is a string with some and a number with others.
type upstreamFault struct {
	Message string          `json:"message"`
	Code    json.RawMessage `json:"code"`
	Param   string          `json:"param"`
}

func (f upstreamFault) code() string {
	var text string
	if json.Unmarshal(f.Code, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(f.Code, &number) == nil {
		return number.String()
	}
	return ""
}

type wireChoice struct {
	Index        int                        `json:"index"`
	Delta        map[string]json.RawMessage `json:"delta"`
	FinishReason *string                    `json:"finish_reason"`
}

// newChunk reads what it needs and leaves the rest alone. Counts it cannot
// read are unknown; anything else that is not as the format says is an error.
func newChunk(raw json.RawMessage) (Chunk, error) {
	c := Chunk{Raw: raw, finished: map[int]bool{}}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return c, errors.New("it is not a JSON object")
	}
	if isSet(object["error"]) {
		c.failure = readFault(object["error"])
		return c, nil
	}
	var choices []wireChoice
	if err := json.Unmarshal(orEmptyList(object["choices"]), &choices); err != nil {
		return c, errors.New("its choices are not as the format says")
	}
	for _, choice := range choices {
		c.finished[choice.Index] = c.finished[choice.Index] || choice.FinishReason != nil
		c.content = c.content || hasContent(choice.Delta)
	}
	c.usage = readUsage(object["usage"])
	c.usageOnly = len(choices) == 0 && isSet(object["usage"])
	return c, nil
}

// hasContent is false for the first chunk of most providers, which carries the
// role and an empty text.
func hasContent(delta map[string]json.RawMessage) bool {
	for name, value := range delta {
		if name != "role" && isSet(value) && string(value) != `""` {
			return true
		}
	}
	return false
}

func readUsage(raw json.RawMessage) usage {
	var counts struct {
		Input  json.RawMessage `json:"prompt_tokens"`
		Output json.RawMessage `json:"completion_tokens"`
	}
	if !isSet(raw) || json.Unmarshal(raw, &counts) != nil {
		return usage{}
	}
	return usage{input: readCount(counts.Input), output: readCount(counts.Output)}
}

func readCount(raw json.RawMessage) *int64 {
	var n int64
	if !isSet(raw) || json.Unmarshal(raw, &n) != nil || n < 0 {
		return nil
	}
	return &n
}

// readFault takes the usual object, and the plain string that some servers send.
func readFault(raw json.RawMessage) *upstreamFault {
	var f upstreamFault
	if json.Unmarshal(raw, &f) != nil {
		f = upstreamFault{}
		if json.Unmarshal(raw, &f.Message) != nil {
			f.Message = ""
		}
	}
	return &f
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func orEmptyList(raw json.RawMessage) json.RawMessage {
	if !isSet(raw) {
		return json.RawMessage("[]")
	}
	return raw
}
