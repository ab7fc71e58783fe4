package farm

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/txn"
)

// useUp leaves no byte of the file system that folder is on to anybody.
func useUp(t *testing.T, folder string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(folder, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1 << 20; n > 0; {
		if _, err := f.Write(make([]byte, n)); errors.Is(err, syscall.ENOSPC) {
			n /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if free, err := nvram.FreeBytes(folder); err != nil || free >= 4096 {
		t.Fatalf("%d bytes are free, %v", free, err)
	}
}

// An instance whose file system is full comes back after a kill, as often as it is
// killed, serves what it has, and frees what is deleted.
func TestRestartWithoutSpace(t *testing.T) {
	if nvramOnHeap(t) {
		t.Skip("race builds keep memory on the heap, and need space when they write it to its files")
	}
	cfg := Config{Machines: 2, Replicas: 2, Workers: 1, RegionBytes: 32 << 20, LogBytes: 1 << 20, MessageBytes: 256 << 10, Folder: filepath.Join(t.TempDir(), "data")}
	mount(t, cfg.Folder, 64<<20)
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := crowd(t, c.Machine(0), nil)
	if !errors.Is(err, nvram.ErrNoSpace) || len(objects) == 0 {
		t.Fatalf("after %d objects: %v", len(objects), err)
	}
	for range 4 {
		useUp(t, cfg.Folder)
		die(t, c)
		if c, err = Open(cfg); err != nil {
			t.Fatal(err)
		}
		m, last := c.Machine(0), objects[len(objects)-1]
		if _, err := m.Read(objects[0], make([]byte, objects[0].Capacity())); err != nil {
			t.Fatal(err)
		}
		if err := m.Run(t.Context(), func(tx *txn.Tx) error { return tx.Free(last) }); err != nil {
			t.Fatal(err)
		}
		objects = objects[:len(objects)-1]
		if more, err := crowd(t, m, objects); !errors.Is(err, nvram.ErrNoSpace) || len(more) == len(objects) {
			t.Fatalf("%d objects in the room of one that was freed: %v", len(more)-len(objects), err)
		} else {
			objects = more
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	useUp(t, cfg.Folder)
	open(t, cfg)
}
