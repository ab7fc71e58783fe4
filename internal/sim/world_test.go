package sim

import (
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs f in a world of its own.
func run(t *testing.T, o Options, f func(w *World)) *World {
	t.Helper()
	w := New(o)
	if err := w.Run(func() { f(w) }); err != nil {
		t.Fatal(err)
	}
	return w
}

// Virtual time is the sum of all sleeps, and takes no real time.
func TestTimeIsVirtual(t *testing.T) {
	begin := time.Now()
	run(t, Options{}, func(w *World) {
		p := w.Machine(1).Boot()
		before := p.Now()
		p.Sleep(10 * time.Minute)
		if took := p.Now().Sub(before); took < 10*time.Minute || took > 10*time.Minute+wakeSpan {
			t.Errorf("slept %v", took)
		}
	})
	if took := time.Since(begin); took > time.Minute {
		t.Errorf("that took %v", took)
	}
}

// Clocks drift apart, but not beyond the limit.
func TestDrift(t *testing.T) {
	const drift = 200 // millionths
	run(t, Options{Seed: 3, Drift: drift}, func(w *World) {
		var before []time.Time
		for i := range 8 {
			before = append(before, w.Machine(rdma.MachineID(i)).Boot().Now())
		}
		w.Outside().Sleep(1000 * time.Second)
		different := false
		for i, b := range before {
			late := w.Machine(rdma.MachineID(i)).Process().Now().Sub(b) - 1000*time.Second
			if late.Abs() > drift*time.Millisecond+time.Millisecond {
				t.Errorf("clock %d is %v off", i, late)
			}
			different = different || late.Abs() > 10*time.Millisecond
		}
		if !different {
			t.Error("no clock drifts")
		}
	})
}

func TestOneRoutineRunsAtATime(t *testing.T) {
	run(t, Options{Seed: 1}, func(w *World) {
		p := w.Machine(1).Boot()
		var order []int
		left := 10
		done := w.Outside().NewEvent()
		for i := range left {
			p.Go(func() {
				for range 10 {
					order = append(order, i)
					p.Yield()
				}
				if left--; left == 0 {
					done.Set()
				}
			})
		}
		done.Wait()
		if len(order) != 100 {
			t.Fatalf("%d steps", len(order))
		}
		mixed := 0
		for i := range order[1:] {
			if order[i] != order[i+1] {
				mixed++
			}
		}
		if mixed < 50 {
			t.Errorf("only %d changes of routine", mixed)
		}
	})
}

func TestEvent(t *testing.T) {
	run(t, Options{}, func(w *World) {
		p := w.Machine(1).Boot()
		e := p.NewEvent()
		if e.WaitFor(time.Second) || w.Now() < time.Second {
			t.Error("a new event is set")
		}
		p.AfterFunc(time.Second, e.Set)
		if !e.WaitFor(time.Hour) {
			t.Error("not woken")
		}
		p.AfterFunc(time.Second, e.Set)
		e.Wait()
		e.Set()
		e.Set()
		e.Wait()
		before := w.Now()
		if e.WaitFor(time.Second) || w.Now() < before+time.Second {
			t.Error("set twice, it is set after one wait")
		}
	})
}

func TestLockHeldAcrossAWait(t *testing.T) {
	run(t, Options{}, func(w *World) {
		p := w.Machine(1).Boot()
		var mu sync.Mutex
		inside, done := 0, w.Outside().NewEvent()
		for range 5 {
			p.Go(func() {
				p.Lock(&mu)
				defer mu.Unlock()
				p.Sleep(time.Millisecond)
				if inside++; inside == 5 {
					done.Set()
				}
			})
		}
		done.Wait()
		if w.Now() < 5*time.Millisecond {
			t.Errorf("all were inside after %v", w.Now())
		}
	})
}

func TestTimers(t *testing.T) {
	run(t, Options{}, func(w *World) {
		p := w.Machine(1).Boot()
		ran := 0
		stopped := p.AfterFunc(time.Millisecond, func() { t.Error("a stopped timer ran") })
		ended := p.AfterFunc(time.Millisecond, func() { ran++ })
		if !stopped.Stop() || stopped.Stop() {
			t.Error("Stop of a pending timer")
		}
		p.Sleep(time.Second)
		if ran != 1 || ended.Stop() {
			t.Errorf("timer ran %d times", ran)
		}
	})
}

func TestPool(t *testing.T) {
	run(t, Options{}, func(w *World) {
		made := 0
		p := w.Outside().NewPool(func() any { made++; return made })
		a, b := p.Get(), p.Get()
		p.Put(a)
		p.Put(b)
		if p.Get() != b || p.Get() != a || p.Get() != 3 {
			t.Error("not the latest first")
		}
	})
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		f       func(w *World)
		want    string
	}{
		"everything waits": {f: func(w *World) { w.Outside().NewEvent().Wait() }, want: "everything waits"},
		"time is up":       {Options{TimeMax: time.Second}, func(w *World) { w.Outside().Sleep(time.Minute) }, "not at its end"},
		"too much happens": {Options{EventsMax: 1000}, func(w *World) {
			for {
				w.Outside().Yield()
			}
		}, "not at its end"},
		"panic": {f: func(w *World) {
			w.Machine(1).Boot().Do(func() { panic("broken") })
			w.Outside().Sleep(time.Hour)
		}, want: "panic at machine 1, life 1: broken"},
		// A broken protocol may do this; outside of the simulator it would end the program.
		"memory that was given back": {f: func(w *World) {
			page, err := syscall.Mmap(-1, 0, os.Getpagesize(), syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON)
			if err != nil {
				panic(err)
			}
			first := &page[0]
			if err := syscall.Munmap(page); err != nil {
				panic(err)
			}
			w.Machine(1).Boot().Do(func() { t.Errorf("read %d", *first) })
			w.Outside().Sleep(time.Hour)
		}, want: "panic at machine 1, life 1: runtime error: invalid memory address"},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(c.options)
			err := w.Run(func() { c.f(w) })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if !strings.HasPrefix(c.want, "panic") && !errors.Is(err, ErrStuck) {
				t.Errorf("%v is not ErrStuck", err)
			}
		})
	}
}

// When a process is killed, its routines are unwound, and its memory stays as it was.
func TestKill(t *testing.T) {
	run(t, Options{}, func(w *World) {
		m := w.Machine(1)
		p := m.Boot()
		mem := withStorage(m, "a", 1<<16)
		unwound := 0
		for range 3 {
			p.Go(func() {
				defer func() {
					unwound++
					mem.Store(0, 99) // into what nobody looks at
				}()
				p.NewEvent().Wait()
			})
		}
		p.AfterFunc(time.Second, func() { t.Error("a dead process's timer ran") })
		w.Outside().Sleep(time.Millisecond)
		mem.Store(0, 7)
		m.Kill()
		if !p.Dead() || m.Process() != nil {
			t.Error("it lives")
		}
		p.Go(func() { t.Error("a dead process runs") })
		if p.Do(func() {}) {
			t.Error("a dead process did something")
		}
		w.Outside().Sleep(2 * time.Second)
		if unwound != 3 {
			t.Errorf("%d routines were unwound", unwound)
		}
		m.Boot()
		if again, _ := m.Memory().Map("a", 1<<16); again.Load(0) != 7 {
			t.Errorf("memory holds %d", again.Load(0))
		}
		if _, err := m.Memory().Map("a", 1<<17); err == nil {
			t.Error("memory of another size")
		}
		m.Destroy()
		m.Boot()
		if names, _ := m.Memory().Names(); len(names) != 0 {
			t.Errorf("after its loss there is memory: %v", names)
		}
	})
}

// Code that kills its own process runs to its next wait, with locks held. Its actions after the
// kill have no effect.
func TestKillFromInside(t *testing.T) {
	run(t, Options{}, func(w *World) {
		m := w.Machine(1)
		p := m.Boot()
		mem := withStorage(m, "a", 4096)
		var mu sync.Mutex
		p.Go(func() {
			defer func() {
				mu.Lock() // would wait for ever if the lock were held
				defer mu.Unlock()
			}()
			p.NewEvent().Wait()
		})
		returned := p.Do(func() {
			mu.Lock()
			m.Kill()
			mem.Store(0, 1)
			mu.Unlock()
			p.Yield()
			t.Error("went on")
		})
		if returned {
			t.Error("returned from a dead process")
		}
		if again, _ := m.Memory().Map("a", 4096); again.Load(0) != 0 {
			t.Error("written to after its death")
		}
	})
}

// A paused process does nothing, but others can access its memory.
func TestPause(t *testing.T) {
	run(t, Options{}, func(w *World) {
		a, b := w.Machine(1), w.Machine(2)
		qa, mem := pairOf(t, a.Boot(), b.Boot())
		ticks := 0
		b.Process().Go(func() {
			for {
				ticks++
				b.Process().Sleep(time.Millisecond)
			}
		})
		w.Outside().Sleep(10 * time.Millisecond)
		b.Pause(time.Second)
		before := ticks
		if err := transfer(a.Process(), qa, 2, make([]byte, 64)); err != nil {
			t.Errorf("write to a paused machine: %v", err)
		}
		mem.Store(8, 5)
		w.Outside().Sleep(900 * time.Millisecond)
		if ticks != before {
			t.Error("it runs")
		}
		w.Outside().Sleep(time.Second)
		if ticks < before+100 {
			t.Error("it does not go on")
		}
	})
}

func TestPowerCut(t *testing.T) {
	run(t, Options{}, func(w *World) {
		for i := range rdma.MachineID(4) {
			w.Machine(i).Boot()
			w.Machine(i).SetDomain(int(i) / 2)
			withStorage(w.Machine(i), "a", 4096).Store(0, 1)
		}
		w.FailDomain(1, false)
		for i := range rdma.MachineID(4) {
			if dead := w.Machine(i).Process() == nil; dead != (w.Machine(i).Domain() == 1) {
				t.Errorf("machine %d dead: %v", i, dead)
			}
		}
		w.PowerCut(func(m *Machine) bool { return m.ID() != 3 })
		for i := range rdma.MachineID(4) {
			names, _ := w.Machine(i).Memory().Names()
			if w.Machine(i).Process() != nil || (len(names) == 0) != (i == 3) {
				t.Errorf("machine %d has %v", i, names)
			}
		}
		w.Machine(0).Boot()
		w.FailDomain(0, true)
		if names, _ := w.Machine(0).Memory().Names(); len(names) != 0 {
			t.Error("failed for good, it has memory")
		}
	})
}

// The same seed gives the same run, and another seed gives another run.
func TestSeedDecides(t *testing.T) {
	hashes := make(map[uint64]int)
	for i := range 6 {
		w := run(t, Options{Seed: uint64(i % 3), Loss: 100, Drift: 100}, func(w *World) {
			a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
			q, _ := pairOf(t, a, b)
			var mu sync.Mutex
			for range 10 {
				a.Go(func() {
					for range 10 {
						a.Lock(&mu)
						_ = transfer(a, q, 2, make([]byte, 8*(1+a.Uint64()%100)))
						mu.Unlock()
					}
				})
			}
			a.AfterFunc(100*time.Microsecond, func() { w.Machine(2).Kill() })
			a.Sleep(time.Second)
		})
		hashes[w.Hash()]++
	}
	if len(hashes) != 3 {
		t.Errorf("hashes of 3 seeds: %v", hashes)
	}
}

var _ clock.Clock = New(Options{}).Outside()
