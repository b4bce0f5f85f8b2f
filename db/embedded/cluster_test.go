package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFreshStartStopAndSecondStart(t *testing.T) {
	dir := folder(t)
	c := open(t, dir)
	if got := query(t, c, "create table kept as select 42 as n; select current_setting('data_checksums') || current_setting('listen_addresses')"); got != "on" {
		t.Errorf("checksums and listen_addresses: %q", got)
	}
	if got := query(t, c, "select pg_encoding_to_char(encoding) || ' ' || datcollate from pg_database where datname = 'postgres'"); got != "UTF8 C.UTF-8" {
		t.Errorf("encoding and locale: %s", got)
	}
	if c.Version() < oldest || c.Dir() != dir || !running(c.Pid()) {
		t.Errorf("version %d dir %s pid %d", c.Version(), c.Dir(), c.Pid())
	}
	info, err := os.Stat(filepath.Join(dir, "socket"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("socket folder: %v %v", info.Mode(), err)
	}
	pid := c.Pid()
	shut(t, c)
	gone(t, pid)
	shut(t, c) // a second Close does nothing

	began := time.Now()
	c = open(t, dir)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("second start took %s", took)
	}
	if got := query(t, c, "select n from kept"); got != "42" {
		t.Errorf("kept %s", got)
	}
	shut(t, c)
}

func TestSettings(t *testing.T) {
	c, err := Open(t.Context(), Options{Dir: made(t), Fsync: true, Settings: map[string]string{"max_connections": "33"}})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, c)
	const all = "select string_agg(current_setting(s), ' ') from unnest(array['fsync','synchronous_commit','full_page_writes','max_connections','jit','autovacuum_naptime','wal_recycle','wal_level']) s"
	if got := query(t, c, all); got != "on on on 33 off 5s off replica" {
		t.Errorf("got %s", got)
	}
	_, err = Open(t.Context(), Options{Dir: folder(t), Settings: map[string]string{"listen_addresses": "*"}})
	if err == nil || !strings.Contains(err.Error(), "listen_addresses") {
		t.Errorf("a reserved setting: %v", err)
	}
}

func TestTwoUsersCloseInAnyOrder(t *testing.T) {
	dir := made(t)
	first, second := startHelper(t, dir), (*helper)(nil)
	pid := first.expect("ready")
	second = startHelper(t, dir)
	if got := second.expect("ready"); got != pid {
		t.Fatalf("two servers: %s and %s", pid, got)
	}
	first.close() // the one that started it
	c := open(t, dir)
	server := c.Pid()
	shut(t, c)
	if query(t, c, "select 1") != "1" {
		t.Error("the server left with its starter")
	}
	second.close()
	gone(t, server)
}

func TestTwoUsesInOneProcess(t *testing.T) {
	dir := made(t)
	a, b := open(t, dir), open(t, dir)
	shut(t, b)
	if query(t, a, "select 1") != "1" {
		t.Error("the server left with its second user")
	}
	pid := a.Pid()
	shut(t, a)
	gone(t, pid)
}

func TestKilledUserLeavesAServerToAttachTo(t *testing.T) {
	dir := made(t)
	h := startHelper(t, dir)
	server := h.expect("ready")
	h.kill()
	c := open(t, dir)
	if got := strconv.Itoa(c.Pid()); got != server {
		t.Errorf("server %s, expected the one left behind, %s", got, server)
	}
	pid := c.Pid()
	shut(t, c)
	gone(t, pid)
}

// A backend that computes does not notice its postmaster's death; it must be
// ended before the next server may start.
func TestKilledPostmasterRecovers(t *testing.T) {
	dir := made(t)
	c, err := Open(t.Context(), Options{Dir: dir, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	query(t, c, "create table kept as select 7 as n")
	query(t, c, "insert into kept values (8)")
	go spin(c)
	for query(t, c, "select count(*) from pg_stat_activity where query like 'do %'") != "1" {
		time.Sleep(10 * time.Millisecond)
	}
	kill9(t, c.Pid())
	again := open(t, dir)
	if got := query(t, again, "select sum(n) from kept"); got != "15" {
		t.Errorf("after recovery: %s", got)
	}
	shut(t, c)
	if query(t, again, "select 1") != "1" {
		t.Error("the old use stopped the new server")
	}
	shut(t, again)
}

// All uses of a cluster go on with the same addresses when one of them brings its server back.
func TestKilledPostmasterIsRevived(t *testing.T) {
	dir := made(t)
	c, err := Open(t.Context(), Options{Dir: dir, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), Options{Dir: dir, Fsync: true})
	if err != nil {
		t.Fatal(err)
	}
	query(t, c, "create table kept as select 7 as n")
	first, url := c.Pid(), c.URL("postgres", c.Superuser())
	if err := c.Revive(t.Context()); err != nil || c.Pid() != first {
		t.Fatalf("a running server was not left alone: %d, %d, %v", first, c.Pid(), err)
	}
	kill9(t, first)
	failed := make(chan error, 2)
	for _, use := range []*Cluster{c, other} { // at once
		go func() { failed <- use.Revive(t.Context()) }()
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if got := query(t, other, "select n from kept"); got != "7" || url != c.URL("postgres", c.Superuser()) {
		t.Errorf("after the revival: %s, %s", got, c.URL("postgres", c.Superuser()))
	}
	shut(t, c)
	shut(t, other)
	if err := c.Revive(t.Context()); err != nil || c.Pid() != 0 {
		t.Errorf("a closed use started a server: %v", err)
	}
}

func TestEightProcessesOnAFreshFolder(t *testing.T) {
	dir := folder(t)
	var all []*helper
	for range 8 {
		all = append(all, startHelper(t, dir))
	}
	pids, inits := map[string]bool{}, 0
	for _, h := range all {
		pids[h.expect("ready")] = true
	}
	for _, h := range all {
		h.in.Close() // all at once
	}
	for _, h := range all {
		h.close()
		inits += strings.Count(h.log.String(), "initialising")
	}
	if len(pids) != 1 || inits != 1 {
		t.Errorf("servers %v, %d initialised", pids, inits)
	}
	c := open(t, dir) // nothing half-stopped is left
	shut(t, c)
}

// Starting and stopping race here: each round may find the server going down or coming up.
func TestOpenAndCloseRace(t *testing.T) {
	dir := made(t)
	shut(t, open(t, dir))
	done := make(chan error)
	for range 4 {
		go func() {
			for range 5 {
				c, err := Open(t.Context(), Options{Dir: dir})
				if err == nil {
					err = errors.Join(ping(c), c.Close())
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestNotDurableIsRefused(t *testing.T) {
	dir := made(t)
	c := open(t, dir)
	var want *NotDurable
	if _, err := Open(t.Context(), Options{Dir: dir, Fsync: true}); !errors.As(err, &want) {
		t.Errorf("got %v", err)
	}
	if query(t, c, "select 1") != "1" {
		t.Error("the refused use stopped the server")
	}
	shut(t, c)
}
