package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cairn/db/bench"
	"cairn/domain/conversation"
	"cairn/domain/event"
)

// frames compares the way of an event from its commit to a viewer's socket with the append itself.
func (s *serverBench) frames(ctx context.Context) ([]bench.Result, error) {
	in, err := s.open(ctx, benchIdleName)
	if err != nil {
		return nil, err
	}
	h, err := s.hold(ctx, in)
	if err != nil {
		return nil, err
	}
	v, err := s.watch(ctx, in)
	if err != nil {
		return nil, err
	}
	defer v.conn.CloseNow()
	if err := v.await(ctx, "live "); err != nil {
		return nil, err
	}
	var lags, appends []float64
	var step int64
	for range s.rounds {
		committed := map[int64]time.Time{}
		var took []float64
		tick := time.NewTicker(time.Second / liveRate)
		for end := time.Now().Add(s.length); time.Now().Before(end); <-tick.C {
			step++
			began := time.Now()
			if err := s.append(ctx, h, answered(step)); err != nil {
				return nil, err
			}
			committed[h.version] = time.Now()
			took = append(took, milliseconds(committed[h.version].Sub(began)))
		}
		tick.Stop()
		lag, err := v.lags(ctx, committed)
		if err != nil {
			return nil, err
		}
		lags, appends = append(lags, middle(lag)), append(appends, middle(took))
	}
	return []bench.Result{bench.AtMost(4, bench.Compare(fmt.Sprintf("commit to frame at %d events/s, p50", liveRate), "ms", "append, p50", lags, appends))}, nil
}

// lags waits for the frames of what was committed.
func (v *benchViewer) lags(ctx context.Context, committed map[int64]time.Time) (lags []float64, err error) {
	for version, at := range committed {
		for {
			v.mu.Lock()
			came, there := v.seen[version]
			v.mu.Unlock()
			if there {
				lags = append(lags, max(0, milliseconds(came.Sub(at))))
				break
			}
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(time.Millisecond):
			}
		}
	}
	return lags, nil
}

// firstTool measures from a message to what its first tool returned, on a viewer's screen. The floor is the answer
// to the message itself.
func (s *serverBench) firstTool(ctx context.Context) ([]bench.Result, error) {
	in, err := s.open(ctx, conversation.DefaultQueue)
	if err != nil {
		return nil, err
	}
	v, err := s.watch(ctx, in)
	if err != nil {
		return nil, err
	}
	defer v.conn.CloseNow()
	post := func() (answer, output float64, err error) {
		began := time.Now()
		if err := s.call(ctx, "POST", "/conversations/"+in.String()+"/messages", map[string]string{"text": "$ true"}, nil); err != nil {
			return 0, 0, err
		}
		answer = milliseconds(time.Since(began))
		if err := v.await(ctx, "event run.tool_returned"); err != nil {
			return 0, 0, err
		}
		output = milliseconds(time.Since(began))
		return answer, output, v.await(ctx, "event conversation.turn_ended")
	}
	if _, _, err := post(); err != nil { // warms
		return nil, err
	}
	var values, floors []float64
	for range s.rounds {
		var answers, outputs []float64
		for range warmPosts {
			answer, output, err := post()
			if err != nil {
				return nil, err
			}
			answers, outputs = append(answers, answer), append(outputs, output)
		}
		values, floors = append(values, middle(outputs)), append(floors, middle(answers))
	}
	return []bench.Result{bench.Compare("message to the output of its first tool, p50", "ms", "POST answered, p50", values, floors)}, nil
}

// pages measures lists and pages of what is long.
func (s *serverBench) pages(ctx context.Context) ([]bench.Result, error) {
	if err := s.seedConversations(ctx); err != nil {
		return nil, err
	}
	long, in, err := s.seedEvents(ctx)
	if err != nil {
		return nil, err
	}
	space := "/spaces/" + s.l.space.String()
	lists := []struct{ name, path string }{
		{"list of conversations, 100,000 in the space, p95", space + "/conversations?limit=50"},
		{"page of events of a run with 100,000, p95", fmt.Sprintf("/runs/%s/events?limit=100&after=%d", long, manyRows/2)},
		{"messages of a conversation with 100,000 events, p95", "/conversations/" + in.String() + "/messages?limit=50"},
	}
	var all []bench.Result
	for _, list := range lists {
		var p95s, budgets []float64
		for range s.rounds {
			var took []float64
			for range pageRequests {
				began := time.Now()
				if err := s.call(ctx, "GET", list.path, nil, nil); err != nil {
					return all, err
				}
				took = append(took, milliseconds(time.Since(began)))
			}
			p95s, budgets = append(p95s, slices.Sorted(slices.Values(took))[len(took)*95/100]), append(budgets, pageBudgetMS)
		}
		all = append(all, bench.AtMost(1, bench.Compare(list.name, "ms", "the budget", p95s, budgets)))
	}
	return all, nil
}

func (s *serverBench) seedConversations(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var left atomic.Int64
	left.Store(manyRows)
	var writers sync.WaitGroup
	for range seedWriters {
		writers.Go(func() {
			for left.Add(-1) >= 0 && ctx.Err() == nil {
				if _, err := s.open(ctx, benchIdleName); err != nil {
					cancel(err)
				}
			}
		})
	}
	writers.Wait()
	return context.Cause(ctx)
}

// seedEvents makes one run with many events.
func (s *serverBench) seedEvents(ctx context.Context) (long, in event.ID, err error) {
	if in, err = s.open(ctx, benchIdleName); err != nil {
		return long, in, err
	}
	h, err := s.hold(ctx, in)
	if err != nil {
		return long, in, err
	}
	for step := int64(0); step < manyRows; {
		var events []event.Event
		for range eventsAtOnce {
			step++
			events = append(events, answered(step))
		}
		if err := s.append(ctx, h, events...); err != nil {
			return long, in, err
		}
	}
	return h.stream.ID, in, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
