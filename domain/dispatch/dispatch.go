// Package dispatch is the policy from facts to work: which job an appended event calls for. The job only
// says where to look; the log holds the truth, so a job too many is harmless and a sweep may make one
// again for any run that waits.
//
//	conversation.turn_started --> its run
//	task.attempt_started -------> its run
//	run.worker_lost, run.released --> the run again
//
// It may import the standard library, domain/event, domain/conversation, domain/task and domain/run.
package dispatch

import (
	"cairn/domain/conversation"
	"cairn/domain/event"
	"cairn/domain/run"
	"cairn/domain/task"
)

// KindRun is the job that executes a run.
const KindRun = "run"

// Job is work for a worker.
type Job struct {
	Kind         string   `json:"kind"`
	Run          event.ID `json:"run"`
	Conversation event.ID `json:"conversation"` // zero for the run of a task
	Task         event.ID `json:"task"`         // zero for the run of a conversation
	Space        event.ID `json:"space"`
	Queue        string   `json:"queue"`
}

// For returns the jobs that an event of a stream calls for.
func For(ref event.Ref, e event.Event) []Job {
	switch e := e.(type) {
	case conversation.TurnStarted:
		return []Job{{Kind: KindRun, Run: e.Run, Conversation: ref.ID, Space: ref.Space, Queue: e.Queue}}
	case task.AttemptStarted:
		return []Job{{Kind: KindRun, Run: e.Run, Task: ref.ID, Space: ref.Space, Queue: e.Queue}}
	case run.WorkerLost:
		return again(ref, e.Queue, e.Task)
	case run.Released:
		return again(ref, e.Queue, e.Task)
	}
	return nil
}

// again is for a run whose topic is its task when it has one, else its conversation.
func again(ref event.Ref, queue string, task event.ID) []Job {
	job := Job{Kind: KindRun, Run: ref.ID, Space: ref.Space, Queue: queue, Task: task}
	if task.IsZero() {
		job.Conversation = ref.Topic
	}
	return []Job{job}
}
