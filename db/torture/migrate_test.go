package torture

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/db/dbtest"
)

// TestEightProcessesMigrate: one does it, the others find it done, none fails.
func TestEightProcessesMigrate(t *testing.T) {
	base := dbtest.New(t)
	conn := base.Conn(t, "")
	// An empty database: dropping what the template has is cheaper than making one of another name.
	if _, err := conn.Exec(t.Context(), "DROP SCHEMA view CASCADE; DROP SCHEMA log CASCADE; DROP SCHEMA vault CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public"); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	applied := make([]int, 8)
	var wg sync.WaitGroup
	for i := range applied {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), migrateEnv+"="+base.URL(""))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("process %d: %v: %s", i, err, out)
				return
			}
			if applied[i], err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
				t.Errorf("process %d: %s", i, out)
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range applied {
		total += n
	}
	var rows int
	if err := conn.QueryRow(context.Background(), `SELECT (SELECT count(*) FROM public.cairn_log_version WHERE version_id > 0) + (SELECT count(*) FROM view.cairn_view_version WHERE version_id > 0)`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if total != rows || rows < 5 {
		t.Errorf("the processes applied %v, the database has %d steps", applied, rows)
	}
	t.Logf("%v in %v", applied, time.Since(began).Round(time.Millisecond))
}
