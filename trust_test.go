package farmsql

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
)

// copyWhileOpen makes a database with a table, copies its folder as cp -r does while it is
// open and quiet, and closes it.
func copyWhileOpen(t *testing.T, prepare func(db *DB)) (copied string) {
	t.Helper()
	cfg := small(filepath.Join(t.TempDir(), "data"))
	cfg.Machines, cfg.Replicas = 2, 2
	db := mustOpen(t, cfg)
	mustExec(t, db.SQL(), "create database d", "create table d.t (a int primary key, b varchar(10), key (b))", "insert into d.t values (1, 'x')")
	prepare(db)
	copied = filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(cfg.Folder)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return copied
}

// skipOnHeap skips where memory is not in its file while it is in use.
func skipOnHeap(t *testing.T) {
	t.Helper()
	m, err := nvram.NewShared(4096)
	if err != nil {
		t.Fatal(err)
	}
	if _, shared := m.Location(); !shared {
		t.Skip("race builds keep memory on the heap: its files are empty, and nobody shares it")
	}
}

// A copy of a folder in use is refused. With Trust it is opened if it is sound, and is then like
// any other folder.
func TestCopyIsRefusedUnlessTrusted(t *testing.T) {
	skipOnHeap(t)
	copied := copyWhileOpen(t, func(*DB) {})
	if db, err := Open(Config{Folder: copied}); !errors.Is(err, nvram.ErrCopy) {
		t.Fatalf("%v, %v", db, err)
	}
	if err := Inspect(t.Context(), Offline{Data: []string{copied}}); !errors.Is(err, nvram.ErrCopy) {
		t.Errorf("inspect: %v", err)
	}
	if err := Inspect(t.Context(), Offline{Data: []string{copied}, Trust: true}); err != nil {
		t.Errorf("inspect: %v", err)
	}
	db := mustOpen(t, Config{Folder: copied, Trust: true})
	var b string
	if err := db.SQL().QueryRow("select b from d.t").Scan(&b); err != nil || b != "x" {
		t.Error(b, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	mustCheck(t, mustOpen(t, Config{Folder: copied}))
}

// With Trust, a folder that is not sound is refused with the places of its faults, each time that
// it is tried: the attempts do not make it a folder that was closed in order.
func TestTrustChecksFirst(t *testing.T) {
	skipOnHeap(t)
	saves := t.TempDir()
	var anchor region.Ptr
	for name, c := range map[string]struct {
		prepare func(db *DB)
		damage  func(copied string)
		text    string
	}{
		"leak": {func(db *DB) { leak(t, db) }, func(string) {}, "1 problem: machine 0: leak"},
		"garbage": {func(db *DB) { anchor = anchorOf(t, db, "d", "t") }, func(copied string) {
			file := filepath.Join(copied, "machine-0", farm.RegionName(anchor.Addr.Region())+".mem")
			f, err := os.OpenFile(file, os.O_RDWR, 0)
			if err == nil {
				_, err = f.WriteAt([]byte("garbage!"), int64(anchor.Addr.Offset())+64)
			}
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}, "torn: "},
	} {
		t.Run(name, func(t *testing.T) {
			copied := copyWhileOpen(t, c.prepare)
			c.damage(copied)
			for range 2 {
				db, err := Open(Config{Folder: copied, Trust: true, Saves: filepath.Join(saves, name)})
				if !errors.Is(err, farm.ErrTorn) || !strings.Contains(err.Error(), c.text) {
					t.Fatalf("%v, %v", db, err)
				}
			}
			if _, err := Open(Config{Folder: copied}); !errors.Is(err, nvram.ErrCopy) {
				t.Errorf("after it was refused: %v", err)
			}
			if names, _ := filepath.Glob(filepath.Join(saves, name, "*", "save-*")); len(names) > 0 {
				t.Errorf("what was refused has been saved: %v", names)
			}
		})
	}
}
