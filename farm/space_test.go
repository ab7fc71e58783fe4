package farm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// mount puts a tmpfs of a size at folder, which it makes.
func mount(t *testing.T, folder string, size int64) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount a file system")
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
}

// crowd allocates objects near the first one until there is no room, and returns
// them with the error.
func crowd(t *testing.T, m *txn.Machine, objects []region.Ptr) ([]region.Ptr, error) {
	return crowdWith(t, m, 60<<10, objects)
}

func crowdWith(t *testing.T, m *txn.Machine, size int, objects []region.Ptr) ([]region.Ptr, error) {
	for range 1 << 12 {
		var p region.Ptr
		err := m.Run(t.Context(), func(tx *txn.Tx) error {
			var near region.Addr
			if len(objects) > 0 {
				near = objects[0].Addr
			}
			q, b, err := tx.Alloc(size, near)
			if err == nil {
				p = q
				copy(b, fmt.Sprint(len(objects)))
			}
			return err
		})
		if err != nil {
			return objects, err
		}
		objects = append(objects, p)
	}
	t.Fatal("there is room for everything")
	return nil, nil
}

// Where a backup's file system is full, nothing is written there: an allocation
// fails that would need more, and what is there stays.
func TestFullBackup(t *testing.T) {
	for full, name := range []string{"primary", "backup"} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Machines: 2, Replicas: 2, Workers: 1, RegionBytes: 32 << 20, LogBytes: 1 << 20, MessageBytes: 256 << 10, Folder: t.TempDir()}
			folder := machineFolder(cfg.Folder, full)
			mount(t, folder, 8<<20)
			c := open(t, cfg)
			m := c.Machine(0)
			objects, err := crowd(t, m, nil)
			if !errors.Is(err, nvram.ErrNoSpace) || len(objects) == 0 {
				t.Fatalf("after %d objects: %v", len(objects), err)
			}
			for i, p := range objects {
				err := m.Run(t.Context(), func(tx *txn.Tx) error {
					b, err := tx.Write(p)
					if want := []byte(fmt.Sprint(i)); err == nil && !bytes.HasPrefix(b, want) {
						t.Errorf("object %d begins with %q", i, b[:len(want)])
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			// A transaction that frees memory has room for what it needs before, be the primary
			// its own machine or another.
			for machine, size := range []int{9000, 17000} {
				if _, err := crowdWith(t, c.Machine(machine), 5000, objects[:1]); !errors.Is(err, nvram.ErrNoSpace) {
					t.Fatal(err)
				}
				for _, frees := range []bool{false, true} {
					err := c.Machine(machine).Run(t.Context(), func(tx *txn.Tx) error {
						if frees {
							tx.ToFree()
						}
						_, _, err := tx.Alloc(size, objects[0].Addr)
						return err
					})
					if frees != (err == nil) || err != nil && !errors.Is(err, nvram.ErrNoSpace) {
						t.Errorf("machine %d, frees memory: %v: %v", machine, frees, err)
					}
				}
			}
			// With room again it goes on.
			if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT, fmt.Sprintf("size=%d", 16<<20)); err != nil {
				t.Fatal(err)
			}
			more, err := crowd(t, m, objects)
			if !errors.Is(err, nvram.ErrNoSpace) || len(more) <= len(objects) {
				t.Errorf("after %d objects, %d before: %v", len(more), len(objects), err)
			}
		})
	}
}

// A file system that is full from the start is an error, too, whatever it is that
// there is no room for.
func TestFullFromTheStart(t *testing.T) {
	opened := 0
	for size := int64(8 << 10); size <= 320<<10; size += 8 << 10 {
		cfg := Config{Machines: 2, Replicas: 2, Workers: 1, RegionBytes: 1 << 20, LogBytes: 128 << 10, MessageBytes: 16 << 10, Folder: t.TempDir()}
		mount(t, machineFolder(cfg.Folder, 1), size)
		c, err := Open(cfg)
		if err == nil {
			opened++
			err = c.Close()
		} else if errors.Is(err, nvram.ErrNoSpace) || errors.Is(err, syscall.ENOSPC) {
			err = nil
		}
		if err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if opened == 0 || opened == 40 {
		t.Errorf("opened %d of 40 times", opened)
	}
}
