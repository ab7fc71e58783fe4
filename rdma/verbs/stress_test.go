//go:build verbs && linux && cgo

package verbs

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// stressTime returns how long a stress test goes on: FARMSQL_STRESS, or a few seconds.
func stressTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("FARMSQL_STRESS")
	if text == "" {
		return 5 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A load is machines that read and write each other's memory. Each READ has a WRITE behind it, which waits for the READ.
type load struct {
	t        testing.TB
	machines []*machine
	errs     func(error) bool // reports whether an error is one that may happen
	batches  []atomic.Int64   // by machine: how many batches have been done without an error
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// startLoad starts it; end ends it.
func startLoad(t *testing.T, f *fabric, errs func(error) bool) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{t: t, errs: errs, batches: make([]atomic.Int64, 3), stop: stop}
	for i := range 3 {
		l.machines = append(l.machines, f.machine(t, rdma.MachineID(i+1), 1<<12))
	}
	for i, m := range l.machines {
		l.running.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				if l.batch(m, 1+round%4) {
					l.batches[i].Add(1)
				}
			}
		})
	}
	return l
}

func (l *load) end() {
	l.stop()
	l.running.Wait()
	for i, m := range l.machines {
		l.t.Logf("machine %d: %d batches, %d nudges", m.Machine(), l.batches[i].Load(), m.nudges())
	}
}

// batch does n READs of each other machine, with WRITEs behind them, and waits for all. It reports whether all succeeded.
func (l *load) batch(m *machine, n int) bool {
	pending, isGood := 0, true
	took := func(err error) {
		if err != nil {
			isGood = false
			if !l.errs(err) {
				l.t.Error(err)
			}
		}
	}
	post := func(done bool, err error) {
		if took(err); err == nil && !done {
			pending++
		}
	}
	for _, to := range l.machines {
		if to == m {
			continue
		}
		for i := range n {
			post(m.q.Read(to.Machine(), key, uint64(8*i), make([]byte, 64), 1))
			post(m.q.WriteRing(to.Machine(), key, uint64(1024+64*i), make([]byte, 64), 2))
			if i%2 == 0 {
				m.q.Flush()
			}
		}
	}
	m.q.Flush()
	for begun, cs := time.Now(), make([]rdma.Completion, 16); pending > 0; {
		got := m.q.Poll(cs)
		for _, c := range cs[:got] {
			took(c.Err)
		}
		if pending -= got; got == 0 {
			time.Sleep(time.Duration(n) * 20 * time.Microsecond)
		}
		if time.Since(begun) > time.Minute {
			l.t.Errorf("machine %d waits for %d completions", m.Machine(), pending)
			return false
		}
	}
	if !isGood {
		time.Sleep(time.Millisecond) // until the connection is there again
	}
	return isGood
}

// awaitAll waits until each machine has done further batches.
func (l *load) awaitAll() {
	l.t.Helper()
	for i := range l.batches {
		before := l.batches[i].Load()
		for begun := time.Now(); l.batches[i].Load() < before+2; time.Sleep(time.Millisecond) {
			if time.Since(begun) > time.Minute {
				l.t.Fatalf("machine %d has got no answers for %v", l.machines[i].Machine(), time.Since(begun))
			}
		}
	}
}

// TestCardForgetsNothing: no operation fails, and none is forgotten. Soft-RoCE forgets fenced requests if several processors carry them out (go
// run ./test/vm -hosts 3 -cpus 2), once in some ten thousand batches: so it gets none.
func TestCardForgetsNothing(t *testing.T) {
	l := startLoad(t, realFabric(t), func(error) bool { return false })
	time.Sleep(stressTime(t))
	l.awaitAll()
	l.end()
}

// TestLinksGoDownAndUp: a machine's link goes down, or frames to it and from it are lost, for some time, over and over. Operations fail
// as broken; once the link is back, all machines get answers again.
func TestLinksGoDownAndUp(t *testing.T) {
	f := realFabric(t)
	if os.Getenv("FARMSQL_IN_VM") == "" || !slices.Contains(f.devices, "rxe3") {
		t.Skip("takes links down: go run ./test/vm -hosts 3 ./rdma/verbs")
	}
	l := startLoad(t, f, func(err error) bool { return errors.Is(err, rdma.ErrBroken) })
	l.awaitAll()
	outages := 0
	for begun := time.Now(); time.Since(begun) < stressTime(t) || outages < 4; outages++ {
		// pN is the other end of the cable of device N, at the bridge.
		name := []string{"p1", "p2", "p3"}[outages/2%3]
		without, with := []string{"down"}, []string{"up"}
		if outages%2 == 0 {
			without, with = []string{"nomaster"}, []string{"master", "br0"}
		}
		setLink(t, name, without...)
		time.Sleep(time.Duration(outages%5) * 700 * time.Millisecond) // a card gives up after 2 s
		setLink(t, name, with...)
		since := time.Now()
		l.awaitAll()
		t.Logf("outage %d: %s %s: answers after %v", outages, name, without, time.Since(since))
	}
	l.end()
}

func setLink(t *testing.T, name string, state ...string) {
	t.Helper()
	if out, err := exec.Command("/bin/ip", append([]string{"link", "set", name}, state...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
