package bench

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"cairn/db"
	"cairn/db/embedded"
	"cairn/domain/account"
	"cairn/domain/agent"
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/space"
)

// bench is a migrated database with an account, a space and an agent.
type bench struct {
	options Options
	cluster *embedded.Cluster
	url     string // as cairn_server
	owner   *pgx.Conn
	keys    *db.Keyring
	blobs   *db.BlobStore
	scratch string

	account, space, agent event.ID
}

// connections is the size of every pool: more than writers, so that none waits for one.
const connections = 40

func prepare(ctx context.Context, o Options, cluster *embedded.Cluster) (*bench, error) {
	b := &bench{options: o, cluster: cluster, url: cluster.URL("postgres", "cairn_server"), account: newID(), space: newID(), agent: newID()}
	owner := cluster.URL("postgres", cluster.Superuser())
	if _, err := db.Migrate(ctx, owner); err != nil {
		return nil, err
	}
	var err error
	if b.owner, err = pgx.Connect(ctx, owner); err != nil {
		return nil, err
	}
	if b.scratch, err = os.MkdirTemp("", "cairn-bench-"); err != nil {
		return nil, err
	}
	if b.keys, err = db.LoadKeyring(b.scratch+"/keys", true); err != nil {
		return nil, err
	}
	if b.blobs, err = db.OpenBlobStore(b.scratch + "/blobs"); err != nil {
		return nil, err
	}
	return b, b.settle(ctx)
}

func (b *bench) close() {
	b.owner.Close(context.Background())
	os.RemoveAll(b.scratch)
}

func newID() event.ID { return event.ID(uuid.Must(uuid.NewV7())) }

func meta(actor string) event.Meta { return event.Meta{Actor: actor, At: db.Now(), CommandID: newID()} }

// open opens the database as a server process does.
func (b *bench) open(ctx context.Context, change func(*db.Options)) (*db.DB, error) {
	o := db.Options{URL: b.url, Name: "bench", Keys: b.keys, Blobs: b.blobs, MaxConns: connections}
	if change != nil {
		change(&o)
	}
	return db.Open(ctx, o)
}

func (b *bench) settle(ctx context.Context) error {
	d, err := b.open(ctx, nil)
	if err != nil {
		return err
	}
	defer d.Close()
	email, slug := b.account.String()+"@bench.invalid", "s-"+b.space.String()
	for _, step := range []struct {
		actor   string
		command event.Command
	}{
		{event.System, account.Open{Account: b.account, AccountKind: account.Person, Email: email, DisplayName: "Bench", EmailMAC: b.keys.ClaimMAC("email", email)}},
		{event.System, space.Create{Space: b.space, Personal: true, DisplayName: "Bench", Slug: slug, SlugMAC: b.keys.ClaimMAC("slug", slug), Owner: b.account}},
		{event.AccountActor(b.account), agent.Revise{Agent: b.agent, Space: b.space, DisplayName: "Bench", Model: "demo", Instructions: "Do it.", Tools: agent.Tools()}},
	} {
		if _, err := d.Execute(ctx, step.command, meta(step.actor)); err != nil {
			return fmt.Errorf("%s: %w", step.command.Name(), err)
		}
	}
	return nil
}

// job is a claimed run with its conversation, to append to.
type job struct {
	conversation event.Ref
	run          event.Ref
	version      int64 // of the run
	step         int64
	phase        int
}

const workerName = "bench"

// jobs makes n conversations, each with a run that a worker has claimed.
func (b *bench) jobs(ctx context.Context, d *db.DB, n int) ([]*job, error) {
	all := make([]*job, n)
	for i := range all {
		id, r := newID(), newID()
		actor := event.AccountActor(b.account)
		for _, step := range []struct {
			actor   string
			command event.Command
		}{
			{actor, conversation.Open{Conversation: id, Space: b.space, Agent: b.agent, Title: "Bench", Source: run.Source{Kind: run.SourceNone}, Queue: "idle"}},
			{actor, conversation.PostMessage{Conversation: id, Space: b.space, Agent: b.agent, Message: newID(), Turn: newID(), Run: r, Text: "Go."}},
			{event.WorkerActor(workerName), run.Start{Target: run.Target{Run: r, Space: b.space, Conversation: id}, Worker: workerName, Host: "here"}},
		} {
			if _, err := d.Execute(ctx, step.command, meta(step.actor)); err != nil {
				return nil, fmt.Errorf("%s: %w", step.command.Name(), err)
			}
		}
		all[i] = &job{conversation: conversation.Stream(id, b.space), run: run.Stream(r, b.space, id), version: 2}
	}
	return all, nil
}

var (
	words  = strings.Repeat("some words of an answer ", 10)
	output = strings.Repeat("a line of what the tool printed\n", 16)
)

// next is the run's next event: an answer with one call, the call, its return, and so on. All have
// projections, two of three have sealed content.
func (j *job) next() event.Event {
	call := fmt.Sprintf("c%d", j.step)
	switch j.phase = (j.phase + 1) % 3; j.phase {
	case 1:
		j.step++
		tokens := int64(100)
		return run.ModelAnswered{
			Epoch: 1, Step: j.step, Model: "demo", Text: event.Seal(words), Finish: "tool_calls", DurationUS: 1000,
			Calls: []run.AskedCall{{ID: fmt.Sprintf("c%d", j.step), Tool: "shell", Arguments: event.Seal(`{"command":"true"}`)}},
			Usage: run.Usage{InputTokens: &tokens, OutputTokens: &tokens},
		}
	case 2:
		return run.ToolCalled{Epoch: 1, Step: j.step, Call: call, Tool: "shell"}
	}
	code := 0
	return run.ToolReturned{Epoch: 1, Call: call, Tool: "shell", Outcome: run.OutcomeOK, ExitCode: &code, Output: event.Seal(output), OutputBytes: int64(len(output)), DurationUS: 1000}
}

// append appends an event to the run, as the worker that holds it.
func (j *job) append(ctx context.Context, d *db.DB, e event.Event) ([]event.Record, error) {
	records, err := d.Append(ctx, meta(event.WorkerActor(workerName)), db.Expected{Change: event.Change{Stream: j.run, Events: []event.Event{e}}, Version: j.version})
	j.version += int64(len(records))
	return records, err
}

// drain gives positions to everything that waits, outside of any measurement.
func (b *bench) drain(ctx context.Context) error {
	for n := 1; n > 0; {
		if err := b.owner.QueryRow(ctx, "SELECT log.log_sequence(1000, 0)").Scan(&n); err != nil {
			return err
		}
	}
	return nil
}
