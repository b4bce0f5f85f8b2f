package audit

import (
	"context"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"cairn/domain/event"
)

// checkHead compares where the positions end with where the log says, and with what was signed.
func (v *verification) checkHead(context.Context) error {
	end := v.tree.size
	if v.report.Head != end {
		return broken("log_head must be the last position", end, v.report.Head).at(min(end, v.report.Head) + 1)
	}
	if beyond, ok := v.marks.beyond(end); ok {
		return broken(fmt.Sprintf("the end of the log was cut, or an older backup restored without 'cairn admin restored': a checkpoint of incarnation %d%s covers more", beyond.Incarnation, beyond.where()),
			fmt.Sprintf("%d positions", beyond.Size), end).at(end + 1)
	}
	return nil
}

// walkWaiting checks the events that have no position yet, in the order in which they will get one.
func (v *verification) walkWaiting(ctx context.Context) error {
	err := eachRow(ctx, v.tx, func(r *row) error {
		if r.position > 0 {
			return broken("an event with a position also waits for one", "one of both", "both").in(r)
		}
		v.report.Waiting++
		_, err := v.checkRow(r)
		return err
	}, waitingRows)
	if err != nil {
		return fmt.Errorf("log verify: waiting events: %w", err)
	}
	return nil
}

// checkCounts finds what no place led to: events without one, and hashes without a leaf.
func (v *verification) checkCounts(ctx context.Context) error {
	if _, err := v.tx.Exec(ctx, "SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on"); err != nil {
		return err
	}
	counts, err := v.q.LogCounts(ctx)
	if err != nil {
		return fmt.Errorf("log verify: counts: %w", err)
	}
	// Every place has led to an event of its own. So equal numbers mean that there is no other.
	if counts.Events != v.report.Events+v.report.Waiting {
		extra, err := v.q.EventsUnplaced(ctx)
		if err != nil {
			return fmt.Errorf("log verify: events without a place: %w", err)
		}
		for _, e := range extra {
			b := broken("an event has neither a position nor waits for one", "one of both", "none").event(e.ID)
			b.Stream = event.Ref{Kind: event.StreamKind(e.Kind), ID: e.StreamID}.String()
			return b
		}
		return broken("number of events", v.report.Events+v.report.Waiting, counts.Events)
	}
	if want := tlog.StoredHashCount(v.marks.stored); counts.Hashes != want {
		return broken(fmt.Sprintf("hashes in log_tree for the %d positions of the last checkpoint in the database", v.marks.stored), want, counts.Hashes)
	}
	return nil
}

// streamHeads are the heads with the event that each of them names.
const streamHeads = `SELECT s.id, s.kind, s.space_id, s.topic_id, s.version, coalesce(e.kind, ''), e.space_id, e.topic_id
FROM log.stream s LEFT JOIN log.event e ON e.stream_id = s.id AND e.version = s.version ORDER BY s.id`

// checkStreams compares the heads with the last versions that the walk has seen.
func (v *verification) checkStreams(ctx context.Context) error {
	v.report.Streams = int64(len(v.versions))
	rows, err := v.tx.Query(ctx, streamHeads)
	if err != nil {
		return fmt.Errorf("log verify: streams: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var head event.Ref
		var version int64
		var kind string
		var space, topic *event.ID
		if err := rows.Scan(&head.ID, &head.Kind, &head.Space, &head.Topic, &version, &kind, &space, &topic); err != nil {
			return fmt.Errorf("log verify: streams: %w", err)
		}
		if b := v.checkStream(head, version, kind, space, topic); b != nil {
			b.Stream = head.String()
			return b
		}
		delete(v.versions, head.ID)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("log verify: streams: %w", err)
	}
	for id, version := range v.versions {
		b := broken(fmt.Sprintf("stream %s has events but no head", id), version, "none")
		return b
	}
	return nil
}

func (v *verification) checkStream(head event.Ref, version int64, kind string, space, topic *event.ID) *Broken {
	switch last := v.versions[head.ID]; {
	case version != last:
		return broken("the head of a stream must be its last version", last, version)
	case head.Kind != event.StreamKind(kind):
		return broken("kind of a stream", event.StreamKind(kind), head.Kind)
	case space == nil || *space != head.Space:
		return broken("space_id of a stream", space, head.Space)
	case topic == nil || *topic != head.Topic:
		return broken("topic_id of a stream", topic, head.Topic)
	}
	return nil
}
