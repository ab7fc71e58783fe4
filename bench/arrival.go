package bench

import (
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// arrivals are the times at which transactions come to one thread in the open loop: a Poisson
// process, as of many independent users.
type arrivals struct {
	rnd  *rand.Rand
	mean float64 // ns between two
	at   float64 // ns since the start
}

func newArrivals(seed uint64, rate float64) *arrivals {
	return &arrivals{rnd: rand.New(rand.NewPCG(seed, 2)), mean: 1e9 / rate}
}

// next returns when the next transaction arrives, since the start.
func (a *arrivals) next() time.Duration {
	a.at += a.rnd.ExpFloat64() * a.mean
	return time.Duration(a.at)
}

// Bounds of waiting for an arrival.
const (
	// spinMax is how long a thread looks at the clock at most, one arrival at a time.
	spinMax = 200 * time.Microsecond
	// sleepFloor is how much earlier than wanted a sleep is ended, because it may take
	// longer.
	sleepFloor = 100 * time.Microsecond
	// sleepMax is how long the end of the run may go unnoticed.
	sleepMax = 100 * time.Millisecond
)

// awaitArrival waits until the given time since the start, and returns false if the run
// ends before.
//
// It sleeps in the kernel until shortly before, and spins on the clock for the rest. While
// it spins it gives way to what else the process has to do, as machines whose clients wait
// in the closed loop: they would not run beside threads that spin without. The goroutine is not
// locked to its thread then, because each time it gave way two threads would change places, and
// that takes longer than what is to be exact.
func (r *run) awaitArrival(at time.Duration) bool {
	for !r.stop.Load() {
		left := at - r.now()
		switch {
		case left <= 0:
			return true
		case left > spinMax:
			r.sleep(min(left-sleepFloor, sleepMax))
		default:
			runtime.Gosched()
		}
	}
	return false
}

// sleepInKernel sleeps on a thread of its own whose timer has no slack. Go's timers are a
// millisecond coarse in a process that is idle otherwise: it waits for them where it
// waits for the network, in milliseconds.
func sleepInKernel(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Neither can do more harm than a sleep that ends at another time, and the clock is looked
	// at again in any case.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}

// An arrivalRecord is what one thread of the open loop has measured of arrivals, or several
// together.
type arrivalRecord struct {
	// Late is how late the measured transactions began for which a thread was waiting: that is
	// the generator's doing, and part of their latency.
	Late histogram
	// Waiting is how many transactions had arrived and not ended when the run did, Oldest
	// how long the first of them had been there.
	Waiting uint64
	Oldest  time.Duration
}

func newArrivalRecord() *arrivalRecord { return &arrivalRecord{Late: histogram{newHistogram()}} }

// late notes by how much a transaction began after its arrival.
func (r *arrivalRecord) late(by time.Duration) {
	// Cannot fail: the value is within the bounds.
	_ = r.Late.RecordValue(int64(min(max(by, 0), latencyMax)))
}

// wait notes a transaction that arrived at the given time and had not ended at end.
func (r *arrivalRecord) wait(arrived, end time.Duration) {
	r.Waiting++
	r.Oldest = max(r.Oldest, end-arrived)
}

// merge adds what another thread has measured.
func (r *arrivalRecord) merge(other *arrivalRecord) {
	r.Late.Merge(other.Late.Histogram)
	r.Waiting += other.Waiting
	r.Oldest = max(r.Oldest, other.Oldest)
}

// waitingFrom notes all transactions that arrive from at until the end of the run.
func (l *loop) waitingFrom(at, end time.Duration) {
	for ; at < end; at = l.arrivals.next() {
		l.record.Arrivals.wait(at, end)
	}
}
