package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5"
)

// crowd is many viewers of one conversation on two replicas, each with a socket of its own that comes back as
// docs/reference/live.md asks for.
type crowd struct {
	*member
	topic  string
	said   *strings.Builder
	header http.Header
	until  atomic.Int64 // the last position; 0: not known yet
	hints  chan int64   // retry_ms of each draining close
}

// seat is one viewer of the crowd.
type seat struct {
	viewer
	crowd   *crowd
	replica int
	lives   int // sockets it had
	cut     *rand.Rand
}

// sit watches from a replica on, until the last position was seen.
func (s *seat) sit(ctx context.Context) error {
	for failures := 0; ; {
		done, err := s.watch(ctx)
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("with %d positions: %w", len(s.positions), errors.Join(err, ctx.Err()))
		}
		pause := time.Duration(50+rand.IntN(100<<min(failures, 4))) * time.Millisecond
		if hint, told := retryOf(err); told {
			s.crowd.hints <- hint
			pause = time.Duration(hint) * time.Millisecond
		} else if websocket.CloseStatus(err) == -1 {
			failures++
		}
		s.replica = 1 - s.replica
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func retryOf(err error) (hint int64, told bool) {
	var closed websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != 4503 {
		return 0, false
	}
	var reason struct {
		RetryMS int64 `json:"retry_ms"`
	}
	if json.Unmarshal([]byte(closed.Reason), &reason) != nil {
		return 0, false
	}
	return reason.RetryMS, true
}

// watch is one socket.
func (s *seat) watch(ctx context.Context) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, s.urls[s.replica]+"/api/v1/live", &websocket.DialOptions{HTTPHeader: s.crowd.header})
	if err != nil {
		return false, err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(4 << 20)
	s.lives++
	for {
		if s.cut != nil && s.cut.IntN(12) == 0 {
			return false, errors.New("cut by the test")
		}
		// A dead peer is told by two silences, as a browser does.
		silence, heard := context.WithTimeout(ctx, 10*time.Second)
		_, text, err := conn.Read(silence)
		heard()
		if err != nil {
			return false, err
		}
		var frames []frame
		if err := json.Unmarshal(text, &frames); err != nil {
			return false, err
		}
		for _, f := range frames {
			if err := s.take(ctx, conn, f); err != nil {
				return false, err
			}
		}
		if last := s.crowd.until.Load(); last > 0 && len(s.positions) > 0 && s.positions[len(s.positions)-1] >= last {
			return true, nil
		}
	}
}

// fill makes viewers, half of them on each replica.
func (c *crowd) fill(ctx context.Context, n int, change func(*seat)) (seats []*seat, ended chan error) {
	address, err := url.Parse(c.urls[0])
	if err != nil {
		c.t.Fatal(err)
	}
	c.header = http.Header{}
	for _, cookie := range c.http.Jar.Cookies(address) {
		c.header.Add("Cookie", cookie.String())
	}
	ended = make(chan error, n)
	for i := range n {
		s := &seat{viewer: viewer{member: c.member, topic: c.topic}, crowd: c, replica: i % 2}
		change(s)
		seats = append(seats, s)
		go func() { ended <- s.sit(ctx) }()
	}
	return seats, ended
}

// twoReplicas starts an installation with two servers, and a conversation with the demo model in it.
func twoReplicas(t *testing.T) (data string, u *tree, c *crowd) {
	t.Helper()
	data = installationDir(t)
	address := twoPorts(t)
	u = upOn(t, data, address, "--replicas", "2")
	host, port, _ := strings.Cut(address, ":")
	number, _ := strconv.Atoi(port)
	c = &crowd{member: memberOf(t, data, []string{"http://" + address, fmt.Sprintf("http://%s:%d", host, number+1)}), hints: make(chan int64, 10_000), said: u.said}
	var spaces, agents struct {
		Items []struct {
			Space string `json:"space_id"`
			Agent string `json:"agent_id"`
		}
	}
	c.call(0, "GET", "/spaces", nil, &spaces)
	c.call(0, "GET", "/spaces/"+spaces.Items[0].Space+"/agents", nil, &agents)
	var opened struct {
		Conversation string `json:"conversation_id"`
	}
	c.call(0, "POST", "/spaces/"+spaces.Items[0].Space+"/conversations", map[string]string{"agent_id": agents.Items[0].Agent, "title": "A crowd"}, &opened)
	c.topic = opened.Conversation
	return data, u, c
}

// serverProcess is the process of a replica, which must have one.
func (c *crowd) serverProcess(data string, replica int) int {
	c.t.Helper()
	pid := c.findServer(data, replica)
	if pid == 0 {
		c.t.Fatalf("replica %d has no process", replica)
	}
	return pid
}

// findServer is the process of a replica; 0: it has none, as between two lives.
func (c *crowd) findServer(data string, replica int) int {
	for _, pid := range processesOf(data) {
		if strings.Contains(commandLine(pid), "server --listen "+strings.TrimPrefix(c.urls[replica], "http://")) {
			return pid
		}
	}
	return 0
}

// comesBack waits until a replica is another process than before and is ready.
func (c *crowd) comesBack(data string, replica, before int) (after time.Duration) {
	c.t.Helper()
	began := time.Now()
	for time.Since(began) < 20*time.Second {
		response, err := http.Get(c.urls[replica] + "/readyz")
		if err == nil {
			response.Body.Close()
			if now := c.findServer(data, replica); response.StatusCode == http.StatusOK && now != 0 && now != before {
				return time.Since(began)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.t.Fatalf("replica %d did not come back within 20 s\n%s", replica, c.said)
	return 0
}

// posting sends messages to both replicas until stop, one after a gap, or without one when the run before has ended. A connection that is refused was not accepted, and is sent to
// the other replica under the same key; an answer that is not 202 is a failure.
type posting struct {
	*crowd
	accepted []string // ids of runs
	failures []string
	stop     atomic.Bool
	over     chan struct{}
}

func (c *crowd) post(gap time.Duration, text func(i int) string) *posting {
	p := &posting{crowd: c, over: make(chan struct{})}
	go func() {
		defer close(p.over)
		for i := 0; !p.stop.Load(); i++ {
			p.send(i, text(i))
			if gap == 0 {
				p.settle()
			}
			time.Sleep(gap) // so that the turns can follow
		}
	}()
	return p
}

func (p *posting) send(i int, text string) {
	body, _ := json.Marshal(map[string]string{"text": text})
	for try := i; try < i+500; try++ {
		if try > i {
			time.Sleep(20 * time.Millisecond)
		}
		request, err := http.NewRequest("POST", p.urls[try%2]+"/api/v1/conversations/"+p.topic+"/messages", strings.NewReader(string(body)))
		if err != nil {
			p.failures = append(p.failures, err.Error())
			return
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "message-"+strconv.Itoa(i))
		response, err := p.http.Do(request)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue
		}
		if err != nil {
			p.failures = append(p.failures, fmt.Sprintf("message %d to replica %d: %v", i, try%2, err))
			continue
		}
		var posted struct {
			Run string `json:"run_id"`
		}
		err = json.NewDecoder(response.Body).Decode(&posted)
		response.Body.Close()
		if response.StatusCode != http.StatusAccepted || err != nil {
			p.failures = append(p.failures, fmt.Sprintf("message %d to replica %d: %s %v", i, try%2, response.Status, err))
			continue
		}
		p.accepted = append(p.accepted, posted.Run)
		return
	}
	p.failures = append(p.failures, fmt.Sprintf("message %d was accepted by nobody", i))
}

// settle waits until the newest run has ended, asking whichever replica answers.
func (p *posting) settle() {
	if len(p.accepted) == 0 {
		return
	}
	path := "/api/v1/runs/" + p.accepted[len(p.accepted)-1]
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		for _, replica := range p.urls {
			response, err := p.http.Get(replica + path)
			if err != nil {
				continue
			}
			var run struct {
				EndedAt *time.Time `json:"ended_at"`
			}
			err = json.NewDecoder(response.Body).Decode(&run)
			response.Body.Close()
			if err == nil && run.EndedAt != nil {
				return
			}
		}
	}
}

// end stops posting, waits for the answers, and tells the viewers which position is the last.
func (p *posting) end() {
	p.t.Helper()
	p.stop.Store(true)
	<-p.over
	began := time.Now()
	for _, id := range p.accepted {
		var run struct {
			State string `json:"state"`
		}
		for ; run.State != "succeeded"; time.Sleep(100 * time.Millisecond) {
			p.call(0, "GET", "/runs/"+id, nil, &run)
			if time.Since(began) > 2*time.Minute || run.State == "failed" {
				p.t.Fatalf("run %s is %s", id, run.State)
			}
		}
	}
}

// log is all positions of the topic as the log has them.
func (c *crowd) log(t *testing.T, data string) (positions []int64) {
	t.Helper()
	for _, e := range lines[struct {
		Position int64           `json:"position"`
		Stream   string          `json:"stream"`
		Data     json.RawMessage `json:"data"`
	}](t, cairn(t, "", "log", "tail", "--json", "--data", data).want(t, exitDone).stdout) {
		if e.Stream == "conversation/"+c.topic || strings.HasPrefix(e.Stream, "run/") {
			positions = append(positions, e.Position)
		}
	}
	return positions
}

func (c *crowd) check(t *testing.T, data string, u *tree, seats []*seat, ended chan error) {
	t.Helper()
	want := c.log(t, data)
	c.until.Store(want[len(want)-1])
	for range seats {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range seats {
		if !slices.Equal(s.positions, want) {
			t.Fatalf("viewer %d saw %d positions, the log has %d; the first that differ: %v", i, len(s.positions), len(want), firstDifference(s.positions, want))
		}
	}
	u.interrupt(t)
	cairn(t, "", "log", "verify", "--data", data).want(t, exitDone)
	cairn(t, "", "replay", "verify", "--data", data).want(t, exitDone)
}

func firstDifference(a, b []int64) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("at %d: %d and %d", i, a[i], b[i])
		}
	}
	return "one is the beginning of the other"
}

// TestRollingRestart replaces both replicas, one after the other, under 200 sockets and a member who posts.
func TestRollingRestart(t *testing.T) {
	data, u, c := twoReplicas(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seats, ended := c.fill(ctx, 200, func(*seat) {})
	p := c.post(150*time.Millisecond, func(i int) string { return fmt.Sprintf("$ echo %d", i) })
	for replica := range 2 {
		before := c.serverProcess(data, replica)
		if err := syscall.Kill(before, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		c.comesBack(data, replica, before)
	}
	p.end()
	if len(p.failures) > 0 || len(p.accepted) < 5 {
		t.Errorf("%d messages were accepted, these requests failed: %v", len(p.accepted), p.failures)
	}
	c.check(t, data, u, seats, ended)
	// Each socket is told when to come back, and not all the same.
	hints := map[int64]bool{}
	for len(c.hints) > 0 {
		hints[<-c.hints] = true
	}
	if len(hints) < 100 {
		t.Errorf("200 sockets were given %d different times to come back", len(hints))
	}
}

// TestReplicasUnderFire kills both replicas in turn, ends their LISTEN connections, stops one for 5 s, and cuts
// sockets at random; two viewers on different replicas see a long conversation whole.
func TestReplicasUnderFire(t *testing.T) {
	if os.Getenv("CAIRN_TORTURE_SECONDS") == "" {
		t.Skip("takes minutes: a part of 'make torture'")
	}
	data, u, c := twoReplicas(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	seats, ended := c.fill(ctx, 2, func(s *seat) { s.cut = rand.New(rand.NewPCG(5, uint64(s.replica))) })
	p := c.post(0, func(int) string { return strings.Repeat("$ echo one more line of a long turn\n", 40) })
	endListens(t, data)
	for replica := range 2 {
		before := c.serverProcess(data, replica)
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		t.Logf("replica %d was ready again %v after kill -9", replica, c.comesBack(data, replica, before))
	}
	stopped := c.serverProcess(data, 1)
	if err := syscall.Kill(stopped, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second) // the time of the scenario
	if err := syscall.Kill(stopped, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	endListens(t, data)
	for began := time.Now(); len(c.log(t, data)) < 500; time.Sleep(time.Second) {
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("the conversation has %d events", len(c.log(t, data)))
		}
	}
	p.end()
	c.check(t, data, u, seats, ended)
	t.Logf("requests that broke: %v", p.failures)
	t.Logf("%d messages; the viewers had %d and %d sockets for %d positions", len(p.accepted), seats[0].lives, seats[1].lives, len(seats[0].positions))
	if lives := seats[0].lives + seats[1].lives; lives < 20 {
		t.Errorf("only %d sockets: nothing was cut", lives)
	}
}

// endListens ends every connection that listens.
func endListens(t *testing.T, data string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), "postgres:///cairn?user=postgres&host="+url.QueryEscape(data+"/socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var ended int
	if err := conn.QueryRow(t.Context(), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ILIKE 'listen %' AND pid <> pg_backend_pid()").Scan(&ended); err != nil {
		t.Fatal(err)
	}
	if ended < 2 {
		t.Errorf("%d connections listened, want one of each replica at least", ended)
	}
}
