package sim

import (
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// A Process is one life of a machine. It is the machine's clock.Clock, for code
// that runs on the routines of any process.
type Process struct {
	world    *World
	machine  *Machine // nil for the outside
	life     int
	routines []*routine
	dead     bool
	paused   bool
	pauses   int    // number of pauses so far
	hung     bool   // all routines but those aside are paused
	held     []turn // turns that wait for the end of the pause
	slow     slowness
	nic      *nic
	asked    int      // number of calls of Processor
	busy     int      // number of processors that are busy
	queued   []func() // turns that wait for a processor
}

var _ clock.Clock = (*Process)(nil)

const (
	// yieldMin and yieldSpan bound the time after which a yielding routine continues.
	yieldMin  = 100 * time.Nanosecond
	yieldSpan = 900 * time.Nanosecond
	// wakeSpan bounds the time that waking a routine takes.
	wakeSpan = 2 * time.Microsecond
	// lockWaitMax bounds the time between two attempts to get a lock.
	lockWaitMax = 20 * time.Microsecond
)

func (p *Process) String() string {
	if p.machine == nil {
		return "outside"
	}
	return fmt.Sprintf("machine %d, life %d", p.machine.id, p.life)
}

// Machine returns the process's machine.
func (p *Process) Machine() *Machine { return p.machine }

// Dead reports whether the process has ended. Code of a dead process may run to its next
// wait; its results do not count.
func (p *Process) Dead() bool { return p.dead }

// Do runs f on a routine of p and waits. It returns true once f has returned, and false if the
// process has died before that.
func (p *Process) Do(f func()) (returned bool) {
	done := p.world.outside.NewEvent()
	p.world.start(p, 0, func() {
		defer done.Set()
		f()
		returned = true
	}, false)
	if p.dead {
		return false
	}
	p.OnDeath(done.Set)
	done.Wait()
	return returned && !p.dead
}

// OnDeath registers f, which is called once the process has died and its routines are
// unwound.
func (p *Process) OnDeath(f func()) {
	if m := p.machine; m != nil {
		m.onDeath = append(m.onDeath, f)
	}
}

// epoch is the time at which worlds begin.
var epoch = time.Date(2015, 10, 4, 0, 0, 0, 0, time.UTC)

// Now implements clock.Clock. The machine's clock drifts.
func (p *Process) Now() time.Time {
	t := p.world.time()
	if m := p.machine; m != nil {
		t += m.offset + time.Duration(float64(t)*m.drift)
	}
	return epoch.Add(t)
}

// real converts a duration on the machine's clock to the world's time.
func (p *Process) real(d time.Duration) time.Duration {
	if p.machine == nil {
		return d
	}
	return time.Duration(float64(d) / (1 + p.machine.drift))
}

// Sleep implements clock.Clock.
func (p *Process) Sleep(d time.Duration) {
	p.world.sleep(p.real(d) + p.world.upTo(wakeSpan))
}

// Yield implements clock.Clock.
func (p *Process) Yield() {
	p.world.sleep(p.world.options.Costs.Yield + yieldMin + p.world.upTo(yieldSpan))
}

// Go implements clock.Clock. A dead process starts nothing.
func (p *Process) Go(f func()) { p.world.start(p, yieldMin+p.world.upTo(yieldSpan), f, false) }

// Uint64 implements clock.Clock.
func (p *Process) Uint64() uint64 { return p.world.rng.Uint64() }

// Lock implements clock.Clock.
func (p *Process) Lock(mu clock.Mutex) {
	for wait := yieldSpan; !mu.TryLock(); wait = min(2*wait, lockWaitMax) {
		p.world.sleep(yieldMin + p.world.upTo(wait))
	}
}

// A timer is a pending AfterFunc.
type timer struct{ over bool }

// AfterFunc implements clock.Clock.
func (p *Process) AfterFunc(d time.Duration, f func()) clock.Timer { return p.afterFunc(d, f, false) }

// afterFunc runs f after d on the process's clock, and a random wake-up delay.
func (p *Process) afterFunc(d time.Duration, f func(), aside bool) clock.Timer {
	t := new(timer)
	p.world.after(p.real(d)+p.world.upTo(wakeSpan), func() {
		p.unlessPaused(turn{aside: aside, f: func() {
			if !t.over {
				t.over = true
				p.world.begin(p, f, aside)
			}
		}})
	})
	return t
}

// Stop implements clock.Timer.
func (t *timer) Stop() bool {
	wasPending := !t.over
	t.over = true
	return wasPending
}

// unlessPaused runs a turn as soon as possible: after the pause if the process is paused,
// never if it is dead.
func (p *Process) unlessPaused(t turn) {
	switch {
	case p.dead:
	case p.paused || (p.hung && !t.aside):
		p.held = append(p.held, t)
	case !t.aside && p.slow.until > p.world.now:
		p.takeLate(t)
	default:
		p.take(t)
	}
}

// forget removes a routine that has ended from the list.
func (p *Process) forget(r *routine) {
	last := p.routines[len(p.routines)-1]
	p.routines[r.place], last.place = last, r.place
	p.routines = p.routines[:len(p.routines)-1]
}

// NewEvent implements clock.Clock.
func (p *Process) NewEvent() clock.Event { return &signal{process: p} }

// A signal is a clock.Event.
type signal struct {
	process *Process
	set     bool
	waiter  *routine
	wait    uint64
}

// Set implements clock.Event.
func (s *signal) Set() {
	s.set = true
	if w := s.process.world; s.waiter != nil {
		w.wake(s.waiter, s.wait, yieldMin+w.upTo(wakeSpan))
		s.waiter = nil
	}
}

// Wait implements clock.Event.
func (s *signal) Wait() {
	for !s.set {
		w := s.process.world
		s.waiter, s.wait = w.arm()
		w.park(s.waiter)
	}
	s.set = false
}

// WaitFor implements clock.Event.
func (s *signal) WaitFor(d time.Duration) bool {
	if !s.set {
		w := s.process.world
		s.waiter, s.wait = w.arm()
		w.wake(s.waiter, s.wait, s.process.real(w.early(d))+w.upTo(wakeSpan))
		w.park(s.waiter)
		s.waiter = nil
	}
	wasSet := s.set
	s.set = false
	return wasSet
}

// NewPool implements clock.Clock.
func (p *Process) NewPool(f func() any) clock.Pool { return &pool{make: f} }

// Processors implements clock.Clock.
func (p *Process) Processors() int { return 4 }

// Processor implements clock.Clock. Each call returns the next processor in turn.
func (p *Process) Processor() int {
	p.asked++
	return p.asked % p.Processors()
}

// A pool is a stack.
type pool struct {
	make   func() any
	values []any
}

// Get implements clock.Pool.
func (p *pool) Get() any {
	n := len(p.values)
	if n == 0 {
		return p.make()
	}
	v := p.values[n-1]
	p.values = p.values[:n-1]
	return v
}

// Put implements clock.Pool.
func (p *pool) Put(v any) { p.values = append(p.values, v) }
