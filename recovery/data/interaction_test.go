package data

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// The scripts in testdata/interaction fill a replica, and rebuild free lists, step by step.
//
//	new objects=N                 a primary with objects, and a replica that is to be filled
//	lock object=N [reads=N]       by a commit at the primary, until it has been read so often
//	write object=N value=N        a commit: at the primary, and at the replica
//	fill [stop=N] [quiet]         fills the replica, until the next configuration begins at
//	                              the n'th READ
//	away since=N                  the replica's machine is away from a configuration on, with its
//	                              memory, and the primary marks what changes
//	back since=N [marks=no]       it comes back; the primary has marks since then, or not
//	scan                          another machine becomes the primary, and rebuilds free lists
//	objects                       how many differ
func TestInteraction(t *testing.T) {
	datadriven.Walk(t, "testdata/interaction", func(t *testing.T, path string) {
		x := new(interaction)
		datadriven.RunTest(t, path, x.run)
	})
}

// A scriptClock waits for half of what it may, at random.
type scriptClock struct{ *fastClock }

func (scriptClock) Uint64() uint64 { return uint64(Slow.Interval / 2) }

// An interaction is a primary and a replica that a script drives.
type interaction struct {
	*refill
	t       *testing.T
	log     strings.Builder
	isAway  bool
	isQuiet bool // READs are counted only
	locked  region.Ptr
	until   int // how many READs of it are left until it is unlocked
	stop    int // the READ at which the next configuration begins; 0: none
	cancel  context.CancelFunc
}

func (x *interaction) say(format string, args ...any) { fmt.Fprintf(&x.log, format+"\n", args...) }

func (x *interaction) run(t *testing.T, d *datadriven.TestData) string {
	x.t = t
	x.log.Reset()
	argument := func(name string, n int) int {
		d.MaybeScanArgs(t, name, &n)
		return n
	}
	switch d.Cmd {
	case "new":
		x.open(argument("objects", 0))
	case "lock":
		x.locked, x.until = x.ptrs[argument("object", 0)], argument("reads", 1)
		if !x.primary.SetLock(x.locked) {
			t.Fatal("locked")
		}
	case "write":
		x.write(argument("object", 0), byte(argument("value", 0)))
	case "fill":
		x.stop, x.isQuiet, x.reads = argument("stop", 0), d.HasArg("quiet"), 0
		x.fill()
	case "away":
		x.isAway = true
		x.primary.Mark(uint32(argument("since", 0)))
	case "back":
		x.back(uint32(argument("since", 0)), !d.HasArg("marks"))
	case "scan":
		x.scan()
	case "objects":
		x.compare()
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	return x.log.String()
}

func (x *interaction) open(objects int) {
	x.refill = newRefill(x.t, objects)
	x.Refill.Clock = scriptClock{x.clock}
	x.clock.then = func() {
		if !x.isQuiet {
			x.say("waits %v", x.clock.sleeps[len(x.clock.sleeps)-1])
		}
	}
	x.Read = func(_ context.Context, off uint64, dst []byte) error {
		if x.held != 1 {
			x.say("READs while no epoch is held")
		}
		if x.reads++; !x.isQuiet {
			x.say("READs %d bytes at %#x of the primary", len(dst), off)
		}
		x.primary.Memory().CopyOut(dst, off)
		if x.until > 0 && off <= uint64(x.locked.Addr.Offset()) && uint64(x.locked.Addr.Offset()) < off+uint64(len(dst)) {
			if x.until--; x.until == 0 {
				x.primary.Unlock(x.locked, x.primary.Header(x.locked.Addr.Offset()).Version())
			}
		}
		if x.stop--; x.stop == 0 {
			x.say("the next configuration begins")
			x.cancel()
		}
		return nil
	}
	x.Marked = func(_ context.Context, since uint32) (region.ChunkSet, bool, error) {
		set, ok := x.primary.Marked(since)
		x.say("asks which chunks have changed since configuration %d (MARKED): %s", since, map[bool]string{true: "told", false: "the primary cannot tell"}[ok])
		return set, ok, nil
	}
	x.Sums = func(_ context.Context, chunk, n int) ([]uint64, error) {
		x.say("asks for the checksums of %d chunks from %d on (SUMS)", n, chunk)
		return x.primary.Sums(chunk, n), nil
	}
	x.say("%d objects of 256 bytes; stale are chunks %v", objects, slices.Collect(x.Stale.Chunks()))
}

func (x *interaction) write(object int, value byte) {
	p := x.ptrs[object]
	v := x.primary.Header(p.Addr.Offset()).Version()
	if !x.primary.Lock(p, v) {
		x.t.Fatal("locked")
	}
	payload := slices.Repeat([]byte{value}, 200)
	x.primary.Write(p, payload, v+1, true, p.Incarnation())
	if !x.isAway {
		x.backup.ApplyBackup(p, payload, v+1, true, p.Incarnation())
	}
}

func (x *interaction) fill() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x.cancel = cancel
	switch err := x.Run(ctx); {
	case errors.Is(err, context.Canceled):
		x.say("ends; stale are chunks %v", slices.Collect(x.Stale.Chunks()))
	case errors.Is(err, errNotCompared):
		x.say("is refused: the block table has not come")
	case err != nil:
		x.say("%v", err)
	default:
		x.say("has everything, by %d READs; stale are chunks %v", x.reads, slices.Collect(x.Stale.Chunks()))
	}
}

// back has the replica's machine come back with its memory.
func (x *interaction) back(since uint32, hasMarks bool) {
	memory := nvram.NewMemory(region.StaleBytes(region.MinSize))
	if !hasMarks {
		x.primary.Unmark()
		x.primary.Mark(since + 1)
	}
	if err := x.backup.FormatStale(since, memory); err != nil {
		x.t.Fatal(err)
	}
	var err error
	if x.Stale, err = x.backup.OpenStale(memory); err != nil {
		x.t.Fatal(err)
	}
	x.isAway = false
	x.backup.BeginFill()
	x.fill() // before the block table has come
	off, n := x.primary.Table()
	table := make([]byte, n)
	x.primary.Memory().CopyOut(table, off)
	x.backup.Memory().CopyIn(off, table)
	x.Stale.Compare()
	x.say("BLOCKS has come; stale are chunks %v", slices.Collect(x.Stale.Chunks()))
}

// scan has the replica become the primary.
func (x *interaction) scan() {
	a := region.NewAllocator(region.AllocatorConfig{Workers: 1})
	a.Attach(x.backup)
	steps := make(map[recovery.Step]int)
	x.clock.then, x.clock.sleeps = nil, nil
	err := Scan(context.Background(), a, x.clock, func(s recovery.Step) { steps[s]++ })
	rest := slices.Compact(slices.Clone(x.clock.sleeps))
	x.say("looks at up to %d objects, and waits %v: %d times", scanObjects, rest, steps[recovery.StepScanning])
	x.say("has scanned %d times, %v", steps[recovery.StepScanned], err)
	for _, p := range x.ptrs {
		x.must(x.backup.Header(p.Addr.Offset()).Allocated())
	}
	for range 3 {
		p, _, _, err := a.Alloc(region.Ordinary, 0, 200, 0)
		x.say("allocates a slot that no object has: %v", err == nil && !slices.Contains(x.ptrs, p))
	}
}

func (x *interaction) must(ok bool) {
	if !ok {
		x.t.Fatal("an object is not there")
	}
}

func (x *interaction) compare() {
	differ := 0
	for _, p := range x.ptrs {
		a, b := make([]byte, p.Capacity()), make([]byte, p.Capacity())
		_, errA := x.primary.ReadObject(p, a)
		_, errB := x.backup.ReadObject(p, b)
		if errA != nil || errB != nil || string(a) != string(b) {
			differ++
		}
	}
	x.say("%d differ", differ)
}
