package shm

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

const (
	// spinFor is how long the goroutine watches a doorbell after it has rung. Spinning that long
	// costs as much as one wake-up of an idle core.
	spinFor = 20 * time.Microsecond
	// spinLooks is the number of looks between two yields, about a microsecond's worth. Without
	// yields a spinning goroutine would keep others waiting for milliseconds.
	spinLooks = 16
)

// A doorbell watches the rung word of one worker number, and calls the bell of the queue that has
// this number at the time.
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

// ringBell sets a rung word and wakes its owner if the owner sleeps.
func ringBell(rung *atomic.Uint64, parked *atomic.Uint32) {
	if setBell(rung, parked) {
		futexWake(low(rung))
	}
}

// setBell sets a rung word and reports whether its owner sleeps and has to be woken. Its two
// accesses are sequentially consistent, as are park's: either the ringer sees parked set, or the
// sleeper sees rung set.
//
// Only the sleeper clears parked. If a ringer is stopped before it has woken the sleeper, the next
// ringer wakes it. If the ringer dies, the process that notices the death wakes the sleeper (see
// keepConnection).
func setBell(rung *atomic.Uint64, parked *atomic.Uint32) (isAsleep bool) {
	rung.Swap(1)
	return parked.Load() == 1
}

// low returns the half of a rung word that changes; the owner sleeps on this half, because futexes
// have 32 bits.
func low(rung *atomic.Uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(rung)) }

// run calls the bell whenever the doorbell has rung: it spins for a while, and then sleeps.
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

// hasRung reports whether the doorbell has rung since hasRung last returned true.
func (d *doorbell) hasRung() bool { return d.rung.Load() != 0 && d.rung.Swap(0) != 0 }

// spin watches the doorbell for a while and reports whether it rang.
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

// park sleeps until the doorbell rings. It may return early.
func (d *doorbell) park() {
	d.parked.Store(1)
	futexWait(low(d.rung), 0)
	d.parked.Store(0)
}

// stop ends run. One call of the bell may still be running.
func (d *doorbell) stop() {
	d.stopped.Store(true)
	ringBell(d.rung, d.parked)
}
