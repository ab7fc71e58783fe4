package farmsql

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
)

// Machines that are closed at the same time evict nobody, although some still run statements when
// the lease of the first has run out: all of them come back as they were.
func TestCloseBesideRunningStatements(t *testing.T) {
	skipOnHeap(t)
	dir := t.TempDir()
	path := filepath.Join(dir, configurationName)
	var dbs []*DB
	for id := range 3 {
		cfg := small(filepath.Join(dir, fmt.Sprint(id)))
		cfg.Cluster, cfg.MachineID, cfg.SharedFolder = "file://"+path, id, filepath.Join(dir, "shared")
		dbs = append(dbs, mustOpen(t, cfg))
	}
	var statements, closing sync.WaitGroup
	for _, db := range dbs[1:] {
		conn, err := db.SQL().Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		statements.Go(func() {
			_, _ = conn.ExecContext(t.Context(), "DO SLEEP(2)")
			_ = conn.Close()
		})
	}
	time.Sleep(200 * time.Millisecond) // until they run
	before, err := cluster.NewFileStore(path).Load()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for _, db := range dbs {
		closing.Go(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	if took := time.Since(begin); took < time.Second {
		t.Errorf("closed after %v, while statements ran", took)
	}
	statements.Wait()
	after, err := cluster.NewFileStore(path).Load()
	if err != nil || after.ID != before.ID || len(after.Machines) != 3 {
		t.Errorf("configuration %d of %v follows %d of %v: %v", after.ID, after.Machines, before.ID, before.Machines, err)
	}
}
