package live

import (
	"errors"
	"slices"
	"strings"

	"cairn/db"
	"cairn/domain/account"
	"cairn/domain/catalog"
	"cairn/domain/claim"
	"cairn/domain/event"
	"cairn/domain/run"
)

// Topic is what a socket watches. Its text is "ID", or "ID/activity" for what changes the lists of a space.
type Topic struct {
	ID       event.ID
	Activity bool
}

const activitySuffix = "/activity"

// IsZero reports whether it names nothing.
func (t Topic) IsZero() bool { return t.ID.IsZero() }

// String is the form on the wire.
func (t Topic) String() string {
	if t.Activity {
		return t.ID.String() + activitySuffix
	}
	return t.ID.String()
}

// MarshalText implements encoding.TextMarshaler.
func (t Topic) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Topic) UnmarshalText(text []byte) error {
	id, activity := strings.CutSuffix(string(text), activitySuffix)
	parsed, err := event.ParseID(id)
	if err != nil {
		return errors.New("topic must be an id, or the id of a space and /activity")
	}
	*t = Topic{ID: parsed, Activity: activity}
	return nil
}

// scope is how the topic is read from the log.
func (t Topic) scope() db.Scope {
	if t.Activity {
		return db.Scope{Space: t.ID, Kinds: activityKinds}
	}
	return db.Scope{Topic: t.ID}
}

// topicsOf lists the topics that an event belongs to.
func topicsOf(r *event.Record) []Topic {
	topics := []Topic{topicOf(r, false)}
	if !r.SpaceID.IsZero() && isActivity(r.Kind) {
		topics = append(topics, topicOf(r, true))
	}
	return topics
}

// topicOf is the topic of an event's own stream, or the activity of its space.
func topicOf(r *event.Record, activity bool) Topic {
	if activity {
		return Topic{ID: r.SpaceID, Activity: true}
	}
	return Topic{ID: r.TopicID}
}

// activityKinds are the kinds of events that change a list of a space: all of its nouns, but of a run only how it
// stands, not what it does.
var activityKinds = listActivity()

func listActivity() []string {
	standing := []string{
		(run.Queued{}).Kind(), (run.Started{}).Kind(), (run.Succeeded{}).Kind(), (run.Failed{}).Kind(), (run.Cancelled{}).Kind(),
		(run.WorkerLost{}).Kind(), (run.Released{}).Kind(),
	}
	for _, aggregate := range catalog.Registry().Aggregates() {
		switch aggregate.Kind {
		case run.Kind, account.Kind, claim.Kind:
			continue
		}
		for _, definition := range aggregate.Events {
			standing = append(standing, definition.Kind)
		}
	}
	slices.Sort(standing)
	return standing
}

func isActivity(kind string) bool {
	_, found := slices.BinarySearch(activityKinds, kind)
	return found
}
