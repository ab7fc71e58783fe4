package sim

import (
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// A routine is a goroutine of the simulated code, run as a coroutine: it runs until it
// waits, and an event resumes it. Routines are reused.
type routine struct {
	world *World
	id    uint64
	// process is the process that f belongs to.
	process *Process
	place   int // index of the routine in process.routines
	f       func()
	aside   bool

	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	// waits counts the waits that have begun. By this number a wake-up applies only to its own
	// wait.
	waits   uint64
	waiting bool
	dying   bool
}

// errUnwound is the panic value that unwinds routines of a dead process.
var errUnwound = errors.New("sim: process is dead")

// start runs f on a routine of process p after d.
func (w *World) start(p *Process, d time.Duration, f func(), aside bool) {
	w.after(d, func() { p.unlessPaused(turn{aside: aside, f: func() { w.begin(p, f, aside) }}) })
}

// begin runs f until it waits.
func (w *World) begin(p *Process, f func(), aside bool) {
	if p.dead {
		return
	}
	var r *routine
	if n := len(w.idle); n > 0 {
		r, w.idle = w.idle[n-1], w.idle[:n-1]
	} else {
		r = w.newRoutine()
	}
	r.process, r.f, r.aside = p, f, aside
	r.place = len(p.routines)
	p.routines = append(p.routines, r)
	w.run(r)
}

// newRoutine returns a routine that runs one task after the other, and is idle between them.
func (w *World) newRoutine() *routine {
	w.routines++
	r := &routine{world: w, id: w.routines}
	r.resume, r.stop = iter.Pull(func(yield func(struct{}) bool) {
		r.yield = yield
		// Make reading unmapped memory a panic, which fails the run and not the program.
		debug.SetPanicOnFault(true)
		for r.work() {
			w.idle = append(w.idle, r)
			if !yield(struct{}{}) {
				return
			}
		}
	})
	return r
}

// work runs f and reports whether it returned.
func (r *routine) work() (returned bool) {
	p := r.process
	defer func() {
		r.f = nil
		p.forget(r)
		lockrank.Forget()
		if v := recover(); v != nil && v != errUnwound && !p.dead && r.world.failure == nil {
			r.world.failure = fmt.Errorf("sim: panic at %v: %v\n%s", p, v, debug.Stack())
		}
	}()
	r.f()
	return true
}

// run lets r run until it waits or ends.
func (w *World) run(r *routine) {
	w.mix(r.id)
	before := w.current
	w.current = r
	r.resume()
	w.current = before
}

// arm prepares a wait of the running routine, and returns its number for wake.
func (w *World) arm() (r *routine, wait uint64) {
	r = w.current
	if r == nil {
		panic("sim: only a routine can wait")
	}
	r.waits++
	return r, r.waits
}

// park waits until wake is called for the wait that arm began.
func (w *World) park(r *routine) {
	if r.dying || r.process.dead {
		panic(errUnwound)
	}
	r.waiting = true
	ok := r.yield(struct{}{})
	r.waiting = false
	if !ok {
		r.dying = true
		panic(errUnwound)
	}
}

// wake ends a wait after d, if the routine is still in this wait by then.
func (w *World) wake(r *routine, wait uint64, d time.Duration) {
	w.after(d, func() {
		if r.waits == wait && r.waiting {
			r.process.unlessPaused(turn{aside: r.aside, f: func() {
				if r.waits == wait && r.waiting {
					w.run(r)
				}
			}})
		}
	})
}

// sleep makes the running routine wait for d.
func (w *World) sleep(d time.Duration) {
	r, wait := w.arm()
	w.wake(r, wait, d)
	w.park(r)
}

// unwind ends all routines of a dead process. None of them is running.
func (w *World) unwind(p *Process) {
	before := w.current
	for len(p.routines) > 0 {
		r := p.routines[len(p.routines)-1]
		w.current = r
		r.stop()
	}
	w.current = before
}

// unwindAll unwinds all routines.
func (w *World) unwindAll() {
	for _, m := range w.machines {
		m.end(newShelf) // nobody needs the memory any more
	}
	w.outside.dead = true
	w.unwind(w.outside)
	for _, m := range w.machines {
		for _, p := range m.past {
			w.unwind(p)
		}
	}
	for _, r := range w.idle {
		r.stop()
	}
	w.idle = nil
}
