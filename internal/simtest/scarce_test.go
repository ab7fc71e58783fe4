package simtest

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/txn/wait"
)

// Machines whose memory is full refuse operations that need more, and at times cannot even open.
// They are whole again when there is room. If a memory stays full in the end, the others go on.
func TestFullMemory(t *testing.T) {
	full, refused, exits := 0, 0, 0
	// Six runs, and as many more as it takes until a process could not open.
	for seed := uint64(1); seed <= 6 || exits == 0 && seed <= 20; seed++ {
		o := Draw(seed)
		o.New, o.Farm.Machines, o.Farm.Replicas, o.Domains, o.Clients, o.Errands = NewMembers, 5, 3, 5, 1, true
		o.Duration = 60 * time.Millisecond
		o.Overlap = &Overlap{Kinds: []Fault{FullMemory, FullMemory, Kill}, Open: 3, Hold: 20 * time.Millisecond, Lost: 50, Core: seed%2 == 0}
		o.World.Trace = func(_ time.Duration, what string) {
			switch {
			case strings.HasSuffix(what, ": no storage"):
				refused++
			case strings.Contains(what, ": exits: "):
				exits++
			}
		}
		r := Run(o)
		if full += r.Faults[FullMemory]; r.Err != nil {
			t.Errorf("%v\n%v", r.Err, o)
		}
		runtime.GC() // unmaps the run's memory
	}
	t.Logf("%d times full memory, %d reservations refused, %d processes exited", full, refused, exits)
	if full < 30 || refused < 50 || exits == 0 {
		t.Errorf("%d times full memory, %d reservations refused, %d processes exited", full, refused, exits)
	}
}

// With a patience of a few milliseconds, operations that wait for the rest of the instance give up
// after that time.
func TestShortPatience(t *testing.T) {
	unavailable := 0
	for seed := uint64(1); seed <= 4; seed++ {
		o := Draw(seed)
		o.New, o.Farm.Machines, o.Farm.Replicas, o.Domains, o.Clients = NewMembers, 3, 3, 3, 1
		o.Duration, o.Patience = 40*time.Millisecond, 2*time.Millisecond
		o.Overlap = &Overlap{Kinds: []Fault{Kill, Pause}, Open: 1, Hold: 30 * time.Millisecond}
		r := newRun(o)
		j := &injector{run: r, struck: r.outside.NewEvent()}
		faults := injectionOf(j)
		r.work = func(c *client) error {
			if _, err := c.read(c.store.objects[0]); errors.Is(err, wait.ErrUnavailable) {
				unavailable++
			}
			return c.anything()
		}
		err := r.world.Run(func() { r.fail(r.phases(faults)) })
		if err != nil || r.failure != nil {
			t.Errorf("seed %d: %v, %v", seed, err, r.failure)
		}
		runtime.GC() // unmaps the run's memory
	}
	if t.Logf("%d reads gave up", unavailable); unavailable < 20 {
		t.Error("operations wait for longer")
	}
}
