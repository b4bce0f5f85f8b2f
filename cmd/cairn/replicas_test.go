package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// twoPorts finds an address whose port and the next one are free.
func twoPorts(t *testing.T) string {
	t.Helper()
	for range 50 {
		one, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := one.Addr().(*net.TCPAddr).Port
		two, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
		one.Close()
		if err == nil {
			two.Close()
			return "127.0.0.1:" + strconv.Itoa(port)
		}
	}
	t.Fatal("no two neighbouring ports are free")
	return ""
}

// member is somebody who has signed in; the session counts on every replica.
type member struct {
	t    *testing.T
	http *http.Client
	urls []string // of the replicas
}

// call asks a replica and decodes the answer into what into points to.
func (m *member) call(replica int, method, path string, body, into any) {
	m.t.Helper()
	var content bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&content).Encode(body); err != nil {
			m.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(m.t.Context(), method, m.urls[replica]+"/api/v1"+path, &content)
	if err != nil {
		m.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := m.http.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		m.t.Fatalf("%s %s: %s", method, path, response.Status)
	}
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			m.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// memberOf signs in with the code that 'cairn up' left in the data folder.
func memberOf(t *testing.T, data string, urls []string) *member {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &member{t: t, http: &http.Client{Jar: jar, Timeout: 10 * time.Second}, urls: urls}
	text, err := os.ReadFile(filepath.Join(data, "first-login.json"))
	if err != nil {
		t.Fatal(err)
	}
	var first login
	if err := json.Unmarshal(text, &first); err != nil {
		t.Fatal(err)
	}
	m.call(0, "POST", "/login", map[string]string{"email": first.Email, "code": first.Code}, nil)
	return m
}

// frame is what of the live protocol this test needs.
type frame struct {
	Type        string `json:"type"`
	LogID       string `json:"log_id"`
	Incarnation int64  `json:"incarnation"`
	Position    int64  `json:"position"`
	Kind        string `json:"kind"`
}

// viewer watches one topic and reconnects, as a browser would.
type viewer struct {
	*member
	topic     string
	positions []int64
	ended     int // turns that it saw end
	hello     frame
}

// watch connects to a replica and reads until as many turns have ended, or the socket breaks.
func (v *viewer) watch(replica, turns int) error {
	ctx, cancel := context.WithTimeout(v.t.Context(), 30*time.Second)
	defer cancel()
	address, err := url.Parse(v.urls[replica])
	if err != nil {
		return err
	}
	header := http.Header{}
	for _, cookie := range v.http.Jar.Cookies(address) {
		header.Add("Cookie", cookie.String())
	}
	conn, response, err := websocket.Dial(ctx, v.urls[replica]+"/api/v1/live", &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	if response.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("%s", response.Status)
	}
	conn.SetReadLimit(1 << 20)
	for v.ended < turns {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		var frames []frame
		if err := json.Unmarshal(text, &frames); err != nil {
			return err
		}
		for _, f := range frames {
			if err := v.take(ctx, conn, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *viewer) take(ctx context.Context, conn *websocket.Conn, f frame) error {
	switch f.Type {
	case "hello":
		v.hello = f
		order := map[string]any{"type": "subscribe", "topic": v.topic, "after": 0}
		if n := len(v.positions); n > 0 {
			order["after"], order["log_id"], order["incarnation"] = v.positions[n-1], f.LogID, f.Incarnation
		}
		text, err := json.Marshal(order)
		if err != nil {
			return err
		}
		return conn.Write(ctx, websocket.MessageText, text)
	case "event":
		v.positions = append(v.positions, f.Position)
		if f.Kind == "conversation.turn_ended" {
			v.ended++
		}
	}
	return nil
}

func TestReplicasServeOneLog(t *testing.T) {
	data, u, c := twoReplicas(t)
	post := func(replica int, text string) {
		c.call(replica, "POST", "/conversations/"+c.topic+"/messages", map[string]string{"text": text}, nil)
	}
	viewers := []*viewer{{member: c.member, topic: c.topic}, {member: c.member, topic: c.topic}}
	watched := make(chan error, 2)
	for i, v := range viewers {
		go func() { watched <- v.watch(i, 1) }()
	}
	post(0, "$ echo first")
	for range viewers {
		if err := <-watched; err != nil {
			t.Fatal(err)
		}
	}
	// One replica is killed while the second turn goes on; its viewer comes back as soon as it can, to either.
	killed := c.serverProcess(data, 1)
	post(0, "$ sleep 1\n$ echo second")
	syscall.Kill(killed, syscall.SIGKILL)
	deadline := time.Now().Add(30 * time.Second)
	for i, v := range viewers {
		for v.watch(i, 2) != nil {
			if time.Now().After(deadline) {
				t.Fatalf("viewer %d never saw the second turn end\n%s", i, u.said)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	if !slices.Equal(viewers[0].positions, viewers[1].positions) || !slices.IsSorted(viewers[0].positions) {
		t.Errorf("the viewers saw %v and %v", viewers[0].positions, viewers[1].positions)
	}
	if unique := slices.Compact(slices.Clone(viewers[0].positions)); len(unique) != len(viewers[0].positions) {
		t.Errorf("a position came twice: %v", viewers[0].positions)
	}
	u.interrupt(t)
	cairn(t, "", "log", "verify", "--data", data).want(t, exitDone)
	cairn(t, "", "replay", "verify", "--data", data).want(t, exitDone)
}
