package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tree is a running 'cairn up'.
type tree struct {
	*exec.Cmd
	url   string
	ready chan struct{}
	said  *strings.Builder
	ended chan error
}

// up starts a tree and waits until it says that it is ready.
func up(t *testing.T, data string) *tree {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	u := &tree{Cmd: command(context.Background(), "up", "--data", data, "--listen", address), url: "http://" + address, ready: make(chan struct{}), said: &strings.Builder{}, ended: make(chan error, 1)}
	output, err := u.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { u.Process.Kill() })
	go u.read(output)
	select {
	case <-u.ready:
	case err := <-u.ended:
		t.Fatalf("up ended: %v\n%s", err, u.said)
	case <-time.After(2 * time.Minute):
		t.Fatalf("up is not ready\n%s", u.said)
	}
	return u
}

func (u *tree) read(output io.Reader) {
	scanner := bufio.NewScanner(output)
	for scanner.Scan() {
		fmt.Fprintln(u.said, scanner.Text())
		if strings.HasPrefix(scanner.Text(), "Ctrl-C stops everything") {
			close(u.ready)
		}
	}
	u.ended <- u.Wait()
}

// interrupt sends Ctrl-C and waits for the end.
func (u *tree) interrupt(t *testing.T) {
	t.Helper()
	u.Process.Signal(syscall.SIGINT)
	select {
	case err := <-u.ended:
		if err != nil {
			t.Fatalf("after Ctrl-C: %v\n%s", err, u.said)
		}
	case <-time.After(time.Minute):
		t.Fatalf("still running a minute after Ctrl-C\n%s", u.said)
	}
}

func TestUpStartsServesAndLeavesNothing(t *testing.T) {
	data := installationDir(t)
	first := up(t, data)
	if r := cairn(t, "", "up", "--data", data).want(t, exitConflict); !strings.Contains(r.stderr, "already runs") {
		t.Errorf("a second tree says %q", r.stderr)
	}
	cairn(t, "", "run", "--data", data, "$ echo beside a running tree").want(t, exitDone)
	first.interrupt(t)
	if left := processesOf(data); len(left) > 0 {
		t.Fatalf("%d processes are left: %s", len(left), commandLine(left[0]))
	}
	began := time.Now()
	second := up(t, data)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the second start took %v, want under 5 s", took)
	}
	second.interrupt(t)
}

func TestUpSurvivesKills(t *testing.T) {
	data := installationDir(t)
	u := up(t, data)
	for _, name := range []string{" server ", " worker "} {
		pid := processNamed(t, data, name)
		syscall.Kill(pid, syscall.SIGKILL)
		deadline := time.Now().Add(10 * time.Second)
		for processNamed(t, data, name) == pid || processNamed(t, data, name) == 0 {
			if time.Now().After(deadline) {
				t.Fatalf("%s was not started again\n%s", name, u.said)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	first := postmaster(data)
	syscall.Kill(first, syscall.SIGKILL)
	for deadline := time.Now().Add(20 * time.Second); postmaster(data) == first || !answers(u.url+"/readyz"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL was not started again\n%s", u.said)
		}
	}
	cairn(t, "", "run", "--data", data, "$ echo after the kills").want(t, exitDone)
	// The whole tree is killed: its children end by themselves, PostgreSQL is joined by the next command.
	u.Process.Kill()
	<-u.ended
	deadline := time.Now().Add(45 * time.Second)
	for processNamed(t, data, " server ")+processNamed(t, data, " worker ") != 0 {
		if time.Now().After(deadline) {
			t.Fatal("children outlive a killed supervisor")
		}
		time.Sleep(50 * time.Millisecond)
	}
	cairn(t, "", "replay", "verify", "--data", data).want(t, exitDone)
}

// postmaster is the process that PostgreSQL recorded of itself, alive or not; 0: none.
func postmaster(data string) int {
	content, _ := os.ReadFile(filepath.Join(data, "postgres", "postmaster.pid"))
	line, _, _ := strings.Cut(string(content), "\n")
	pid, _ := strconv.Atoi(line)
	return pid
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func processNamed(t *testing.T, data, name string) int {
	t.Helper()
	for _, pid := range processesOf(data) {
		if strings.Contains(commandLine(pid)+" ", name) && !strings.Contains(commandLine(pid), "postgres") {
			return pid
		}
	}
	return 0
}
