package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cairn/db"
	rules "cairn/domain/check"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

// localRun is one 'cairn run':
//
//	posting --turn started--> following --turn ended--> answered
//	                             \--Ctrl-C--> cancelling --turn ended--> answered
type localRun struct {
	*globals
	flags  *runFlags
	in     *installation
	db     *db.DB
	log    *slog.Logger
	source run.Source
	tools  []run.Mount
	out    io.Writer
}

// cancelTime bounds how long a cancelled run may take to end.
const cancelTime = 20 * time.Second

func (r *localRun) execute(ctx context.Context, prompt string) error {
	l, err := ensureLocal(ctx, r.db, r.flags.model)
	if err != nil {
		return interrupted(ctx, err)
	}
	queue := conversation.LocalQueue + newID().String()
	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	wait, err := r.runtime(working, queue)
	if err != nil {
		return err
	}
	// Ctrl-C in the middle of it would leave a run in the queue; so it is posted, and then cancelled by an event.
	posting, stopPosting := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stopPosting()
	posted, conversationID, err := r.post(posting, l, queue, prompt)
	if err == nil {
		r.say("run %s with model %s", posted.Run, r.flags.model)
		err = r.follow(ctx, l, conversationID, posted.Run)
	}
	stopWorking()
	return errors.Join(err, wait())
}

// follow prints the run's events until it ends; when ctx ends first it asks for cancellation.
func (r *localRun) follow(ctx context.Context, l local, conversationID, runID event.ID) error {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	cancelled := context.AfterFunc(ctx, func() {
		r.say("cancelling")
		_, err := r.db.Execute(following, conversation.CancelRun{Conversation: conversationID, Space: l.space, Run: runID}, event.Meta{Actor: l.actor(), At: db.Now()})
		if err != nil {
			r.say("cancel: %v", err)
		}
		time.AfterFunc(cancelTime, stop)
	})
	defer cancelled()
	out := &outcome{Run: runID, Conversation: conversationID}
	ended := errors.New("ended")
	err := r.db.Tail(following, db.Cursor{}, db.Scope{Topic: conversationID}, func(records []event.Record) error {
		for i := range records {
			if err := r.observe(following, out, &records[i]); err != nil {
				return err
			}
		}
		if out.Outcome != "" {
			return ended
		}
		return nil
	})
	if !errors.Is(err, ended) {
		return errors.Join(err, withCode(exitCancelled, errors.New("the run did not end in time after it was cancelled; its events tell how far it came")))
	}
	return r.answer(out)
}

// outcome is what --output json prints.
type outcome struct {
	Run          event.ID `json:"run_id"`
	Conversation event.ID `json:"conversation_id"`
	Outcome      string   `json:"outcome"` // succeeded, failed or cancelled
	Answer       *string  `json:"answer"`
	Code         *string  `json:"code"` // of a failed run
	Message      *string  `json:"message"`
	Upper        *string  `json:"upper"`    // where the changes lie, on this host
	Position     int64    `json:"position"` // of the last event
}

// observe takes what the outcome needs and prints what the format wants.
func (r *localRun) observe(ctx context.Context, out *outcome, record *event.Record) error {
	e, err := r.db.Decode(ctx, record)
	if err != nil {
		return err
	}
	out.Position = record.Position
	switch e := e.(type) {
	case run.SandboxPrepared:
		out.Upper = &e.Upper
	case run.Succeeded:
		text := e.Answer.Text()
		out.Answer = &text
	case run.Failed:
		text := e.Message.Text()
		out.Code, out.Message = &e.Code, &text
	case conversation.TurnEnded:
		out.Outcome = string(e.Outcome)
	}
	if r.output == "jsonl" {
		line, err := r.db.Show(ctx, record)
		if err != nil {
			return err
		}
		return writeLine(r.out, line, true)
	}
	r.progress(e)
	return nil
}

// progress says on standard error what happens.
func (r *localRun) progress(e event.Event) {
	switch e := e.(type) {
	case run.SandboxPrepared:
		r.say("sandbox prepared (%s, grade %s, %v)", e.Backend, gradeOf(e), time.Duration(e.DurationUS)*time.Microsecond)
	case run.ModelAnswered:
		for _, call := range e.Calls {
			r.say("%s %s", call.Tool, shorten(call.Arguments.Text()))
		}
	case run.ToolReturned:
		code := ""
		if e.ExitCode != nil {
			code = fmt.Sprintf(", exit code %d", *e.ExitCode)
		}
		r.say("  %s%s (%v)", e.Outcome, code, (time.Duration(e.DurationUS) * time.Microsecond).Round(time.Millisecond))
	}
}

func gradeOf(e run.SandboxPrepared) string {
	if e.Grade == nil {
		return "unknown"
	}
	return *e.Grade
}

func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 100 {
		return string(runes[:99]) + "…"
	}
	return text
}

// answer prints the end and turns it into an exit code.
func (r *localRun) answer(out *outcome) error {
	var err error
	switch {
	case r.output == "json":
		err = json.NewEncoder(r.out).Encode(out)
	case r.output == "text" && out.Answer != nil:
		_, err = fmt.Fprintln(r.out, strings.TrimRight(*out.Answer, "\n"))
	}
	if err != nil {
		return err
	}
	if out.Upper != nil && r.source.Kind == run.SourceFolder {
		r.say("nothing was applied to %s; what the run changed lies in %s", r.source.Path, *out.Upper)
	}
	switch run.Status(out.Outcome) {
	case run.StatusSucceeded:
		return nil
	case run.StatusCancelled:
		return withCode(exitCancelled, errors.New("the run was cancelled"))
	}
	code := exitRunFailed
	if *out.Code == run.CodeSandboxRefused || *out.Code == run.CodeWorkspaceLost {
		code = exitUnavailable
	}
	message := *out.Message
	if message == "" && *out.Code == run.CodeWorkerLost {
		message = "its process was killed, or could not write to the log for too long; what it did until then is in the log"
	}
	return withCode(code, fmt.Errorf("the run failed (%s): %s", *out.Code, message))
}

// maxPrompt is the largest message, in bytes.
const maxPrompt = db.MaxSealed

// readPrompt takes the argument, or standard input for a lone dash.
func readPrompt(cmd *cobra.Command, argument string) (string, error) {
	if argument == "-" {
		text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxPrompt+1))
		if err != nil {
			return "", usage(fmt.Errorf("prompt on standard input: %w", err))
		}
		argument = string(text)
	}
	if strings.TrimSpace(argument) == "" {
		return "", usage(errors.New("the prompt is empty: say what the agent is to do"))
	}
	// Before anything is written: a message that is refused later would leave its conversation behind.
	return argument, rules.Text("prompt", argument, 1, maxPrompt)
}

// quietLogger keeps the rooms' own log lines off a terminal unless something is wrong.
func quietLogger(g *globals) *slog.Logger {
	level := slog.LevelWarn
	if g.quiet {
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
