package farm

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// free frees objects.
func free(t *testing.T, m *txn.Machine, objects []region.Ptr) {
	t.Helper()
	for _, p := range objects {
		if err := m.Run(t.Context(), func(tx *txn.Tx) error { return tx.Free(p) }); err != nil {
			t.Fatal(err)
		}
	}
}

// The storage of freed objects soon goes back to the file systems of all replicas, and can be used
// for anything.
func TestFreedStorageIsGivenBack(t *testing.T) {
	cfg := Config{Machines: 2, Replicas: 2, Workers: 1, RegionBytes: 32 << 20, LogBytes: 1 << 20, MessageBytes: 256 << 10, Folder: t.TempDir()}
	var folders []string
	for i := range 2 {
		folders = append(folders, machineFolder(cfg.Folder, i))
		mount(t, folders[i], 24<<20)
	}
	c := open(t, cfg)
	m := c.Machine(0)
	for round := range 3 {
		objects, err := crowd(t, m, nil)
		if !errors.Is(err, nvram.ErrNoSpace) || len(objects) < 200 {
			t.Fatalf("round %d, after %d objects: %v", round, len(objects), err)
		}
		free(t, m, objects)
		for i, folder := range folders {
			deadline := time.Now().Add(10 * time.Second)
			for {
				free, err := nvram.FreeBytes(folder)
				if err != nil {
					t.Fatal(err)
				}
				if free > 12<<20 { // less an eighth of the region, and logs
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("round %d: %d bytes are free at machine %d", round, free, i)
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
}

// The same holds for members whose memory is full.
func TestMembersGiveStorageBack(t *testing.T) {
	aFewMembers(t, 61, 3, 3, func(g *members) {
		for round, bytes := range []int{60 << 10, 20 << 10, 60 << 10} {
			var objects []region.Ptr
			g.at(0, func(m *Member) {
				for range (512 << 10) / bytes {
					objects = append(objects, g.alloc(m, bytes))
				}
			})
			for id := range rdma.MachineID(3) {
				g.world.Machine(id).Fill(0)
			}
			g.at(0, func(m *Member) { free(t, m.txn, objects) })
			// Less the eighth of the region that may stay.
			const pages = (512<<10 - region.MinSize/8) / 4096
			for id := range rdma.MachineID(3) {
				g.until(fmt.Sprintf("round %d: machine %d has room", round, id), func() bool {
					return g.world.Machine(id).FreePages() >= pages-16
				})
			}
			for id := range rdma.MachineID(3) {
				g.world.Machine(id).Relieve()
			}
		}
	})
}

// alloc makes an object.
func (g *members) alloc(m *Member, bytes int) (p region.Ptr) {
	err := m.txn.Run(g.Context(), func(tx *txn.Tx) (err error) {
		p, _, err = tx.Alloc(bytes, 0)
		return err
	})
	if err != nil {
		g.Fatal(err)
	}
	return p
}

// A check finds nothing wrong while storage is given back in the background: replicas do
// that one after the other.
func TestCheckBesideGivingBack(t *testing.T) {
	c := open(t, Config{Machines: 3, Replicas: 3, Workers: 1, RegionBytes: 16 << 20, LogBytes: 8 << 20, MessageBytes: 256 << 10, Folder: t.TempDir()})
	m := c.Machine(0)
	for round := range 12 {
		var objects []region.Ptr
		err := m.Run(t.Context(), func(tx *txn.Tx) error {
			objects = nil
			for range 800 {
				p, _, err := tx.Alloc(4000+64*round, 0)
				if err != nil {
					return err
				}
				objects = append(objects, p)
			}
			return nil
		})
		if err == nil {
			err = m.Run(t.Context(), func(tx *txn.Tx) error {
				for _, p := range objects {
					if err := tx.Free(p); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range c.members {
			x.askReclaim()
		}
		for range 8 {
			faults, err := c.Check(t.Context(), none)
			if err != nil || len(faults) > 0 {
				t.Fatalf("round %d: %v, %d faults, the first: %v", round, err, len(faults), faults[:min(1, len(faults))])
			}
		}
	}
}

func none(func(region.Ptr) bool) {}
