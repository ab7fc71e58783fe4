//go:build invariants

package lockrank

import (
	"strings"
	"testing"
)

// violates returns what f panics with.
func violates(f func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = v.(string)
		}
	}()
	f()
	return ""
}

func TestLock(t *testing.T) {
	var worker, other Mutex[Worker]
	var machine Mutex[Machine]
	var reserving RWMutex[Reserving]
	nothing := func() {}
	for name, c := range map[string]struct {
		first, then func()
		end         func()
		want        string
	}{
		"in order":           {worker.Lock, machine.Lock, func() { machine.Unlock(); worker.Unlock() }, ""},
		"out of order":       {machine.Lock, worker.Lock, machine.Unlock, "lockrank.Worker while lockrank.Machine"},
		"of one rank":        {worker.Lock, other.Lock, worker.Unlock, "lockrank.Worker while lockrank.Worker"},
		"tried":              {machine.Lock, func() { worker.TryLock() }, func() { worker.Unlock(); machine.Unlock() }, ""},
		"after a try":        {func() { machine.TryLock() }, worker.Lock, machine.Unlock, "lockrank.Worker while lockrank.Machine"},
		"read":               {reserving.RLock, worker.Lock, func() { worker.Unlock(); reserving.RUnlock() }, ""},
		"read out of order":  {worker.Lock, reserving.RLock, worker.Unlock, "lockrank.Reserving while lockrank.Worker"},
		"write":              {worker.Lock, reserving.Lock, worker.Unlock, "lockrank.Reserving while lockrank.Worker"},
		"read twice":         {reserving.RLock, reserving.RLock, reserving.RUnlock, "lockrank.Reserving while lockrank.Reserving"},
		"unlocked meanwhile": {func() { machine.Lock(); machine.Unlock() }, worker.Lock, worker.Unlock, ""},
		"unlocked by another": {func() {
			machine.Lock()
			done := make(chan struct{})
			go func() { machine.Unlock(); close(done) }()
			<-done
		}, worker.Lock, worker.Unlock, ""},
		"held by another": {func() {
			done := make(chan struct{})
			go func() { machine.Lock(); close(done) }()
			<-done
		}, worker.Lock, func() { worker.Unlock(); machine.Unlock() }, ""},
		"forgotten": {func() { machine.Lock(); Forget() }, worker.Lock, func() { worker.Unlock(); machine.Unlock() }, ""},
		"nothing":   {nothing, nothing, nothing, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.first()
			got := violates(c.then)
			c.end()
			if got == "" && c.want != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	for i := range held {
		if n := len(held[i].by); n != 0 {
			t.Errorf("%d goroutines still hold something", n)
		}
	}
}

func TestBefore(t *testing.T) {
	for _, c := range []struct {
		held, wanted Rank
		may          bool
	}{
		{Connector{}, Leaf{}, true},
		{Worker{}, Machine{}, true},
		{Machine{}, Worker{}, false},
		{Worker{}, Worker{}, false},
		{Leaf{}, Leaf{}, false},
		{Giving{}, Giving{}, true},
	} {
		if before(c.held, c.wanted) != c.may {
			t.Errorf("%T before %T: %v", c.held, c.wanted, !c.may)
		}
	}
}
