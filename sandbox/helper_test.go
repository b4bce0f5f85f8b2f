package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// helper is this test binary as another process, chosen by an environment
// variable. It prints one line for its parent.
func helper(mode string) int {
	s := Spec{ID: os.Getenv("HELPER_ID"), RunDir: os.Getenv("HELPER_RUN")}
	o := Options{HandPath: os.Getenv("HELPER_HAND"), Parent: testParent, SlotDir: os.Getenv("HELPER_SLOTS")}
	if l := os.Getenv("HELPER_LOWER"); l != "" {
		s.Lowers = []string{l}
	}
	if mode == "single" { // what an unprivileged user cannot have
		s.Grade = GradeCMinus
	}
	n := NewNative(o)
	if mode == "escape" {
		return escapeHelper(n)
	}
	i, err := n.Prepare(context.Background(), s)
	var r *RefusedError
	if errors.As(err, &r) {
		fmt.Println("refused", r.Control, "fix:", r.Fix)
		return 0
	}
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	if mode == "work" {
		return work(i)
	}
	return single(i)
}

// work leaves files and daemons and waits to be killed.
func work(i *Instance) int {
	r, err := i.Exec(context.Background(), ExecRequest{Shell: `echo kept > kept; echo changed >> lower; rm gone; mkdir d; (setsid sh -c 'trap "" HUP TERM; sleep 3000' >/dev/null 2>&1 &); echo ok`})
	fmt.Println("ready", i.Cgroup(), strings.TrimSpace(r.Stdout.Text()), err)
	_, err = i.Exec(context.Background(), ExecRequest{Shell: "sleep 2000"})
	fmt.Println("ended", err)
	return 1
}

// single tries a sandbox of one uid.
func single(i *Instance) int {
	r, err := i.Exec(context.Background(), ExecRequest{Timeout: 20 * time.Second, Shell: `id -u; cat lower; echo more >> lower; cat lower; stat -c %U lower; cat /etc/shadow 2>/dev/null; ls /root 2>/dev/null; ls -d /work 2>/dev/null; unshare -U true 2>/dev/null && echo nested; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '; grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status | tr -d '\t'; touch /usr/x 2>/dev/null && echo wrote`})
	fmt.Printf("single %q %v %s\n", r.Stdout.Text(), err, i.Report().Identity)
	fmt.Println("grade", *i.Report().Grade)
	k := i.Report().Control(CgroupKill)
	fmt.Println("cgroup_kill", *k.Installed, k.Reason)
	for _, c := range i.Report().Controls {
		if c.Name != CgroupKill && (c.Observed == nil || !*c.Observed) {
			fmt.Println("unobserved", c.Name, c.Reason)
		}
	}
	if err := i.Close(); err != nil {
		fmt.Println("close", err)
		return 1
	}
	fmt.Println("closed")
	return 0
}
