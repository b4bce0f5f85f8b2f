package worker_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

func TestMessagesOfTwoProcessesAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := b.team.Converse(t, b.d)
	b.work("one")
	b.work("two")
	posters := []*spawned{
		b.spawn(childPlan{Name: "left", Post: 25, Team: b.team, Conversation: id}),
		b.spawn(childPlan{Name: "right", Post: 25, Team: b.team, Conversation: id}),
	}
	for _, p := range posters {
		p.ended(30 * time.Second)
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("a poster ended with %d", code)
		}
	}
	b.until(60*time.Second, func() bool {
		value, _, err := b.d.Load(t.Context(), conversation.Stream(id, b.team.Space))
		if err != nil {
			t.Fatal(err)
		}
		state := value.(conversation.State)
		return state.Started == 50 && state.Idle()
	}, "50 turns")

	records, err := b.d.Stream(t.Context(), id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var posted []conversation.MessagePosted
	next := map[string]int{}
	started, active := 0, event.ID{}
	for i := range records {
		e, err := b.d.Decode(t.Context(), &records[i])
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case conversation.MessagePosted:
			poster, number, _ := strings.Cut(e.Text.Text(), " ")
			if number != fmt.Sprint(next[poster]) {
				t.Fatalf("%s posted %s, want %d", poster, number, next[poster])
			}
			next[poster]++
			posted = append(posted, e)
		case conversation.TurnStarted:
			if !active.IsZero() || e.Turn != posted[started].Turn {
				t.Fatalf("turn %d started while %s is active, or out of order", e.Number, active)
			}
			started, active = started+1, e.Turn
		case conversation.TurnEnded:
			if e.Turn != active || e.Outcome != run.StatusSucceeded {
				t.Fatalf("turn %s ended as %s while %s is active", e.Turn, e.Outcome, active)
			}
			active = event.ID{}
		}
	}
	if len(posted) != 50 || started != 50 {
		t.Fatalf("%d messages, %d turns", len(posted), started)
	}
}

func TestManyConversationsAtOnce(t *testing.T) {
	b := newBench(t) // not in parallel with others: it is measured
	const conversations = 200
	ids := make([]event.ID, conversations)
	for i := range ids {
		ids[i] = b.team.Converse(t, b.d)
	}
	b.work("one")
	b.work("two")
	begin := time.Now()
	targets := make([]run.Target, conversations)
	var posting sync.WaitGroup
	gate := make(chan struct{}, 16)
	for i, id := range ids {
		posting.Go(func() {
			gate <- struct{}{}
			targets[i] = b.post(b.team, id, "hello")
			<-gate
		})
	}
	posting.Wait()
	posted := time.Since(begin)
	b.until(5*time.Minute, func() bool {
		var open int
		row := b.base.Conn(t, "").QueryRow(context.Background(), "SELECT count(*) FROM view.run WHERE state <> 'succeeded'")
		if err := row.Scan(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	}, "200 runs")
	took := time.Since(begin)
	t.Logf("%d conversations: posted in %s, all answered after %s (%.1f runs/s)", conversations, posted, took, conversations/took.Seconds())
	for _, target := range targets {
		if state := b.state(target); state.Status != run.StatusSucceeded || state.Epoch != 1 {
			t.Fatalf("run %s is %s under epoch %d", target.Run, state.Status, state.Epoch)
		}
	}
}
