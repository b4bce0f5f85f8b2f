package event

import "strings"

// System is the actor of the installation itself: start-up, sweeps and the operator's command line. It may
// do everything that the rules of a noun allow at all.
const System = "system"

const (
	accountActor = "account/"
	workerActor  = "worker/"
)

// AccountActor names an account as an actor: "account/ID".
func AccountActor(account ID) string { return accountActor + account.String() }

// WorkerActor names a worker as an actor: "worker/NAME".
func WorkerActor(name string) string { return workerActor + name }

// ActorAccount returns the account behind an actor, and whether it is one.
func ActorAccount(actor string) (ID, bool) {
	text, ok := strings.CutPrefix(actor, accountActor)
	if !ok {
		return ID{}, false
	}
	id, err := ParseID(text)
	return id, err == nil && !id.IsZero()
}

// ActorWorker returns the name of the worker behind an actor, and whether it is one.
func ActorWorker(actor string) (string, bool) {
	name, ok := strings.CutPrefix(actor, workerActor)
	return name, ok && name != ""
}
