package bench

import (
	"math/rand/v2"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// arrivals are the arrival times of one thread's transactions in the open loop: a Poisson
// process, as from many independent users.
type arrivals struct {
	rnd  *rand.Rand
	mean float64 // mean time between two arrivals, in ns
	at   float64 // time of the latest arrival, in ns since the start
}

func newArrivals(seed uint64, rate float64) *arrivals {
	return &arrivals{rnd: rand.New(rand.NewPCG(seed, 2)), mean: 1e9 / rate}
}

// next returns the time, since the start, at which the next transaction arrives.
func (a *arrivals) next() time.Duration {
	a.at += a.rnd.ExpFloat64() * a.mean
	return time.Duration(a.at)
}

// Bounds of waiting for an arrival.
const (
	// spinMax bounds how long a thread spins on the clock for one arrival.
	spinMax = 200 * time.Microsecond
	// sleepFloor is how much earlier than needed a sleep ends, because it may take longer.
	sleepFloor = 100 * time.Microsecond
	// sleepMax bounds the time until a sleeping thread notices the end of the run.
	sleepMax = 100 * time.Millisecond
)

// awaitArrival waits until the given time since the start, and returns false if the run
// ends before.
//
// It sleeps in the kernel until shortly before, and spins on the clock for the rest. While it
// spins, it yields to the process's other goroutines, such as the machines, which could
// otherwise not run beside spinning threads. Meanwhile the goroutine is not locked to a thread, as it is
// in the sleep: if it were, each yield would switch threads, which takes longer than the precision that
// is needed.
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

// sleepInKernel sleeps on a thread of its own, whose timer has no slack. In an otherwise idle
// process, Go's timers have a resolution of a millisecond: the runtime waits for them together with
// the network, in milliseconds.
func sleepInKernel(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The worst effect of an error is a wrong duration, and the caller reads the clock again.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil)
}

// An arrivalRecord is the measurement of arrivals, of one or several threads of the open loop.
type arrivalRecord struct {
	// Late is how late transactions began although a thread was waiting for them. That is the
	// generator's fault, and part of their latency.
	Late histogram
	// Waiting is the number of transactions that had arrived but not ended at the end of the run;
	// Oldest is the time that the first of them had waited by then.
	Waiting uint64
	Oldest  time.Duration
}

func newArrivalRecord() *arrivalRecord { return &arrivalRecord{Late: histogram{newHistogram()}} }

// addLate records how long after its arrival a transaction began.
func (r *arrivalRecord) addLate(late time.Duration) {
	// Cannot fail: the value is within the bounds.
	_ = r.Late.RecordValue(int64(min(max(late, 0), latencyMax)))
}

// addWaiting records a transaction that arrived at the given time and had not ended at end.
func (r *arrivalRecord) addWaiting(arrived, end time.Duration) {
	r.Waiting++
	r.Oldest = max(r.Oldest, end-arrived)
}

// merge adds another thread's measurements.
func (r *arrivalRecord) merge(other *arrivalRecord) {
	r.Late.Merge(other.Late.Histogram)
	r.Waiting += other.Waiting
	r.Oldest = max(r.Oldest, other.Oldest)
}

// addAllWaiting records as waiting the given arrival and all later ones before end, the end of the run.
func (l *loop) addAllWaiting(arrived, end time.Duration) {
	for ; arrived < end; arrived = l.arrivals.next() {
		l.record.Arrivals.addWaiting(arrived, end)
	}
}
