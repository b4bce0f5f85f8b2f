// Package claim makes a value unique across streams: the claim on an e-mail address or a slug is a stream
// of its own, appended together with the event of its owner. Its id derives from a keyed hash of the
// value, so two owners of one value meet in one stream, and the log does not tell the value.
//
//	free --taken--> taken --released--> free
//
// It has no commands: the owner's commands take and release it.
// It may import the standard library, domain/event, domain/fault and domain/check.
package claim

import "cairn/domain/event"

// Kind is the stream kind.
const Kind = "claim"

// Owner is who holds a claim.
type Owner struct {
	Kind string   `json:"kind"` // "account" or "space"
	ID   event.ID `json:"id"`
}

// State is the folded claim.
type State struct {
	Owner Owner `json:"owner"` // zero when free
}

// namespace is the id in which claims are named: the version 5 id of "cairn/claim/1" in the zero id.
var namespace = event.NameID(event.ID{}, []byte("cairn/claim/1"))

// Stream names the claim on a value. mac is the edge's HMAC-SHA-256 over the claim's kind and the value.
func Stream(mac []byte) event.Ref { return Ref(event.NameID(namespace, mac)) }

// Ref names a claim by its id, as its owner's event recorded it.
func Ref(id event.ID) event.Ref { return event.Ref{Kind: Kind, ID: id, Topic: id} }

// Aggregate describes the noun to the registry.
func Aggregate() event.Aggregate {
	return event.Aggregate{
		Kind:    Kind,
		Events:  []event.Definition{event.Define[Taken](), event.Define[Released]()},
		Initial: func() any { return State{} },
		Evolve:  func(state any, e event.Event) any { s, _ := state.(State); return Evolve(s, e) },
	}
}
