// Package dispatch is the policy from facts to work: which job an appended event calls for. The job only
// says where to look; the log holds the truth, so a job too many is harmless and a sweep may make one
// again for any run that waits.
//
//	conversation.turn_started --> its run
//	run.worker_lost, run.released --> the run again
//
// It may import the standard library, domain/event, domain/conversation and domain/run.
package dispatch

import (
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
)

// KindRun is the job that executes a run.
const KindRun = "run"

// Job is work for a worker.
type Job struct {
	Kind         string   `json:"kind"`
	Run          event.ID `json:"run"`
	Conversation event.ID `json:"conversation"`
	Space        event.ID `json:"space"`
	Queue        string   `json:"queue"`
}

// For returns the jobs that an event of a stream calls for.
func For(ref event.Ref, e event.Event) []Job {
	switch e := e.(type) {
	case conversation.TurnStarted:
		return []Job{{Kind: KindRun, Run: e.Run, Conversation: ref.ID, Space: ref.Space, Queue: e.Queue}}
	case run.WorkerLost:
		return again(ref, e.Queue)
	case run.Released:
		return again(ref, e.Queue)
	}
	return nil
}

func again(ref event.Ref, queue string) []Job {
	return []Job{{Kind: KindRun, Run: ref.ID, Conversation: ref.Topic, Space: ref.Space, Queue: queue}}
}
