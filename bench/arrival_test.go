package bench

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// intended are the times at which transactions arrive at the one thread of a run.
func intended(r *run) (at []time.Duration) {
	a := newArrivals(r.loops[0].thread.Seed, r.options.Rate)
	for t := a.next(); t < r.options.WarmUp+r.options.Duration; t = a.next() {
		at = append(at, t)
	}
	return at
}

// openRun runs an open loop. Its database stands still for a while in the 50th transaction. openRun
// returns the times at which transactions began, and the times at which they arrived.
func openRun(t *testing.T, o Options, still, oversleep time.Duration) (res *Result, began, to []time.Duration) {
	t.Helper()
	var r *run
	var now *atomic.Int64
	r, now = virtual(&toy{do: func(_ context.Context, th *Thread, n int) (int, error) {
		began = append(began, time.Duration(now.Load()))
		to = append(to, th.Began)
		if n == 50 {
			now.Add(int64(still))
		}
		return 0, nil
	}}, o)
	r.sleep = func(d time.Duration) { now.Add(int64(d + oversleep)) }
	res, err := r.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if all := intended(r); !slices.Equal(to, all[:len(to)]) || len(to)+int(res.Arrivals.Waiting) < len(all) {
		t.Errorf("%d transactions came, %d of %d waited at the end; not all as intended", len(to), res.Arrivals.Waiting, len(all))
	}
	return res, began, to
}

// A transaction begins when it arrives, no matter how far apart arrivals are. If the thread is busy
// then, the transaction begins as soon as the thread is free. Its latency counts from the arrival.
func TestArrivalsAreExact(t *testing.T) {
	const still, oversleep, exact = 20 * time.Millisecond, sleepFloor - 10*time.Microsecond, 10 * time.Microsecond
	for _, rate := range []float64{200, 2_000, 20_000} {
		res, began, to := openRun(t, Options{Duration: time.Second, Rate: rate, Seed: 5}, still, oversleep)
		free := time.Duration(0)
		for i := range began {
			if late := began[i] - max(to[i], free); late < 0 || late > exact {
				t.Fatalf("at %v a second transaction %d began %v late", rate, i, late)
			}
			if free = began[i]; i == 49 {
				free += still
			}
		}
		if a := res.Arrivals; a.LateMax > microseconds(int64(exact)) || a.LateP50 == 0 {
			t.Errorf("at %v a second: %+v", rate, a)
		}
		if res.Total.Max < 20_000 || res.Total.Count < uint64(len(to))-uint64(res.Arrivals.Waiting) {
			t.Errorf("at %v a second: %+v of %d", rate, res.Total, len(to))
		}
	}
}

// If sleeps end late, the result says so, and latency includes that time.
func TestLateArrivalsAreSaid(t *testing.T) {
	res, _, _ := openRun(t, Options{Duration: time.Second, Rate: 500, Seed: 5}, 0, time.Millisecond)
	if a := res.Arrivals; a.LateP50 < 500 || a.LateP99 < 850 || res.Total.P99 < 850 {
		t.Errorf("%+v, %+v", a, res.Total)
	}
}

// At its end a run counts the transactions that have arrived but not ended: those that are running
// and those that wait for the thread.
func TestWaitingAtTheEnd(t *testing.T) {
	o := Options{Duration: 100 * time.Millisecond, Rate: 1_000, Seed: 5}
	res, _, to := openRun(t, o, time.Second, 0)
	a := res.Arrivals
	if want := 100 - 49; len(to) != 50 || res.Total.Count != 49 || int(a.Waiting) < want-30 || int(a.Waiting) > want+30 {
		t.Errorf("%d began, %d ended, %+v", len(to), res.Total.Count, a)
	}
	if oldest := microseconds(int64(o.Duration - to[49])); a.Oldest != oldest {
		t.Errorf("the first of them waited for %v µs, want %v", a.Oldest, oldest)
	}
	if !strings.Contains(res.remarks(), " had not ended, the first of them after ") {
		t.Error(res.remarks())
	}
	closed, _ := virtual(&toy{do: alternate}, Options{Transactions: 3})
	if res, err := closed.do(t.Context()); err != nil || res.Arrivals != nil || strings.Contains(res.remarks(), "arrivals") {
		t.Errorf("the closed loop: %v, %+v", err, res)
	}
}

// A run that ends early begins no transactions that have not arrived.
func TestEndedBeforeAnArrival(t *testing.T) {
	var r *run
	r, now := virtual(&toy{do: func(_ context.Context, _ *Thread, n int) (int, error) { return 0, nil }}, Options{Duration: time.Hour, Rate: 10, Seed: 5})
	naps := 0
	r.sleep = func(d time.Duration) {
		if now.Add(int64(d)); naps == 20 {
			r.finish()
		}
		naps++
	}
	res, err := r.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	came := 0
	for _, at := range intended(r) {
		if at < time.Duration(r.finished.Load()) {
			came++
		}
	}
	if n := int(res.Total.Count); n+int(res.Arrivals.Waiting) != came {
		t.Errorf("%d ended and %d waited, of %d", n, res.Arrivals.Waiting, came)
	}
}

func TestArrivalsOfSeveral(t *testing.T) {
	a, b := newRecord(1), newRecord(1)
	b.Arrivals = newArrivalRecord()
	b.Arrivals.addLate(5 * time.Microsecond)
	b.Arrivals.addWaiting(1, 4)
	a.merge(b)
	a.merge(newRecord(1))
	a.merge(b)
	if got := a.arrivals(); got.Waiting != 2 || got.Oldest != 0.003 || a.Arrivals.Late.TotalCount() != 2 || got.LateP50 < 4.9 || got.LateP50 > 5.1 {
		t.Errorf("%+v", got)
	}
}
