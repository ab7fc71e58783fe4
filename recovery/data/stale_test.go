package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
)

// A mistake is a step of what keeps a replica up to date that is left out, or done wrongly.
type mistake int

const (
	none mistake = iota
	forgetNothing
	noGenerations
	marksLate
	bitsLost
	tableNotSaved
)

const (
	staleRegionBytes = 4 << 20
	tableAt          = 64 // where block words begin, 8 bytes each
	blocks           = 128
)

// A logged write is one that lies in the log of the machine that comes and goes.
type logged struct {
	ptr         region.Ptr
	payload     []byte
	version     region.Version
	allocated   bool
	incarnation uint64
}

// A returning is the history of a region at a primary, a backup that stays, and a machine
// that comes and goes, which keeps its replica.
type returning struct {
	*testing.T
	rng     *rand.Rand
	mistake mistake
	marks   bool // reach back as far as is asked for

	primary, backup *region.Region
	allocator       *region.Allocator
	epoch           uint64
	live            []region.Ptr
	writes          int

	// The memory of the machine that comes and goes, and what is open there.
	memory, staleMemory *nvram.Memory
	replica             *region.Region // nil while it is away
	stale               *region.Stale
	log                 []logged
	asOf                uint32
	configuration       uint32

	// changed are the chunks that have changed in this life, or while the machine was away
	// before it; due is how many had in lives before. read is what has been read.
	changed   map[uint64]bool
	due, read int
}

func newReturning(t *testing.T, seed uint64, marks bool, wrong mistake) *returning {
	x := &returning{T: t, rng: rand.New(rand.NewPCG(seed, 1)), marks: marks, mistake: wrong, configuration: 1, changed: make(map[uint64]bool)}
	x.memory = nvram.NewMemory(staleRegionBytes)
	for _, r := range []**region.Region{&x.primary, &x.backup} {
		*r = x.must(region.Format(1, nvram.NewMemory(staleRegionBytes)))
	}
	x.replica = x.must(region.Format(1, x.memory))
	x.attach()
	return x
}

func (x *returning) must(r *region.Region, err error) *region.Region {
	x.Helper()
	x.check(err)
	return r
}

func (x *returning) check(err error) {
	x.Helper()
	if err != nil {
		x.Fatal(err)
	}
}

// attach makes the allocator of the primary.
func (x *returning) attach() {
	x.allocator = region.NewAllocator(region.AllocatorConfig{Workers: 1, Replicate: func(_ *region.Tenure, off uint64, b []byte, _ uint32) error {
		x.backup.Memory().CopyIn(off, b)
		if x.replica != nil {
			x.replica.Memory().CopyIn(off, b)
		}
		return nil
	}})
	x.allocator.Add(x.primary)
	x.allocator.Advance(x.epoch)
}

// write commits one write: at once where it is for good, and at the machine that comes
// and goes when its log is truncated, or before, as at a coordinator's own backup.
func (x *returning) write(p region.Ptr, allocated bool, incarnation uint64) {
	v := x.primary.Header(p.Addr.Offset()).Version()
	if !x.primary.Lock(p, v) {
		x.Fatalf("%v is locked", p)
	}
	x.writes++
	payload := bytes.Repeat([]byte(fmt.Sprint(x.writes, " ")), 4)
	payload = payload[:min(len(payload), p.Capacity())]
	x.primary.Write(p, payload, v+1, allocated, incarnation)
	x.backup.ApplyBackup(p, payload, v+1, allocated, incarnation)
	if x.replica == nil || x.stale != nil {
		x.changed[uint64(p.Addr.Offset())/region.ChunkBytes] = true
	}
	if x.replica != nil {
		x.log = append(x.log, logged{p, payload, v + 1, allocated, incarnation})
		if x.rng.IntN(3) == 0 {
			x.replica.ApplyBackup(p, payload, v+1, allocated, incarnation)
		}
		x.truncate(len(x.log) / 2)
	}
}

// truncate applies the oldest n records of the log.
func (x *returning) truncate(n int) {
	for _, w := range x.log[:n] {
		x.replica.ApplyBackup(w.ptr, w.payload, w.version, w.allocated, w.incarnation)
	}
	x.log = x.log[n:]
}

var payloads = []int{40, 900, 5000, 90_000}

func (x *returning) alloc(payload int) {
	p, _, _, err := x.allocator.Alloc(region.Ordinary, 0, payload, 0)
	if errors.Is(err, region.ErrFull) {
		x.reshape()
		return
	}
	x.check(err)
	x.write(p, true, p.Incarnation())
	x.live = append(x.live, p)
}

func (x *returning) free(i int) {
	p := x.live[i]
	x.write(p, false, p.Incarnation()+1)
	x.allocator.Release(p)
	x.live[i] = x.live[len(x.live)-1]
	x.live = x.live[:len(x.live)-1]
}

// reshape frees all objects of a size and lets their blocks serve others.
func (x *returning) reshape() {
	payload := payloads[x.rng.IntN(len(payloads))]
	c, _ := region.ClassFor(payload)
	for i := len(x.live) - 1; i >= 0; i-- {
		if x.live[i].Class() == c {
			x.free(i)
		}
	}
	x.reclaim()
}

// churn has all blocks serve another size, and then one size again.
func (x *returning) churn() {
	for _, i := range x.rng.Perm(len(payloads))[:2] {
		for len(x.live) > 0 {
			x.free(len(x.live) - 1)
		}
		x.reclaim()
		for n := 0; n < 200; n++ {
			x.alloc(payloads[i])
			x.stripGenerations()
		}
		for _, p := range x.live {
			x.write(p, true, p.Incarnation())
		}
	}
}

// reclaim ends epochs, once what was committed has been applied everywhere.
func (x *returning) reclaim() {
	if x.replica != nil {
		x.truncate(len(x.log))
	}
	for range 3 {
		x.epoch++
		x.allocator.Advance(x.epoch)
	}
}

// run does some random things.
func (x *returning) run(n int) {
	for range n {
		switch k := x.rng.IntN(20); {
		case k < 8 && len(x.live) > 0:
			p := x.live[x.rng.IntN(len(x.live))]
			x.write(p, true, p.Incarnation())
		case k < 11 && len(x.live) > 0:
			x.free(x.rng.IntN(len(x.live)))
		case k < 19:
			x.alloc(payloads[x.rng.IntN(len(payloads))])
		default:
			x.reshape()
		}
		x.stripGenerations()
	}
}

// stripGenerations removes the generations from all replicas.
func (x *returning) stripGenerations() {
	if x.mistake != noGenerations {
		return
	}
	for _, m := range []*nvram.Memory{x.primary.Memory(), x.backup.Memory(), x.memory} {
		for i := uint64(0); i < blocks; i++ {
			m.Store(tableAt+8*i, m.Load(tableAt+8*i)&^(0xffff<<32))
		}
	}
}

// fail ends a life of the machine that comes and goes: with writes that never commit, which
// it had applied already, and with objects that it was just writing, or had locked.
func (x *returning) fail() {
	for range min(x.rng.IntN(4), len(x.live)) {
		p := x.live[x.rng.IntN(len(x.live))]
		h := x.replica.Header(p.Addr.Offset())
		w := logged{p, []byte("never committed"), h.Version() + 1, true, p.Incarnation()}
		x.log = append(x.log, w)
		x.replica.ApplyBackup(w.ptr, w.payload, w.version, w.allocated, w.incarnation)
	}
	for _, w := range x.log {
		if x.rng.IntN(3) == 0 && x.replica.SetLock(w.ptr) {
			x.memory.Store(uint64(w.ptr.Addr.Offset())+16, 0xbad)
		}
	}
	for _, w := range x.log {
		x.changed[uint64(w.ptr.Addr.Offset())/region.ChunkBytes] = true
	}
	x.due += len(x.changed)
	clear(x.changed)
	x.asOf = x.configuration
	x.replica, x.stale = nil, nil
	if x.mistake == marksLate {
		x.run(20)
	}
	if !x.marks { // the others have been restarted
		for _, r := range []*region.Region{x.primary, x.backup} {
			r.Unmark()
			r.Mark(x.configuration + 1000)
		}
	}
	x.reconfigure()
}

// reconfigure begins the next configuration.
func (x *returning) reconfigure() {
	x.configuration++
	x.primary.Mark(x.configuration)
	x.backup.Mark(x.configuration)
}

// promote makes the backup the primary.
func (x *returning) promote() {
	x.reconfigure()
	x.primary, x.backup = x.backup, x.primary
	x.attach()
}

// comeBack begins another life of the machine, and fills its replica until it fails again,
// or has everything.
func (x *returning) comeBack() (filled bool) {
	x.reconfigure()
	r := x.must(region.Open(1, x.memory))
	var err error
	if x.staleMemory == nil || x.mistake == bitsLost {
		x.staleMemory = nvram.NewMemory(region.StaleBytes(staleRegionBytes))
		x.check(r.FormatStale(x.asOf+1, x.staleMemory))
		x.stale, err = r.OpenStale(x.staleMemory)
	} else if x.stale, err = r.OpenStale(x.staleMemory); err == nil {
		x.stale.Rejoin(x.asOf + 1)
	}
	x.check(err)
	if x.mistake != forgetNothing {
		for _, w := range x.log {
			x.stale.Forget(w.ptr)
			x.stale.Forget(w.ptr) // as after a crash
		}
	}
	x.log = nil
	x.replica = r
	r.BeginFill()
	x.compareBlocks()
	if x.asOf = x.configuration; x.rng.IntN(4) == 0 {
		return false // it fails right away
	}
	return x.fill()
}

// compareBlocks is what comes before the region is active: blocks may change hands, but
// nothing is committed.
func (x *returning) compareBlocks() {
	off, n := x.primary.Table()
	if p, _, _, err := x.allocator.Alloc(region.Ordinary, 0, payloads[x.rng.IntN(len(payloads))], 0); err == nil {
		x.allocator.Release(p)
	}
	before, table := make([]byte, n), make([]byte, n)
	x.replica.Memory().CopyOut(before, off)
	x.primary.Memory().CopyOut(table, off)
	x.replica.Memory().CopyIn(off, table)
	if x.mistake == tableNotSaved {
		x.staleMemory.Zero(64+staleRegionBytes/region.ChunkBytes/8, n)
		x.staleMemory.CopyIn(64+staleRegionBytes/region.ChunkBytes/8, table)
	}
	for i := 0; i < blocks; i++ {
		at := tableAt - off + 8*uint64(i)
		if !bytes.Equal(before[at:at+8], table[at:at+8]) {
			first := uint64(i) * staleRegionBytes / blocks
			for c := first; c < first+staleRegionBytes/blocks; c += 1 << 10 {
				x.changed[c/region.ChunkBytes] = true
			}
		}
	}
	x.stale.Compare()
	x.stale.Compare() // a call that comes twice
}

// fill fills the replica, with transactions under way, until it has everything or fails.
func (x *returning) fill() bool {
	ctx, fail := context.WithCancel(context.Background())
	defer fail()
	if x.rng.IntN(2) == 0 {
		ctx, fail = context.WithCancel(context.Background())
		defer fail()
	}
	reads, failAt := 0, x.rng.IntN(60)
	f := Refill{Stale: x.stale, Clock: new(fastClock), Pace: Aggressive,
		Hold: func() func() { return func() {} },
		Marked: func(_ context.Context, since uint32) (region.ChunkSet, bool, error) {
			set, ok := x.primary.Marked(since)
			if ok != x.marks && x.mistake == none {
				x.Fatalf("marks since %d: %v", since, ok)
			}
			return set, ok, nil
		},
		Sums: func(_ context.Context, chunk, n int) ([]uint64, error) { return x.primary.Sums(chunk, n), nil },
		Read: func(_ context.Context, off uint64, dst []byte) error {
			if reads++; reads == failAt {
				fail()
			}
			x.primary.Memory().CopyOut(dst, off)
			return nil
		},
		Bytes: func(n int) {
			x.read += n
			if x.rng.IntN(4) == 0 {
				x.run(3)
			}
		},
	}
	err := f.Run(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		x.Fatal(err)
	}
	return err == nil
}

// whole ends a filling that is complete, and returns how the replicas differ.
func (x *returning) whole() error {
	x.truncate(len(x.log))
	x.replica.EndFill()
	x.staleMemory, x.stale = nil, nil
	x.primary.Unmark()
	x.backup.Unmark()
	due := x.due + len(x.changed)
	if x.read > due*(region.ChunkBytes+94<<10) && x.mistake == none {
		x.Errorf("%d bytes read, %d chunks had changed", x.read, due)
	}
	clear(x.changed)
	x.due, x.read = 0, 0
	return x.differs()
}

func (x *returning) differs() error {
	for p, h := range x.primary.Objects {
		other, off := x.replica.Header(p.Addr.Offset()), p.Addr.Offset()
		if h != other || p.Incarnation() != x.replica.Incarnation(off) {
			return fmt.Errorf("%v is %v, incarnation %d, at the primary, %v, incarnation %d, at the replica", p, h, p.Incarnation(), other, x.replica.Incarnation(off))
		}
		if !h.Allocated() {
			continue
		}
		a, b := make([]byte, p.Capacity()), make([]byte, p.Capacity())
		_, errA := x.primary.ReadObject(p, a)
		_, errB := x.replica.ReadObject(p, b)
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			return fmt.Errorf("%v holds %.20q at the primary, %.20q at the replica: %v, %v", p, a, b, errA, errB)
		}
	}
	for i := uint64(0); i < blocks; i++ {
		if a, b := x.primary.Memory().Load(tableAt+8*i), x.memory.Load(tableAt+8*i); a != b {
			return fmt.Errorf("block %d is %#x at the primary, %#x at the replica", i, a, b)
		}
	}
	return nil
}

// play is one history: the machine fails and comes back, several times.
func (x *returning) play() error {
	x.run(300)
	for range 4 {
		x.run(60)
		for filled := false; !filled; {
			x.fail()
			x.run(x.rng.IntN(80))
			if x.rng.IntN(3) == 0 {
				x.churn()
			}
			if x.rng.IntN(2) == 0 {
				x.promote()
				x.run(x.rng.IntN(40))
			}
			filled = x.comeBack()
		}
		if err := x.whole(); err != nil {
			return err
		}
	}
	return nil
}

// A machine that comes back keeps its replica and fetches what has changed, and then has
// what the primary has, whatever happened meanwhile: by marks, and by checksums.
func TestReturningReplica(t *testing.T) {
	for seed := range uint64(20) {
		for _, marks := range []bool{true, false} {
			x := newReturning(t, seed, marks, none)
			if err := x.play(); err != nil {
				t.Fatalf("seed %d, marks %v: %v", seed, marks, err)
			}
		}
	}
}

// Each step matters: histories go wrong when it is left out.
func TestReturningReplicaMistakes(t *testing.T) {
	for wrong, what := range map[mistake]string{
		forgetNothing: "what the own logs write to is not forgotten",
		noGenerations: "blocks have no generations",
		marksLate:     "marks begin late",
		bitsLost:      "what is stale is not known after a crash",
		tableNotSaved: "the block table is not saved",
	} {
		caught := false
		for seed := uint64(0); seed < 60 && !caught; seed++ {
			if err := newReturning(t, seed, true, wrong).play(); err != nil {
				t.Logf("%s: seed %d: %v", what, seed, err)
				caught = true
			}
		}
		if !caught {
			t.Errorf("nobody notices that %s", what)
		}
	}
}
