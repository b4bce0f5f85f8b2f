// Package event is the vocabulary of the log: what an event is, how it is named, versioned and sealed,
// and what a command looks like to the one path that every write takes.
//
// It may import the standard library and domain/fault only. It has no clock, no randomness and no I/O:
// time and identifiers enter from the edge in Meta and in the commands.
//
// The life of a fact:
//
//	command --Decide(states)--> []Change --append--> Record --Evolve--> state
//	                                                    \--Apply--> projections
package event

import (
	"encoding/json"
	"time"
)

// Event is a fact of one aggregate: a plain struct in the past tense. Fields that hold personal data or
// content are of type Sealed. Field names are snake_case in JSON and never change their meaning.
type Event interface {
	// Kind is the stable name, "<stream kind>.<past tense>", like "run.tool_returned".
	Kind() string
}

// Eraser marks an event that destroys the key of its own stream's subject (a space or an account), in the
// transaction that appends it.
type Eraser interface {
	Event
	ErasesSubject()
}

// Ref names a stream.
type Ref struct {
	Kind  string // the aggregate: "run", "conversation", ...
	ID    ID
	Space ID // the space that owns it; zero for streams that belong to no space (accounts, claims)
	Topic ID // what a viewer subscribes to: the owning conversation or task, else the stream itself
}

// String is the form used in JSON lines and on the command line: "run/ID".
func (r Ref) String() string { return r.Kind + "/" + r.ID.String() }

// Change is what a decision wants appended to one stream.
type Change struct {
	Stream Ref
	Events []Event
}

// Record is an event as the log holds it: the envelope and the exact bytes that were hashed.
type Record struct {
	ID         ID
	StreamID   ID
	Version    int64 // 1 for the first event of the stream
	SpaceID    ID
	TopicID    ID
	Kind       string
	Schema     int16
	Data       json.RawMessage
	Actor      string    // "account/ID", "worker/NAME" or "system"
	CommandID  ID        // one per command
	CauseID    ID        // the event that led to the command; zero when a person or a clock did
	TraceID    string    // W3C trace id, 32 hexadecimal digits, or empty
	RecordedAt time.Time // given by the caller, microseconds, UTC

	LeafVersion int16
	LeafHash    []byte // 32 bytes
	Position    int64  // place in the log; zero while it has none yet
}

// Stream is the reference of the record's stream.
func (r *Record) Stream() Ref {
	return Ref{Kind: StreamKind(r.Kind), ID: r.StreamID, Space: r.SpaceID, Topic: r.TopicID}
}

// StreamKind returns the aggregate that owns an event kind: the part before the dot.
func StreamKind(kind string) string {
	for i := range len(kind) {
		if kind[i] == '.' {
			return kind[:i]
		}
	}
	return kind
}

// Meta is what the edge knows about a command: who, when, why. Deciding reads it; nothing else does.
type Meta struct {
	Actor     string
	At        time.Time // UTC, microseconds
	CommandID ID
	CauseID   ID
	TraceID   string
	// Key makes the command idempotent for its actor: the same key and request get the first answer
	// again; another request under the same key is refused. Empty: not idempotent.
	Key string
	// Request is the caller's own request, compared under Key. When nil the command's JSON is used.
	Request []byte
}

// View gives a decision the states it asked for in Streams. State returns the folded state of the
// stream, or the aggregate's initial state when the stream does not exist. A stream that exists under
// another kind, space or topic than the reference says does not exist for the decision: otherwise an id
// from a foreign space would open that space's state. Sealed fields are opened, or erased, before they are
// folded.
type View interface {
	State(stream Ref) any
}

// StateOf returns the state of a stream as the type of its aggregate.
func StateOf[S any](view View, stream Ref) S {
	state, _ := view.State(stream).(S)
	return state
}

// Command is an intention in the imperative, decided on the states of the streams that it names.
type Command interface {
	// Name is stable and says what was asked, like "conversation.post_message".
	Name() string
	// Streams lists the streams whose states decide, the primary one first. Only streams that are
	// changed are checked for concurrent writers.
	Streams() []Ref
	// Decide answers the changes, or a *fault.Fault. It is pure: same states, same meta, same answer.
	// No change at all means that the wish is already fulfilled.
	Decide(view View, meta Meta) ([]Change, error)
	// Answer is what the caller gets and what a repeated idempotent command gets again: ids only,
	// never content.
	Answer() any
}

// Aggregate is one noun: its events and how they fold into its state.
type Aggregate struct {
	Kind    string
	Events  []Definition
	Initial func() any
	// Shared marks streams that several processes write at once, so that their appends queue on a lock
	// instead of running into conflicts.
	Shared bool
	// Evolve folds one event into the state and returns the new one. It is total (an event that does
	// not fit is ignored, never a panic) and leaves the old state untouched.
	Evolve func(state any, e Event) any
}
