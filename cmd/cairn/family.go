package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// family is the servers and the worker of one tree, each a child that is started again when it ends.
//
//	starting --all servers ready--> running --Ctrl-C, or a child fails for good--> draining --worker, then servers--> stopped
type family struct {
	stopServers, stopWorker context.CancelFunc
	servers                 []chan error
	worker                  chan error
	done                    <-chan struct{} // the caller asked to stop, or a child failed for good
	end                     context.CancelFunc
	failed                  error
	once                    sync.Once
}

func (g *globals) startFamily(ctx context.Context, in *installation, f *upFlags, addresses []string) *family {
	fam := &family{worker: make(chan error, 1)}
	var over context.Context
	over, fam.end = context.WithCancel(ctx)
	fam.done = over.Done()
	// The children are stopped one after the other, not by the same signal at once.
	alive := context.WithoutCancel(ctx)
	var serving, working context.Context
	serving, fam.stopServers = context.WithCancel(alive)
	working, fam.stopWorker = context.WithCancel(alive)
	go in.keepCluster(over, g)
	common := []string{"--data", in.dir}
	if g.quiet {
		common = append(common, "--quiet")
	}
	for i, address := range addresses {
		args := append([]string{"server", "--listen", address}, common...)
		if f.models != "" {
			args = append(args, "--models", f.models)
		}
		for _, root := range f.roots {
			name, _, _ := strings.Cut(root, "=")
			args = append(args, "--root", name)
		}
		for _, network := range f.proxies {
			args = append(args, "--trusted-proxy", network)
		}
		name := "server"
		if len(addresses) > 1 {
			name = fmt.Sprintf("server %d", i)
		}
		ended := make(chan error, 1)
		fam.servers = append(fam.servers, ended)
		fam.keep(serving, &child{name: name, args: args, env: childEnv(in.serverURL, in.directURL), say: g.say, before: in.revive}, ended)
	}
	args := append([]string{"worker", "--server", "http://" + addresses[0]}, common...)
	fam.keep(working, &child{name: "worker", args: append(args, f.workerFlags.args()...), env: childEnv(in.workerURL, in.directURL), say: g.say, before: in.revive}, fam.worker)
	return fam
}

// keep runs a child until ctx ends; one that fails for good ends the family.
func (f *family) keep(ctx context.Context, c *child, ended chan<- error) {
	go func() {
		err := c.run(ctx)
		if ctx.Err() == nil {
			f.once.Do(func() { f.failed = err })
			f.end()
		}
		ended <- err
	}()
}

// stop drains the worker, which needs a server, then the servers.
func (f *family) stop(g *globals) error {
	g.say("draining; Ctrl-C again ends at once")
	f.stopWorker()
	all := []error{<-f.worker}
	f.stopServers()
	for _, ended := range f.servers {
		all = append(all, <-ended)
	}
	if f.failed != nil {
		return f.failed
	}
	return errors.Join(all...)
}

// ready waits until every server answers that it is ready, or the family ends.
func (f *family) ready(ctx context.Context, addresses []string) error {
	client := &http.Client{Timeout: 2 * time.Second}
	for _, address := range addresses {
		for !answersReady(client, "http://"+address+"/readyz") {
			select {
			case <-f.done:
				return errors.New("stopped before it was ready")
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

func answersReady(client *http.Client, url string) bool {
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}
