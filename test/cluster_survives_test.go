package test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestClusterSurvives: while clients work on all machines, machines are killed and started again,
// or stopped for longer than their lease. Nothing acknowledged is lost, and nobody sees a wrong
// total. The only errors are conflicts and lost connections to the failed machine. In the end all
// regions have all their replicas. FARMSQL_SEED repeats a run's choices.
func TestClusterSurvives(t *testing.T) {
	for _, c := range []struct {
		machines int
		store    string
		nightly  bool
	}{{3, "file", false}, {5, "zookeeper", false}, {3, "zookeeper", true}, {5, "file", true}} {
		t.Run(fmt.Sprintf("%d machines, %s", c.machines, c.store), func(t *testing.T) {
			rounds := 3
			if nightly {
				rounds = 20
			} else if c.nightly {
				t.Skip("SKIPPED: FARMSQL_NIGHTLY is not set")
			}
			survive(t, newFleet(t, c.machines, 3, stores[c.store](t)), rounds)
		})
	}
}

// seedOf is the seed of a test's choices.
func seedOf(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FARMSQL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	return seed
}

func survive(t *testing.T, f *fleet, rounds int) {
	seed := seedOf(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seed}
	l.prepare()
	l.begin(l.transfer, l.replace, l.read)
	first := rnd.IntN(2)
	for round := range rounds {
		time.Sleep(time.Duration(100+rnd.IntN(300)) * time.Millisecond) // let them work
		victim := f.machines[rnd.IntN(len(f.machines))]
		if (first+round)%2 == 0 {
			victim.kill()
			f.wait("the killed machine to be evicted", func() bool { return !f.isMember(victim) })
			time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
			victim.start()
		} else {
			pause(f, victim)
		}
		f.awaitWhole()
		if t.Failed() {
			return
		}
	}
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
	t.Log(l)
}

// pause stops a machine until the others have gone on without it. Afterwards the machine must
// notice that, and come back by itself.
func pause(f *fleet, m *machine) {
	f.t.Helper()
	before := m.upsets()
	m.signal(syscall.SIGSTOP)
	f.wait("the stopped machine to be evicted", func() bool { return !f.isMember(m) })
	m.signal(syscall.SIGCONT)
	f.wait("the stopped machine to notice", func() bool { return m.upsets() > before })
}

// TestClusterRestarts: all machines are killed at once and started again.
// Everything acknowledged is there.
func TestClusterRestarts(t *testing.T) {
	rounds := 2
	if nightly {
		rounds = 20
	}
	seed := seedOf(t)
	f := newFleet(t, 3, 3, "")
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seed}
	l.prepare()
	l.begin(l.transfer, l.replace, l.read)
	for range rounds {
		before := l.transfers.Load()
		f.wait("some work", func() bool { return l.transfers.Load() > before+50 })
		f.killAll()
		for _, m := range f.machines {
			m.start()
		}
		f.awaitWhole()
		if t.Failed() {
			return
		}
	}
	l.end()
	for _, m := range f.machines {
		l.verify(m)
	}
	t.Log(l)
}

// The report about hung machines contains the places where they hang.
func TestRemains(t *testing.T) {
	f := newFleet(t, 1, 1, "")
	f.start()
	if got := f.remains(); !strings.Contains(got, "goroutines of machine 0:\n\t") || !strings.Contains(got, "rdma/shm.(*doorbell).run") {
		t.Errorf("%s", got)
	}
}
