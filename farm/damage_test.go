package farm

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// An instance is refused if a machine lacks some of its memory, however often it is tried. The
// error says where that is and what to do, the attempts leave nothing behind, and the instance
// opens whole once the memory is put back.
func TestDamagedMachineIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(machine string) error
		want   error
	}{
		"no region":    {func(machine string) error { return os.Remove(filepath.Join(machine, "region-1.mem")) }, nvram.ErrLost},
		"cut short":    {func(machine string) error { return os.Truncate(filepath.Join(machine, "region-1.mem"), 4096) }, nvram.ErrSize},
		"no header":    {func(machine string) error { return spoil(filepath.Join(machine, "region-1.mem")) }, region.ErrFormat},
		"no identity":  {func(machine string) error { return os.Remove(filepath.Join(machine, IdentityFile)) }, nvram.ErrLost},
		"empty folder": {func(machine string) error { return errors.Join(os.RemoveAll(machine), os.Mkdir(machine, 0o700)) }, nvram.ErrLost},
		"no folder":    {os.RemoveAll, nvram.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := small(3, 3)
			cfg.Folder = filepath.Join(t.TempDir(), "data")
			bump(t, cfg, 0)
			machine, kept := machineFolder(cfg.Folder, 1), filepath.Join(t.TempDir(), "kept")
			if err := errors.Join(os.CopyFS(kept, os.DirFS(machine)), c.damage(machine)); err != nil {
				t.Fatal(err)
			}
			var left []string
			for try := range 3 {
				_, err := Open(cfg)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), machine) || advice["anew"].FindString(err.Error()) == "" {
					t.Errorf("%v", err)
				}
				names, err := filepath.Glob(filepath.Join(cfg.Folder, "*", "*"))
				if err != nil {
					t.Fatal(err)
				}
				if try > 0 && !slices.Equal(names, left) {
					t.Errorf("an attempt has left %v behind, of which %v were there", names, left)
				}
				left = names
			}
			if err := errors.Join(os.RemoveAll(machine), os.CopyFS(machine, os.DirFS(kept))); err != nil {
				t.Fatal(err)
			}
			if got := says(t, cfg); got != 1 {
				t.Errorf("the instance says %d", got)
			}
		})
	}
}

// Open leaves folders alone that have names like those of machines and belong to none.
func TestStrayMachine(t *testing.T) {
	for name, cfg := range map[string]Config{"of an earlier version": earlier, "of this one": small(2, 2)} {
		t.Run(name, func(t *testing.T) {
			if cfg.Machines == earlier.Machines {
				cfg.Folder = earlierFolder(t)
			} else {
				cfg.Folder = filepath.Join(t.TempDir(), "data")
				bump(t, cfg, 0)
			}
			stray := machineFolder(cfg.Folder, 7)
			if err := errors.Join(os.CopyFS(stray, os.DirFS(machineFolder(cfg.Folder, 1))), os.Mkdir(machineFolder(cfg.Folder, 8), 0o700)); err != nil {
				t.Fatal(err)
			}
			was, err := os.ReadDir(stray)
			if err != nil {
				t.Fatal(err)
			}
			stored, _, err := Stored(cfg.Folder)
			if err != nil || stored.Machines != cfg.Machines {
				t.Errorf("%d machines, %v", stored.Machines, err)
			}
			if c := open(t, cfg); c.Machines() != cfg.Machines {
				t.Errorf("%d machines", c.Machines())
			}
			if now, err := os.ReadDir(stray); err != nil || len(now) != len(was) {
				t.Errorf("%d files are %d, %v", len(was), len(now), err)
			}
		})
	}
}

// A first start that is killed may leave machines that belong to no instance yet, and a
// configuration without them. They count as machines of its instance.
func TestFounderBelongsToNothingYet(t *testing.T) {
	cfg := small(3, 1)
	cfg.Folder = filepath.Join(t.TempDir(), "data")
	bump(t, cfg, 0)
	store := cluster.NewFileStore(configurationPath(cfg.Folder))
	was, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	next, _ := was.Without([]rdma.MachineID{1, 2}, 0)
	if err := errors.Join(store.CompareAndSwap(was.Revision, next), store.Close()); err != nil {
		t.Fatal(err)
	}
	for machine := 1; machine < 3; machine++ {
		path := filepath.Join(machineFolder(cfg.Folder, machine), IdentityFile)
		if err := errors.Join(os.Truncate(path, 0), os.Truncate(path, identityBytes)); err != nil {
			t.Fatal(err)
		}
	}
	if stored, _, err := Stored(cfg.Folder); err != nil || stored.Machines != 3 {
		t.Errorf("%d machines, %v", stored.Machines, err)
	}
	if got := says(t, cfg); got != 1 {
		t.Errorf("the instance says %d", got)
	}
}

// spoil overwrites the beginning of a file.
func spoil(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strings.Repeat("spoilt", 100)), 0)
	return errors.Join(err, f.Close())
}
