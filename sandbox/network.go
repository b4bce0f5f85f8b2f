package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"cairn/sandbox/egress"
)

// Network is what a sandbox may reach. Its own network stays empty: what there is are listeners on 127.0.0.1
// inside, opened by the hand and served by the worker.
type Network struct {
	Policy    egress.Policy      // tier none: no proxy, no listener
	Secrets   egress.Secrets     // of the policy's injections
	OnDecided func(egress.Batch) // what was allowed and refused; see egress.Config; may be nil
	Limits    egress.Limits
	Model     Server // of connections to 127.0.0.1:3129, in every tier; nil: no listener
}

// Server serves a listener until it is closed; closing it again does nothing.
type Server interface {
	Serve(net.Listener) error
	Close() error
}

// EgressReport says what the proxy lets through, for the boundary report.
type EgressReport struct {
	Tier       egress.Tier   `json:"tier"`
	Rules      []egress.Rule `json:"rules"`      // empty in tiers none and open
	Injects    []string      `json:"injects"`    // hosts that get a credential outside of the sandbox
	Registries int           `json:"registries"` // version of the list of registries; 0: not used
	Model      bool          `json:"model"`      // a listener for the model gateway is there
}

func (n *Network) report() EgressReport {
	r := EgressReport{Tier: egress.None, Rules: []egress.Rule{}, Injects: []string{}}
	if n == nil {
		return r
	}
	r.Tier, r.Model = n.Policy.Tier, n.Model != nil
	r.Rules = append(r.Rules, n.Policy.Rules...)
	for _, j := range n.Policy.Injections {
		r.Injects = append(r.Injects, j.Host)
	}
	if r.Tier == egress.Registries {
		r.Registries = egress.RegistriesVersion
	}
	return r
}

// authority is one for the process: it lives in memory, and only sandboxes of this worker trust it.
var authority = sync.OnceValues(egress.NewAuthority)

// served is a listener inside and what will answer on it.
type served struct {
	port   int64
	server Server
}

// openNetwork makes the proxy, so that a secret that cannot be had refuses the sandbox, and asks the hand for
// listeners.
func (p *preparation) openNetwork(ctx context.Context) error {
	n := p.spec.Network
	if n == nil {
		return nil
	}
	if n.Policy.Tier != egress.None {
		ca, err := authority()
		if err != nil {
			return err
		}
		p.proxy, err = egress.New(ctx, egress.Config{Policy: n.Policy, Authority: ca, Secrets: n.Secrets, OnDecided: n.OnDecided, Limits: n.Limits})
		if err != nil {
			return err
		}
		p.onUndo(p.proxy.Close)
		p.served = append(p.served, served{egress.Port, p.proxy})
		p.plan.Authority = string(ca.PEM())
		env := egress.Environment()
		maps.Copy(env, p.spec.Env)
		p.spec.Env = env
	}
	if n.Model != nil {
		p.onUndo(n.Model.Close)
		p.served = append(p.served, served{egress.ModelPort, n.Model})
	}
	if len(p.served) == 0 {
		return nil
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	p.temp, p.passage = append(p.temp, ours), ours
	p.plan.Passage = p.inherit(theirs)
	for _, s := range p.served {
		p.plan.Ports = append(p.plan.Ports, s.port)
	}
	return nil
}

// takeListeners receives what the hand opened, and serves it. The hand has not run anything of the agent yet;
// still each socket is looked at: served must be the sandbox's own loopback and nothing else.
func (p *preparation) takeListeners(context.Context) error {
	if len(p.served) == 0 {
		return nil
	}
	files, err := receive(int(p.passage.Fd()), len(p.served))
	defer func() {
		for _, f := range files {
			f.Close() // a listener has its own copy
		}
	}()
	if err != nil {
		return refuseBy(NetNamespace, err)
	}
	for i, f := range files {
		if err := checkListener(int(f.Fd()), int(p.served[i].port)); err != nil {
			return refuseBy(NetNamespace, fmt.Errorf("listener %d: %w", p.served[i].port, err))
		}
	}
	for i, f := range files {
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		p.onUndo(func() error { return ignoreClosed(l.Close()) })
		server := p.served[i].server
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(l) // ends when it is closed; without it the sandbox reaches nothing
		}()
		p.onUndo(func() error {
			err := server.Close()
			<-done
			return err
		})
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// receive takes want descriptors out of one message, and closes all when there are others.
func receive(socket, want int) ([]*os.File, error) {
	b, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(4*(want+1)))
	_, n, flags, _, err := unix.Recvmsg(socket, b, oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive the listeners: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return nil, fmt.Errorf("receive the listeners: %w", err)
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, fmt.Errorf("receive the listeners: %w", err)
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "listener"))
		}
	}
	if len(files) != want || flags&unix.MSG_CTRUNC != 0 {
		return files, fmt.Errorf("received %d listeners, expected %d", len(files), want)
	}
	return files, nil
}

// checkListener wants a TCP listener on 127.0.0.1 and the port, in another network than the worker's.
func checkListener(fd, port int) error {
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || listens != 1 {
		return fmt.Errorf("it does not listen (%v)", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return err
	}
	at, is := name.(*unix.SockaddrInet4)
	if !is || at.Addr != [4]byte{127, 0, 0, 1} || at.Port != port {
		return fmt.Errorf("it is at %+v", name)
	}
	ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("its network: %w", err)
	}
	defer unix.Close(ns)
	var theirs, ours syscall.Stat_t
	if err := syscall.Fstat(ns, &theirs); err != nil {
		return err
	}
	if err := syscall.Stat("/proc/self/ns/net", &ours); err != nil {
		return err
	}
	if theirs.Ino == ours.Ino {
		return errors.New("it is in the worker's own network")
	}
	return nil
}

// Egress counts what the proxy decided so far; null without a proxy, which is to say that there was no way out.
func (i *Instance) Egress() *egress.Counts {
	if i.prep.proxy == nil {
		return nil
	}
	c := i.prep.proxy.Counts()
	return &c
}
