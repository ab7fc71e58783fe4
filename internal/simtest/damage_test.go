package simtest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A damage is a changed word of a replica: one bit of it, or all bits.
type damage struct {
	machine rdma.MachineID
	place   cluster.Placement
	memory  *nvram.Memory
	off     uint64
	mask    uint64
	// slot is the slot with the word; the nil pointer if no slot has it.
	slot   region.Ptr
	header region.Header
}

func (d damage) String() string {
	return fmt.Sprintf("machine %d, region %d (primary %d, backups %v), word %#x ^ %#x, slot %v %v at byte %d",
		d.machine, d.place.Region, d.place.Primary, d.place.Backups, d.off, d.mask, d.slot, d.header, d.within())
}

// within returns the offset of the word in its slot.
func (d damage) within() uint64 { return d.off - uint64(d.slot.Addr.Offset()) }

// change does the damage, or undoes it.
func (d damage) change() { d.memory.Store(d.off, d.memory.Load(d.off)^d.mask) }

// isUsed reports whether anybody ever reads the word. Nobody reads the old bytes of free slots and
// of blocks that belong to no slab: they are cleared or written first.
func (d damage) isUsed() bool {
	return !d.slot.IsNil() && (d.header.Allocated() || d.within() < region.HeaderBytes)
}

// shows reports whether memory alone shows the damage. Without another replica, nothing shows which
// version, payload, or incarnation of a free slot is correct.
func (d damage) shows() bool {
	const (
		lineBytes = 64
		flags     = uint64(0xf) << 60  // of a header
		version   = uint64(0xffff)     // of a line, and the end of a header's
		spare     = uint64(0xff) << 56 // of an incarnation: no pointer has them
	)
	isWide := d.slot.Class().Size() > lineBytes
	switch {
	case !d.isUsed():
		return false
	case len(d.place.Backups) > 0:
		return true
	case d.within() == 0:
		return d.mask&flags != 0 || isWide && d.mask&version != 0 && d.header.Allocated()
	case d.within() < region.HeaderBytes:
		return d.header.Allocated() || d.mask&spare != 0
	}
	return d.within()%lineBytes == 0 && d.mask&version != 0
}

// A damager damages the memory of machines on which nothing runs any more.
type damager struct {
	*run
	rng       *rand.Rand
	now       *cluster.Configuration
	reachable []region.Ptr
}

// draw draws a word of some replica: usually a word of a slot, and in one of four cases any word
// behind the block table.
func (d *damager) draw(t *testing.T) damage {
	p := d.now.Regions[d.rng.IntN(len(d.now.Regions))]
	x := damage{place: p, machine: p.Replicas()[d.rng.IntN(1+len(p.Backups))], mask: 1 << d.rng.IntN(64)}
	if d.rng.IntN(2) == 0 {
		x.mask = d.rng.Uint64()
	}
	shelf := d.machine(int(x.machine)).Memory()
	err := shelf.Close() // nothing runs any more, but it has this mapped
	if err != nil {
		t.Fatal(err)
	}
	mem, err := shelf.Map(fmt.Sprintf("region-%d", p.Region), d.options.Farm.RegionBytes)
	if err != nil {
		t.Fatal(err)
	}
	r, err := region.Open(p.Region, mem)
	if err != nil {
		t.Fatal(err)
	}
	x.memory = mem
	type slot struct {
		p region.Ptr
		h region.Header
	}
	var slots []slot
	first := mem.Size()
	r.Objects(func(p region.Ptr, h region.Header) bool {
		first = min(first, uint64(p.Addr.Offset()))
		if h.Allocated() || d.rng.IntN(64) == 0 {
			slots = append(slots, slot{p, h})
		}
		return true
	})
	if len(slots) == 0 || d.rng.IntN(4) == 0 {
		x.off = min(mem.Size()-8, first+d.rng.Uint64N(mem.Size()-min(first, mem.Size()-8))&^7)
		r.Objects(func(p region.Ptr, h region.Header) bool {
			if begin := uint64(p.Addr.Offset()); begin <= x.off && x.off < begin+uint64(p.Class().Size()) {
				x.slot, x.header = p, h
			}
			return x.slot.IsNil()
		})
		return x
	}
	s := slots[d.rng.IntN(len(slots))]
	x.slot, x.header = s.p, s.h
	x.off = uint64(s.p.Addr.Offset())
	if words := s.p.Class().Size() / 8; d.rng.IntN(2) == 0 {
		x.off += uint64(8 * d.rng.IntN(words))
	} else {
		x.off += uint64(8 * d.rng.IntN(min(words, 3)))
	}
	return x
}

// check checks all stores.
func (d *damager) check() (found []farm.Fault, err error) {
	d.nodes[0].process.Do(func() {
		found, err = d.cluster.Check(iter.Seq[region.Ptr](slices.Values(d.reachable)))
	})
	return found, err
}

// try does a damage and reports whether the check has found it at its place.
func (d *damager) try(t *testing.T, x damage) bool {
	x.change()
	found, err := d.check()
	if err != nil {
		t.Fatalf("seed %d: %v: %v", d.options.Seed, x, err)
	}
	return slices.ContainsFunc(found, func(f farm.Fault) bool { return f.Ptr.Addr == x.slot.Addr })
}

// damagesMany is how many words are changed in each run.
const damagesMany = 40

// damageCounts count damages: found, those that cannot be found without another replica, and those
// that nobody ever notices.
type damageCounts struct{ found, alone, unused int }

// damageAll damages one word after the other. Unused words stay damaged, and do no harm in the end.
func (d *damager) damageAll(t *testing.T, c *damageCounts) {
	for range damagesMany {
		x := d.draw(t)
		isFound := d.try(t, x)
		switch {
		case isFound != x.shows():
			t.Errorf("seed %d: found %v: %v", d.options.Seed, isFound, x)
			x.change()
		case !x.isUsed():
			c.unused++
		case isFound:
			c.found++
			x.change()
		default:
			c.alone++
			x.change()
		}
	}
	if err := d.finalCheck(); err != nil {
		t.Errorf("seed %d: what nobody uses was damaged: %v", d.options.Seed, err)
	}
}

// The check finds each damaged word of an object at any replica: in the header, the payload or the
// line versions. Only two kinds of damage are not found: in a payload without another replica, and
// in memory that nobody uses.
func TestDamage(t *testing.T) {
	var c damageCounts
	for seed := uint64(1); seed <= 20; seed++ {
		o := Draw(seed)
		o.New, o.Errands = NewMembers, seed%2 == 0
		r := newRun(o)
		j := &injector{run: r, struck: r.outside.NewEvent()}
		faults := injectionOf(j)
		err := r.world.Run(func() {
			if r.fail(r.phases(faults)); r.failure != nil {
				return
			}
			d := &damager{run: r, rng: rand.New(rand.NewPCG(seed, 0xda3a6e)), now: j.health.copies.now}
			r.nodes[0].process.Do(func() {
				var err error
				d.reachable, err = r.store.reachable(r.nodes[0])
				r.fail(err)
			})
			d.damageAll(t, &c)
		})
		if err != nil || r.failure != nil {
			t.Fatalf("seed %d: %v, %v", seed, err, r.failure)
		}
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d damages found, %d of replicas without another, %d of memory that nobody uses", c.found, c.alone, c.unused)
	if c.found < 300 || c.alone < 10 || c.unused < 30 {
		t.Errorf("%+v", c)
	}
}
