package farmsql

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/recovery/membership"
)

// If a machine is evicted during a step of opening, the error says so, so that the machine can come
// back as another life. It does not name the operation that failed because of that.
func TestEvictedWhileStarting(t *testing.T) {
	skipOnHeap(t)
	for _, at := range []startStep{stepCatalog, stepEngine} {
		t.Run(string(at), func(t *testing.T) {
			folder := t.TempDir()
			url := "file://" + filepath.Join(folder, "configuration")
			cfg := small(folder)
			cfg.Cluster, cfg.SharedFolder = url, filepath.Join(folder, "shared")
			if err := mustOpen(t, cfg).Close(); err != nil {
				t.Fatal(err)
			}
			cfg.starting = func(db *DB, s startStep) {
				if s == at {
					leaveOut(t, url, db)
				}
			}
			db, err := Open(cfg)
			if err == nil {
				_ = db.Close()
			}
			if !errors.Is(err, membership.ErrEvicted) {
				t.Fatalf("evicted at %q: %v", at, err)
			}
			cfg.starting = nil
			if err := mustOpen(t, cfg).SQL().Ping(); err != nil {
				t.Errorf("another life: %v", err)
			}
		})
	}
}

// leaveOut stores a configuration without this life of the only machine, and waits until that has
// noticed it.
func leaveOut(t *testing.T, url string, db *DB) {
	store, err := cluster.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	next := c.Succeed()
	next.Incarnation[0] = 0 // an unknown life's: it can have left the memory
	if err := store.CompareAndSwap(c.Revision, next); err != nil {
		t.Fatal(err)
	}
	m := db.instance.members[0].Membership()
	for deadline := time.Now().Add(20 * time.Second); m.Err() == nil; time.Sleep(time.Millisecond) {
		if m.Renew(); time.Now().After(deadline) {
			t.Fatal("the machine does not notice that it is evicted")
		}
	}
}
