package shm

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Machines of one process open a new folder at once, as they do in benchmarks.
func TestFolderIsMadeByManyAtOnce(t *testing.T) {
	const rounds, machines = 50, 8
	for range rounds {
		path := filepath.Join(t.TempDir(), "shared")
		var errs [machines]error
		var begin, all sync.WaitGroup
		begin.Add(1)
		for i := range machines {
			all.Go(func() {
				begin.Wait()
				f, settled, err := openFolder(path)
				if errs[i] = err; err == nil {
					settled()
					errs[i] = f.dir.Close()
				}
			})
		}
		begin.Done()
		all.Wait()
		for i, err := range errs {
			if err != nil {
				t.Fatalf("machine %d: %v", i, err)
			}
		}
		if entries, err := os.ReadDir(path); err != nil || len(entries) != 1 {
			t.Fatalf("%v, %v: a draft is left", entries, err)
		}
	}
}

// Who saw no mark finds one, and a machine, when it is about to set it.
func TestFolderIsMarkedMeanwhile(t *testing.T) {
	path := t.TempDir()
	name := filepath.Join(path, formatName)
	if err := writeFormat(path, name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "machine-1.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeFormat(path, name); err != nil {
		t.Error(err)
	}
}
