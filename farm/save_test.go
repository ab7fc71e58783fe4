package farm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/txn"
)

// bump opens the instance, changes its root object from the value before to the
// one after, and closes it.
func bump(t *testing.T, cfg Config, before byte) {
	t.Helper()
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Machine(0).Run(context.Background(), func(tx *txn.Tx) error {
		b, err := tx.Write(c.Root())
		if err == nil {
			if b[0] != before {
				t.Errorf("the root object says %d, want %d", b[0], before)
			}
			b[0] = before + 1
		}
		return err
	})
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
}

// A power cut takes a tmpfs with everything on it, but not the saves.
func TestRestoreAfterTheFolderIsGone(t *testing.T) {
	cfg := small(3, 2)
	cfg.Folder = filepath.Join(t.TempDir(), "tmpfs")
	cfg.Saves = filepath.Join(t.TempDir(), "saves")
	for i := range byte(3) {
		bump(t, cfg, i)
		if err := os.RemoveAll(cfg.Folder); err != nil {
			t.Fatal(err)
		}
	}
	bump(t, cfg, 3)
	bump(t, cfg, 4) // from the folder itself
}

// If commits after the newest save have been lost with the folder, Open fails: it does not silently go
// back to that save.
func TestOldSaveIsRefused(t *testing.T) {
	cfg := small(1, 1)
	cfg.Folder = filepath.Join(t.TempDir(), "tmpfs")
	cfg.Saves = filepath.Join(t.TempDir(), "saves")
	bump(t, cfg, 0)
	c, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.stop(), c.closeMemory(), os.RemoveAll(cfg.Folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cfg); !errors.Is(err, nvram.ErrLost) {
		t.Errorf("opened from a save that is too old: %v", err)
	}
}
