package farm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A keeping is three machines with as many replicas and many objects, which counts the
// pieces that each machine reads to fill its replicas.
type keeping struct {
	*members
	objects []region.Ptr
	pieces  map[rdma.MachineID]int
	// killAt, if not 0, is the number of pieces after which a machine is killed.
	killAt int
	due    bool
}

const (
	keptObjects = 380
	keptBytes   = 2000
)

func keepReplicas(t *testing.T, seed uint64, f func(k *keeping)) {
	t.Helper()
	aFewMembers(t, seed, 3, 3, func(g *members) {
		k := &keeping{members: g, pieces: make(map[rdma.MachineID]int)}
		k.make(0)
		g.recovering = func(id rdma.MachineID, s recovery.Step) {
			if s != recovery.StepFilling {
				return
			}
			if k.pieces[id]++; k.pieces[id] == k.killAt {
				k.due = true
				g.world.Machine(id).Process().Sleep(time.Second) // until it is
			}
		}
		f(k)
		k.same()
	})
}

// run runs a transaction at a machine.
func (k *keeping) run(id rdma.MachineID, f func(tx *txn.Tx) error) {
	k.Helper()
	k.at(id, func(m *Member) {
		if err := m.Transactions().Run(context.Background(), f); err != nil {
			k.Fatalf("machine %d: %v", id, err)
		}
	})
}

// change writes to some of the objects, from the first on.
func (k *keeping) change(id rdma.MachineID, n int) {
	k.Helper()
	k.changeThese(id, k.objects[:n])
}

func (k *keeping) changeThese(id rdma.MachineID, objects []region.Ptr) {
	k.Helper()
	for _, p := range objects {
		k.run(id, func(tx *txn.Tx) error {
			b, err := tx.Write(p)
			if err == nil {
				b[0]++
				b[keptBytes-1]++
			}
			return err
		})
	}
}

// make makes objects in a region of a machine's own.
func (k *keeping) make(id rdma.MachineID) {
	k.Helper()
	for range keptObjects {
		k.run(id, func(tx *txn.Tx) error {
			p, _, err := tx.Alloc(keptBytes, 0)
			if err == nil {
				k.objects = append(k.objects, p)
			}
			return err
		})
	}
}

func (k *keeping) restart(id rdma.MachineID) {
	k.Helper()
	k.kill(id)
	k.awaitMembers(2)
	k.back(id)
}

// back boots a machine and waits until it has everything.
func (k *keeping) back(ids ...rdma.MachineID) {
	k.Helper()
	for _, id := range ids {
		k.boot(id)
	}
	k.until("all is whole", func() bool {
		c, _ := k.store.Load()
		return len(k.up) == len(c.Machines) && slices.ContainsFunc(ids, func(id rdma.MachineID) bool { return k.up[id] != nil }) && k.filled()
	})
}

// filled says whether no member is being filled.
func (k *keeping) filled() bool {
	c, _ := k.store.Load()
	for _, p := range c.Regions {
		if len(p.Filling) > 0 || len(p.Backups)+1 < min(c.Replicas, len(c.Machines)) {
			return false
		}
	}
	return true
}

func (k *keeping) awaitMembers(n int) {
	k.Helper()
	k.until("the others go on", func() bool {
		c, _ := k.store.Load()
		for _, m := range k.up {
			if m.settledFor.Load() != uint32(c.ID) {
				return false
			}
		}
		return len(c.Machines) == n
	})
}

// same checks that all replicas are the same.
func (k *keeping) same() {
	k.Helper()
	k.until("all is whole", func() bool { return k.whole() && len(k.up) == 3 })
	for id := range k.up {
		k.at(id, func(m *Member) {
			if err := m.Transactions().Quiesce(time.Second); err != nil {
				k.Error(err)
			}
		})
	}
	c, _ := k.store.Load()
	k.at(c.CM, func(*Member) {
		faults, err := CheckMembers(c, []*Member{k.up[0], k.up[1], k.up[2]}, slices.Values(k.objects))
		if err != nil || len(faults) > 0 {
			k.Errorf("%v: %v", faults, err)
		}
	})
	for id, m := range k.up {
		names, err := m.memory.Names()
		if i := slices.IndexFunc(names, func(n string) bool { _, ok := replicaOf(stalePrefix, n); return ok }); err != nil || i >= 0 {
			k.Errorf("machine %d has everything, and memories %v: %v", id, names, err)
		}
	}
}

// all is about how many pieces a machine reads that reads everything: three objects each,
// and some where a chunk or a slab ends.
const all = keptObjects/3 + 20

// A machine that comes back reads little more than what has changed: the chunks that the primary
// has marked.
func TestReturningMachineReadsWhatHasChanged(t *testing.T) {
	for seed := range uint64(4) {
		keepReplicas(t, seed, func(k *keeping) {
			k.kill(1)
			k.awaitMembers(2)
			k.change(0, 3)
			k.back(1)
			if n := k.pieces[1]; n == 0 || n > all/2 {
				t.Errorf("seed %d: %d pieces read for three objects, all are %d", seed, n, all)
			}
			k.pieces[1] = 0
			k.change(0, 3)
			k.restart(1)
			if n := k.pieces[1]; n > all/2 {
				t.Errorf("seed %d: %d pieces read though hardly anything has changed, all are %d", seed, n, all)
			}
		})
	}
}

// However long a returning machine takes to be filled, it does not read objects that change once it
// is a backup again: commits bring their contents.
func TestFillDoesNotReadWhatCommitsBring(t *testing.T) {
	for seed := range uint64(4) {
		keepReplicas(t, seed, func(k *keeping) {
			k.make(2)
			first := []region.Ptr{k.objects[0], k.objects[keptObjects]}
			if first[0].Addr.Region() == first[1].Addr.Region() {
				t.Fatalf("all objects are in region %d", first[0].Addr.Region())
			}
			k.kill(1)
			k.awaitMembers(2)
			k.changeThese(0, first)
			k.killAt = 1 // it rests there, and is not killed
			k.boot(1)
			k.until("the first piece is read", func() bool { return k.due })
			k.change(0, len(k.objects))
			k.until("all is whole", func() bool { return k.whole() && len(k.up) == 3 })
			if n := k.pieces[1]; n > all/2 {
				t.Errorf("seed %d: %d pieces read for two objects, all of a region are %d", seed, n, all)
			}
		})
	}
}

// If no machine is left whose marks reach back far enough, checksums tell what has changed.
func TestReturningMachineCompares(t *testing.T) {
	for seed := range uint64(4) {
		keepReplicas(t, seed, func(k *keeping) {
			k.kill(1)
			k.awaitMembers(2)
			k.change(0, 3)
			k.kill(0)
			k.kill(2)
			k.back(0, 2)
			k.back(1)
			if n := k.pieces[1]; n == 0 || n > all/2 {
				t.Errorf("seed %d: %d pieces read for three objects, all are %d", seed, n, all)
			}
		})
	}
}

// A machine that dies while it is filled goes on where it was.
func TestFillGoesOn(t *testing.T) {
	for seed := range uint64(4) {
		keepReplicas(t, seed, func(k *keeping) {
			k.kill(1)
			k.awaitMembers(2)
			k.change(0, keptObjects)
			k.killAt = all / 2
			k.boot(1)
			k.until("half is filled", func() bool { return k.due })
			k.kill(1)
			k.awaitMembers(2)
			k.change(0, 3)
			k.back(1)
			if n := k.pieces[1]; n < all/2 || n > all+all/3 {
				t.Errorf("seed %d: %d pieces read in two lives, all are %d", seed, n, all)
			}
		})
	}
}

// The same if all machines end meanwhile, and nobody remembers what has changed.
func TestFillGoesOnAfterPowerCut(t *testing.T) {
	for seed := range uint64(4) {
		keepReplicas(t, seed, func(k *keeping) {
			k.kill(1)
			k.awaitMembers(2)
			k.change(0, keptObjects)
			k.killAt = all / 2
			k.boot(1)
			k.until("half is filled", func() bool { return k.due })
			for id := range rdma.MachineID(3) {
				k.kill(id)
			}
			k.back(0, 1, 2)
			if n := k.pieces[1]; n < all/2 || n > all+all/3 {
				t.Errorf("seed %d: %d pieces read in two lives, all are %d", seed, n, all)
			}
		})
	}
}

// A replica that cannot be kept is made anew: the memory is no replica, or does not say what is
// stale.
func TestDamagedReplicaIsFilledAnew(t *testing.T) {
	for what, spoil := range map[string]func(m memories, id region.ID) error{
		"replica": func(m memories, id region.ID) error {
			mem, err := m.Map(regionName(id), 1<<20)
			if err == nil {
				mem.Store(0, 77)
			}
			return err
		},
		"what is stale": func(m memories, id region.ID) error {
			mem, err := m.Map(staleName(id), region.StaleBytes(1<<20))
			if err == nil {
				mem.Store(0, 77)
			}
			return err
		},
		"configuration": func(m memories, id region.ID) error {
			mem, err := m.Map(identityName, identityBytes)
			if err == nil {
				mem.Store(identityApplied, 0)
			}
			return err
		},
	} {
		keepReplicas(t, 1, func(k *keeping) {
			c, _ := k.store.Load()
			i := slices.IndexFunc(k.objects, func(p region.Ptr) bool { p0, _ := c.Placement(p.Addr.Region()); return p0.Primary != 1 })
			k.kill(1)
			k.awaitMembers(2)
			if err := spoil(k.world.Machine(1).Memory(), k.objects[i].Addr.Region()); err != nil {
				t.Fatal(err)
			}
			k.back(1)
			if n := k.pieces[1]; n < all*2/3 {
				t.Errorf("%s: %d pieces read, all are %d", what, n, all)
			}
		})
	}
}

// A call for another configuration, to a machine that is not the primary, or for chunks that do not
// exist gets an error.
func TestQuestionsAboutRegions(t *testing.T) {
	keepReplicas(t, 1, func(k *keeping) {
		k.at(0, func(m *Member) {
			c := m.Membership().Configuration()
			id := k.objects[0].Addr.Region()
			p, _ := c.Placement(id)
			backup := k.up[p.Backups[0]]
			primary := k.up[p.Primary]
			for what, bad := range map[string]func() error{
				"length":        func() error { _, _, _, err := primary.decodeRequest(make([]byte, 15)); return err },
				"configuration": func() error { _, _, _, err := primary.decodeRequest(regionRequest(c.ID-1, id, 0, 0)); return err },
				"region":        func() error { _, _, _, err := primary.decodeRequest(regionRequest(c.ID, 999, 0, 0)); return err },
				"backup":        func() error { _, _, _, err := backup.decodeRequest(regionRequest(c.ID, id, 0, 0)); return err },
				"too many": func() error {
					_, err := primary.onSums(m.endpoint.Self(), regionRequest(c.ID, id, 0, sumsMax+1))
					return err
				},
				"beyond the end":  func() error { _, err := primary.onSums(m.endpoint.Self(), regionRequest(c.ID, id, 15, 2)); return err },
				"marks of nobody": func() error { _, err := primary.onMarked(m.endpoint.Self(), nil); return err },
			} {
				if err := bad(); !errors.Is(err, errBadRequest) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	})
}

// A machine may find no room to record which chunks of a kept replica are stale. If the CM fails
// before it has recorded that refusal, the machine may be given the replica once more.
func TestNoRoomToKeepAReplica(t *testing.T) {
	keepReplicas(t, 53, func(k *keeping) {
		k.kill(2)
		k.awaitMembers(2)
		k.change(0, 10)
		full, attempts := k.world.Machine(2), 0
		k.memory = func(id rdma.MachineID, m Memories) Memories {
			return filling{m, func(name string) {
				switch {
				case id != 2:
				case attempts == 0 && strings.HasPrefix(name, stalePrefix):
					full.Fill(0)
					attempts++
				case attempts > 0:
					full.Relieve() // there is room for whatever else it maps
				}
			}}
		}
		refused := false
		k.storing = func(c *cluster.Configuration) {
			if slices.Contains(c.Capacity, -1) {
				refused = true
				k.world.Machine(c.CM).Process().Sleep(time.Second) // until it is killed
			}
		}
		k.boot(2)
		k.until("the CM hears of it", func() bool { return refused })
		k.storing = nil
		full.Relieve()
		k.kill(0)
		k.until("the machine is up", func() bool { return k.up[2] != nil })
		k.back(0)
		if k.ended[2] != nil || k.pieces[2] == 0 {
			t.Errorf("machine 2 has read %d pieces, and ends with %v", k.pieces[2], k.ended[2])
		}
	})
}

// A machine that had no room for a replica, and refused it, is given one when it has room again,
// in the same life.
func TestRoomForAReplicaAgain(t *testing.T) {
	keepReplicas(t, 54, func(k *keeping) {
		k.kill(2)
		k.awaitMembers(2)
		k.change(0, 10)
		full, hasRoom := k.world.Machine(2), false
		k.memory = func(id rdma.MachineID, m Memories) Memories {
			return filling{m, func(name string) {
				switch {
				case id != 2:
				case !hasRoom && (strings.HasPrefix(name, stalePrefix) || name == reserveName):
					full.Fill(0)
				default:
					full.Relieve()
				}
			}}
		}
		refused := func() bool {
			c, err := k.store.Load()
			return err == nil && slices.Contains(c.Capacity, -1)
		}
		k.boot(2)
		k.until("the machine has refused its replicas", refused)
		k.until("the machine is up", func() bool { return k.up[2] != nil })
		before, _ := k.store.Load()
		k.world.Outside().Sleep(10 * roomPollMax) // it looks in vain, and does not ask
		if c, _ := k.store.Load(); !refused() || c.ID != before.ID {
			t.Errorf("configurations %d to %d, capacities %v, of a machine that is full", before.ID, c.ID, c.Capacity)
		}
		hasRoom = true
		k.until("the machine is given replicas, and filled", k.filled)
		if refused() || k.ended[2] != nil {
			t.Errorf("the machine ended with %v", k.ended[2])
		}
		k.same()
	})
}

// filling memories tell what is about to be mapped.
type filling struct {
	Memories
	before func(name string)
}

func (f filling) Map(name string, size int64) (*nvram.Memory, error) {
	f.before(name)
	return f.Memories.Map(name, size)
}
