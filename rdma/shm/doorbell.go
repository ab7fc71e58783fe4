package shm

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// spinFor is how long a doorbell is watched after it has rung. It is worth a
	// wake-up of an idle core, which costs as much.
	spinFor = 20 * time.Microsecond
	// spinLooks are taken between two yields, about every microsecond: a goroutine
	// that spins without them keeps others waiting for milliseconds.
	spinLooks = 16
)

// A doorbell watches the rung word of a worker's number, and calls the bell of the queue that
// has the number at the time.
type doorbell struct {
	state   *state // keeps the words mapped
	rung    *atomic.Uint64
	parked  *atomic.Uint32
	bell    atomic.Pointer[func()]
	stopped atomic.Bool
}

func newDoorbell(s *state, worker int) *doorbell {
	return &doorbell{state: s, rung: s.rung(worker), parked: s.parked(worker)}
}

// ringBell sets a rung word and wakes its owner if it sleeps.
func ringBell(rung *atomic.Uint64, parked *atomic.Uint32) {
	if setBell(rung, parked) {
		futexWake(low(rung))
	}
}

// setBell sets a rung word and reports whether its owner sleeps and has to be woken. Both
// accesses are sequentially consistent, as are park's, so that of ringer and sleeper one sees
// the other.
//
// Only the sleeper clears parked. If a ringer is stopped before it has woken the sleeper, the
// next ringer wakes it; if it dies, so does the process that notices its death (see
// keepConnection).
func setBell(rung *atomic.Uint64, parked *atomic.Uint32) (isAsleep bool) {
	rung.Swap(1)
	return parked.Load() == 1
}

// low is the half of a rung word that changes, on which its owner sleeps: futexes
// have 32 bits.
func low(rung *atomic.Uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(rung)) }

func (d *doorbell) run() {
	for !d.stopped.Load() {
		if d.hasRung() {
			if bell := d.bell.Load(); bell != nil {
				(*bell)()
			}
		} else if !d.spin() {
			d.park()
		}
	}
	runtime.KeepAlive(d.state)
}

// hasRung reports, once, that somebody rang.
func (d *doorbell) hasRung() bool { return d.rung.Load() != 0 && d.rung.Swap(0) != 0 }

// spin reports whether somebody rings soon.
func (d *doorbell) spin() bool {
	for began := time.Now(); time.Since(began) < spinFor; {
		for range spinLooks {
			if d.rung.Load() != 0 {
				return true
			}
		}
		schedYield()
		runtime.Gosched()
	}
	return false
}

// park sleeps until somebody rings. It may return early.
func (d *doorbell) park() {
	d.parked.Store(1)
	futexWait(low(d.rung), 0)
	d.parked.Store(0)
}

// stop ends run, which may be calling the bell yet.
func (d *doorbell) stop() {
	d.stopped.Store(true)
	ringBell(d.rung, d.parked)
}
