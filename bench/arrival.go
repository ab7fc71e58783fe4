package bench

import (
	"math/rand/v2"
	"runtime"
	"time"
)

// arrivals are the times at which transactions come to one thread in the open
// loop: a Poisson process, as of many users who do not know of each other.
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

// sleepFloor is how much earlier than wanted a sleep is ended, because it may take
// longer; the rest is waited for awake.
const sleepFloor = 200 * time.Microsecond

// awaitArrival waits until the given time since the start, or the end of the run.
func (r *run) awaitArrival(at time.Duration) {
	for !r.stop.Load() {
		left := at - r.now()
		switch {
		case left <= 0:
			return
		case left > 2*sleepFloor:
			time.Sleep(min(left-sleepFloor, 100*time.Millisecond)) // to notice the end of the run
		default:
			runtime.Gosched()
		}
	}
}
