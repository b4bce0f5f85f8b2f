// Package tool holds what an agent can do: each tool is one file with its arguments and its act, and one with
// the description that the model reads. All of them act through the instance of a sandbox, none on the host.
//
//	arguments (text of the model) --Parse--> Act --call--> Result (text for the model)
//	                               \--> error: the model is told what to mend, nothing has happened
//
// It may import the standard library, domain, sandbox and worker/agent.
package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	domain "cairn/domain/agent"
	"cairn/domain/run"
	"cairn/sandbox"
	"cairn/worker/agent"
)

// Limits bound one call.
type Limits struct {
	Seconds     int64 // wall time
	OutputBytes int64 // of the text that the model gets to see
}

// Result is what a call came to. Text is valid UTF-8 without NUL.
type Result struct {
	Outcome   string // run.OutcomeOK, run.OutcomeError or run.OutcomeTimeout
	ExitCode  *int   // nil: the tool has none, or it is unknown
	Text      string
	Bytes     int64 // of the output before truncation
	Truncated bool
	Hits      []sandbox.Hit // limits that were reached meanwhile
}

// Act does one call. An error means that the call did not come to an end: the context's, sandbox.ErrHandLost
// or a breakdown; Result then holds what was seen until then. What the model can mend is a Result.
type Act func(ctx context.Context, box *sandbox.Instance, limits Limits) (Result, error)

type definition struct {
	agent.Tool
	parse func(arguments string) (Act, error)
}

// all is in the order in which tools are listed everywhere.
var all = []definition{
	define(domain.Shell, shellText, shellParameters, func(a *shellArguments) Act { return a.act }),
	define(domain.Read, readText, readParameters, func(a *readArguments) Act { return a.act }),
	define(domain.Write, writeText, writeParameters, func(a *writeArguments) Act { return a.act }),
	define(domain.Edit, editText, editParameters, func(a *editArguments) Act { return a.act }),
	define(domain.Glob, globText, globParameters, func(a *globArguments) Act { return a.act }),
	define(domain.Grep, grepText, grepParameters, func(a *grepArguments) Act { return a.act }),
}

// arguments of a tool check themselves after decoding.
type arguments[T any] interface {
	*T
	check() error
}

func define[T any, P arguments[T]](name, description, parameters string, act func(P) Act) definition {
	return definition{
		Tool: agent.Tool{Name: name, Description: strings.TrimSpace(description), Parameters: json.RawMessage(parameters)},
		parse: func(text string) (Act, error) {
			a := P(new(T))
			if err := decode(text, a); err != nil {
				return nil, fmt.Errorf("error: the arguments of %s are not as its parameters say: %w. Nothing was done; call it again", name, err)
			}
			if err := a.check(); err != nil {
				return nil, fmt.Errorf("error: %s: %w. Nothing was done; call it again", name, err)
			}
			return act(a), nil
		},
	}
}

// Offered lists all tools.
func Offered() []agent.Tool {
	tools := make([]agent.Tool, len(all))
	for i, d := range all {
		tools[i] = d.Tool
	}
	return tools
}

// Parse reads the arguments of a call. The error is a text for the model.
func Parse(name, arguments string) (Act, error) {
	i := slices.IndexFunc(all, func(d definition) bool { return d.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("error: there is no tool %.80q", name)
	}
	return all[i].parse(arguments)
}

// decode is strict: a misspelled argument that is ignored would be a silent fallback.
func decode(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return errors.New("text follows the JSON object")
		}
		if !bytes.HasPrefix(bytes.TrimSpace([]byte(text)), []byte("{")) {
			return errors.New("not a JSON object")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Errorf("%s is a %s, want %s", wrong.Field, wrong.Value, wrong.Type)
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

func require(field, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty or missing", field)
	}
	return nil
}

// file runs one file tool under the time limit and turns what the model can mend into a result.
func file(ctx context.Context, limits Limits, act func(context.Context) (Result, error)) (Result, error) {
	bounded, cancel := context.WithTimeout(ctx, time.Duration(limits.Seconds)*time.Second)
	defer cancel()
	result, err := act(bounded)
	if fault, ok := errors.AsType[*sandbox.ToolError](err); ok {
		return failed(fmt.Sprintf("error: %s: %s", fault.Code, fault.Message)), nil
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.Is(err, sandbox.ErrHandLost) {
		r := failed("error: timed out; all processes of the sandbox were stopped. Ask for less at once")
		r.Outcome = run.OutcomeTimeout
		return r, nil
	}
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

func done(text string) Result {
	text = clean(text)
	return Result{Outcome: run.OutcomeOK, Text: text, Bytes: int64(len(text))}
}

func failed(text string) Result {
	r := done(text)
	r.Outcome = run.OutcomeError
	return r
}
