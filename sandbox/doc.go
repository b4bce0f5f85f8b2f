// Package sandbox runs an agent's programs and file tools where they can
// touch nothing but a workspace. It is usable alone: it imports the standard
// library, golang.org/x/sys and its own folders, nothing else of the project;
// package seccomp imports golang.org/x/net/bpf as well.
//
// The worker calls a [Backend] to prepare an [Instance] from a [Spec], and
// every effect of the agent goes through it. Inside serves the hand, a small
// program of its own (package hand/cmd); what it says is never believed.
//
//	Prepare: lock run folder -> slot -> cgroup -> mounts made -> hand cloned
//	         -> hand sets itself up -> canary observed -> judged
//	            |                                            |
//	            v                                            v
//	         refused (*RefusedError names control and fix)  live
//	live --Exec, Read, Write...--> live
//	live --hand gone, protocol broken--> lost (ErrHandLost) --Close--> closed
//	live --Kill--> lost            live --Close--> closed (upper is kept)
//	worker dies in any state: the kernel kills the sandbox; another worker calls
//	KillGroup with the recorded path and prepares again on the same run folder.
//
// Linux only. Sizes are bytes, times are [time.Duration].
package sandbox
