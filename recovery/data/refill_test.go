package data

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// fastClock is a clock on which sleeping takes no time but passes it.
type fastClock struct {
	clock.System
	now    time.Time
	sleeps []time.Duration
	then   func()
}

func (c *fastClock) Now() time.Time { return c.now }

func (c *fastClock) Sleep(d time.Duration) {
	c.now = c.now.Add(d)
	c.sleeps = append(c.sleeps, d)
	if c.then != nil {
		c.then()
	}
}

// refill is a primary with objects, an empty backup, and what refills it.
type refill struct {
	Refill
	clock   *fastClock
	primary *region.Region
	backup  *region.Region
	ptrs    []region.Ptr
	held    int
	reads   int
	fail    error
}

func newRefill(t *testing.T, objects int) *refill {
	t.Helper()
	r := &refill{clock: new(fastClock)}
	var err error
	must := func() {
		if err != nil {
			t.Fatal(err)
		}
	}
	r.primary, err = region.Format(1, nvram.NewMemory(region.MinSize))
	must()
	stale := nvram.NewMemory(region.StaleBytes(region.MinSize))
	err = region.FormatStale(1, region.MinSize, stale)
	must()
	r.backup, err = region.Format(1, nvram.NewMemory(region.MinSize))
	must()
	r.Stale, err = r.backup.OpenStale(stale)
	must()
	a := region.NewAllocator(region.AllocatorConfig{Workers: 1, Replicate: func(_ *region.Tenure, off uint64, b []byte, _ uint32) error {
		r.backup.Memory().CopyIn(off, b)
		return nil
	}})
	a.Add(r.primary)
	for i := range objects {
		p, v, _, e := a.Alloc(region.Ordinary, 0, 200, 0)
		err = e
		must()
		r.primary.Lock(p, v)
		r.primary.Write(p, bytes.Repeat([]byte{byte(i)}, 200), v+1, true, p.Incarnation())
		r.ptrs = append(r.ptrs, p)
	}
	if err := r.Run(context.Background()); !errors.Is(err, errNotCompared) {
		t.Fatalf("before the block table has come: %v", err)
	}
	r.Stale.Compare()
	r.Refill.Clock = r.clock
	r.Pace = Slow
	r.Read = func(_ context.Context, off uint64, dst []byte) error {
		if r.held != 1 {
			t.Errorf("read while the epoch is held %d times", r.held)
		}
		if r.reads++; r.fail != nil {
			return r.fail
		}
		r.primary.Memory().CopyOut(dst, off)
		return nil
	}
	r.Hold = func() func() { r.held++; return func() { r.held-- } }
	return r
}

func (r *refill) check(t *testing.T) {
	t.Helper()
	for _, p := range r.ptrs {
		a, b := make([]byte, p.Capacity()), make([]byte, p.Capacity())
		ha, errA := r.primary.ReadObject(p, a)
		hb, errB := r.backup.ReadObject(p, b)
		if errA != nil || errB != nil || ha != hb || !bytes.Equal(a, b) {
			t.Fatalf("%v: %v, %v at the primary, %v, %v at the backup", p, ha, errA, hb, errB)
		}
	}
	if r.held != 0 {
		t.Errorf("epoch held %d times at the end", r.held)
	}
}

// SOSP'15 section 5.4: data recovery reads 8 KB at a time and begins the next
// READ at a random point within 4 ms.
func TestPaper5_4_Paced(t *testing.T) {
	r := newRefill(t, 1000)
	read := 0
	r.Bytes = func(n int) { read += n }
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.check(t)
	if r.reads < 10 || read/r.reads > 8<<10 {
		t.Errorf("%d reads of %d bytes", r.reads, read)
	}
	mean := r.clock.now.Sub(time.Time{}) / time.Duration(r.reads)
	if mean < time.Millisecond || mean > 3*time.Millisecond {
		t.Errorf("a read every %v", mean)
	}
	for _, d := range r.clock.sleeps {
		if d > Slow.Interval {
			t.Errorf("slept %v", d)
		}
	}
}

func TestAggressiveDoesNotWait(t *testing.T) {
	r := newRefill(t, 1000)
	r.Pace = Aggressive
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.check(t)
	if len(r.clock.sleeps) != 0 {
		t.Errorf("slept %v", r.clock.sleeps)
	}
}

func TestRefillWaitsForLocks(t *testing.T) {
	r := newRefill(t, 10)
	p := r.ptrs[3]
	r.primary.Lock(p, 1)
	r.clock.then = func() {
		if len(r.clock.sleeps) == 7 {
			r.primary.Write(p, []byte("committed"), 2, true, p.Incarnation())
		}
	}
	if err := r.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.check(t)
}

func TestRefillEnds(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	broken := errors.New("connection broken")
	for name, c := range map[string]struct {
		ctx   context.Context
		spoil func(r *refill)
		want  error
	}{
		"another configuration": {canceled, func(*refill) {}, context.Canceled},
		"primary gone":          {context.Background(), func(r *refill) { r.fail = broken }, broken},
		"never quiet":           {context.Background(), func(r *refill) { r.primary.Lock(r.ptrs[0], 1) }, ErrNeverQuiet},
	} {
		r := newRefill(t, 10)
		c.spoil(r)
		err := r.Run(c.ctx)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "region 1") {
			t.Errorf("%s: %v", name, err)
		}
		if r.held != 0 {
			t.Errorf("%s: epoch held", name)
		}
	}
}

// TestPaper5_2_RefillTakesNoLateReply: a READ of data recovery that was under way when
// the next configuration began counts for nothing, though it has brought data: its
// primary may not be a member any more.
func TestPaper5_2_RefillTakesNoLateReply(t *testing.T) {
	r := newRefill(t, 10)
	before := make([]byte, r.backup.Size())
	r.backup.Memory().CopyOut(before, 0)
	ctx, cancel := context.WithCancel(context.Background())
	read := r.Read
	r.Read = func(ctx context.Context, off uint64, dst []byte) error {
		cancel()
		return read(ctx, off, dst)
	}
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) || r.reads != 1 || r.held != 0 {
		t.Errorf("%d reads, epoch held %d times: %v", r.reads, r.held, err)
	}
	after := make([]byte, r.backup.Size())
	if r.backup.Memory().CopyOut(after, 0); !bytes.Equal(before, after) {
		t.Error("the backup has changed")
	}
}

// SOSP'15 section 5.5: the scan for free objects takes 100 at a time, every 100 us.
func TestPaper5_5_AllocatorScan(t *testing.T) {
	r := newRefill(t, 1000)
	a := region.NewAllocator(region.AllocatorConfig{Workers: 1})
	a.Attach(r.primary)
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	var steps []recovery.Step
	step := func(s recovery.Step) { steps = append(steps, s) }
	if err := Scan(canceled, a, r.clock, step); !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled: %v", err)
	}
	r.clock.sleeps = nil
	if err := Scan(context.Background(), a, r.clock, step); err != nil {
		t.Fatal(err)
	}
	if n := len(steps); n < 6 || steps[0] != recovery.StepScanning || steps[n-2] != recovery.StepScanning || slices.Index(steps, recovery.StepScanned) != n-1 {
		t.Errorf("steps %v", steps)
	}
	if n := len(r.clock.sleeps); n < 5 || n > 1000 || r.clock.sleeps[0] != scanInterval {
		t.Errorf("%d pauses, the first of %v", n, r.clock.sleeps)
	}
	used := make(map[region.Ptr]bool)
	for _, p := range r.ptrs {
		used[p] = true
	}
	for range 100 {
		p, _, _, err := a.Alloc(region.Ordinary, 0, 200, 0)
		if err != nil {
			t.Fatal(err)
		}
		if used[p] {
			t.Fatalf("%v allocated twice", p)
		}
		used[p] = true
	}
}
