// Package clock is the only way to everything that a simulator must control: time, randomness,
// goroutines and their waiting. No package below the root asks the operating system for
// time or randomness, and no package below sql/wire starts a goroutine or waits, except through
// a [Clock]; internal/lint checks that. So the same code runs on real machines and in
// internal/sim.
package clock

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"time"
)

// A Clock tells the time, and starts and suspends goroutines. It is safe for concurrent
// use.
type Clock interface {
	// Now is monotonic: differences of two of its values are durations.
	Now() time.Time
	// AfterFunc runs f once, on its own goroutine, no earlier than d from now. Stop on
	// the result prevents a run that has not begun, and reports whether it did.
	AfterFunc(d time.Duration, f func()) Timer
	// Sleep pauses the calling goroutine for at least d.
	Sleep(d time.Duration)
	// Uint64 draws 64 random bits.
	Uint64() uint64
	// Go runs f on a goroutine of its own.
	Go(f func())
	// Yield lets other goroutines run.
	Yield()
	// Lock locks mu, which may be held across a wait: a Sleep, a Yield, an
	// Event, a completion, a call. A mutex that is never held across a wait is
	// locked as usual. Unlock and TryLock are the mutex's own.
	Lock(mu Mutex)
	// NewEvent returns an Event that is not set.
	NewEvent() Event
	// NewPool returns an empty pool, whose Get makes values with f. The pool
	// may forget values.
	NewPool(f func() any) Pool
	// Processors returns the number of processors that run goroutines at the same time. Processor
	// returns the number, from 0, of the processor that the caller runs on. The caller may be on
	// another one by the time it uses the answer, and Processors may grow. So use the answers only
	// to choose among cache lines, never to exclude other goroutines from one.
	Processors() int
	Processor() int
}

// A Mutex can be locked with Clock.Lock.
type Mutex interface {
	Lock()
	TryLock() bool
}

// A Timer is one pending AfterFunc.
type Timer interface{ Stop() bool }

// An Event is set by several goroutines and waited for by one: a binary semaphore. It is
// safe for concurrent use.
type Event interface {
	// Set makes the present Wait return or, if there is none, the next. Setting an event
	// that is set changes nothing.
	Set()
	// Wait returns once the event is set, and unsets it.
	Wait()
	// WaitFor is like Wait, but waits for about d at most. It reports whether the event was set.
	WaitFor(d time.Duration) bool
}

// A Pool keeps values for reuse. It is safe for concurrent use. *sync.Pool is one.
type Pool interface {
	Get() any
	Put(any)
}

// System is the operating system's clock and randomness, and Go's goroutines.
type System struct{}

var _ Clock = System{}

func (System) Now() time.Time                            { return time.Now() }
func (System) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }
func (System) Sleep(d time.Duration)                     { time.Sleep(d) }
func (System) Uint64() uint64                            { return rand.Uint64() }
func (System) Go(f func())                               { go f() }
func (System) Yield()                                    { runtime.Gosched() }
func (System) Lock(mu Mutex)                             { mu.Lock() }
func (System) NewEvent() Event                           { return make(event, 1) }
func (System) NewPool(f func() any) Pool                 { return &sync.Pool{New: f} }
func (System) Processors() int                           { return runtime.GOMAXPROCS(0) }
func (System) Processor() int                            { return Processor() }

// event has room for one Set.
type event chan struct{}

func (e event) Set() {
	select {
	case e <- struct{}{}:
	default:
	}
}

func (e event) Wait() { <-e }

func (e event) WaitFor(d time.Duration) bool {
	select {
	case <-e:
		return true
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-e:
		return true
	case <-t.C:
		return false
	}
}
