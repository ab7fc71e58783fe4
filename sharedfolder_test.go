package farmsql

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A machine of a cluster that stops leaves nothing where machines meet, and takes away
// what killed ones have left; a folder with anything else in it stays.
func TestSharedFolderIsRemoved(t *testing.T) {
	skipOnHeap(t)
	left := fmt.Sprintf("%s/farmsql-%d-of-a-test", sharedParent, os.Getuid())
	kept := left + "-kept"
	for _, path := range []string{left, filepath.Join(kept, "data")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.RemoveAll(kept) })
	dir := t.TempDir()
	cfg := small(filepath.Join(dir, "data"))
	cfg.Cluster = "file://" + filepath.Join(dir, "configuration")
	db := mustOpen(t, cfg)
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", left, err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(cfg.sharedFolder()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cfg.sharedFolder()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", cfg.sharedFolder(), err)
	}
}
