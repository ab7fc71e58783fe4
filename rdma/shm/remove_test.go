//go:build !race

package shm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// The last machine that leaves takes the folder away, and nobody before it.
func TestLastMachineRemovesTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meeting")
	for range 3 {
		var nics []*NIC
		for m := range 3 {
			nic, err := Join(path, rdma.MachineID(m))
			if err != nil {
				t.Fatal(err)
			}
			nics = append(nics, nic)
		}
		if err := Sweep(path); err != nil || !exists(t, path) {
			t.Fatalf("swept away while it is in use, %v", err)
		}
		for i, nic := range nics {
			if err := nic.Close(); err != nil {
				t.Fatal(err)
			}
			if exists(t, path) != (i < 2) {
				t.Errorf("after %d of 3 have left it exists: %v", i+1, exists(t, path))
			}
		}
	}
}

// Machines that come and go all at once always find a folder, and leave none.
func TestFolderComesAndGoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "meeting")
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for m := range errs {
		wg.Go(func() {
			for range 50 {
				nic, err := Join(path, rdma.MachineID(m))
				if err == nil {
					if !isSame(nic.folder.dir, path) {
						err = errors.New("joined in a folder that is gone")
					}
					err = errors.Join(err, nic.Close())
				}
				if err != nil {
					errs[m] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if exists(t, path) {
		t.Error("the folder is left")
	}
}

// Of two machines that leave together, the last may find files of the first that are
// gone when it removes them.
func TestMachinesLeaveTogether(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"machine-0.datagram", "machine-1.datagram", "machine-1.lock"} {
		if err := os.WriteFile(filepath.Join(path, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "machine-1.datagram")); err != nil {
		t.Fatal(err)
	}
	if err := removeRead(path, entries); err != nil {
		t.Error(err)
	}
	if exists(t, path) {
		t.Error("the folder is left")
	}
}

// Sweep removes folders that killed processes have left, and empty ones. Folders in use, and
// folders with files that are not of this package, stay.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, "farmsql-"+name) }
	c := start(t, path("killed"), 2, t.TempDir())
	c.do("register")
	lives := start(t, path("lives"), 2, t.TempDir())
	for _, name := range []string{"empty", "other"} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(path("other"), "data"), path("file")} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(filepath.Join(dir, "farmsql-*")); err != nil {
		t.Fatal(err)
	}
	if !exists(t, path("killed")) {
		t.Fatal("swept away before its machine was killed")
	}
	c.kill()
	if err := Sweep(filepath.Join(dir, "farmsql-*")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"killed": false, "empty": false, "lives": true, "other": true, "file": true} {
		if exists(t, path(name)) != want {
			t.Errorf("%s exists: %v", name, !want)
		}
	}
	lives.do("register") // it is not disturbed
	if err := Sweep("["); !errors.Is(err, filepath.ErrBadPattern) {
		t.Error(err)
	}
}
