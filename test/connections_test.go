package test

import (
	"database/sql/driver"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// resident returns the memory of the server that is in use, in MB.
func (s *server) resident(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmRSS in\n%s", status)
	}
	kilobytes, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes / 1000
}

// TestIdleConnections: 5,000 clients are connected and idle, each after a statement. Once the
// server has noticed that, they cost no more memory than docs/benchmarks.md says.
func TestIdleConnections(t *testing.T) {
	if !nightly {
		t.Skip("long (FARMSQL_NIGHTLY=1)")
	}
	const clients, idleMB = 5000, 250
	for _, tls := range []string{"false", "skip-verify"} {
		t.Run("tls="+tls, func(t *testing.T) {
			s := start(t, t.TempDir(), append(layouts[0].flags(), "--max-connections", fmt.Sprint(clients))...)
			before, begun := s.resident(t), time.Now()
			s.connectMany(t, clients, tls)
			took, after := time.Since(begun), s.resident(t)
			idle := after
			for end := time.Now().Add(time.Minute); idle > idleMB && time.Now().Before(end); idle = s.resident(t) {
				time.Sleep(time.Second)
			}
			t.Logf("%d connections in %v: %d MB before, %d MB after, %d MB when idle", clients, took, before, after, idle)
			if idle > idleMB {
				t.Errorf("%d MB, over %d", idle, idleMB)
			}
		})
	}
}

// connectMany opens connections that run a statement and are then idle until the test ends.
func (s *server) connectMany(t *testing.T, clients int, tls string) {
	t.Helper()
	const atOnce = 8
	var all sync.WaitGroup
	for part := range atOnce {
		all.Go(func() {
			for i := part; i < clients; i += atOnce {
				c, err := mysql.MySQLDriver{}.Open(fmt.Sprintf("root@tcp(%s)/?tls=%s", s.addr, tls))
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { _ = c.Close() })
				if _, err := c.(driver.ExecerContext).ExecContext(t.Context(), "set @a = 1", nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
