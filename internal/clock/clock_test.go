package clock

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestEvent(t *testing.T) {
	e := System{}.NewEvent()
	if e.WaitFor(time.Nanosecond) {
		t.Error("a new event is set")
	}
	e.Set()
	e.Set()
	e.Wait()
	if e.WaitFor(0) {
		t.Error("set twice, an event is set after one Wait")
	}
	e.Set()
	if !e.WaitFor(0) {
		t.Error("an event that was set is not")
	}
}

// A later Set wakes the waiter, whether or not the wait has a bound.
func TestEventWakes(t *testing.T) {
	var c System
	for name, wait := range map[string]func(Event) bool{
		"Wait":    func(e Event) bool { e.Wait(); return true },
		"WaitFor": func(e Event) bool { return e.WaitFor(time.Hour) },
	} {
		asked, answered := c.NewEvent(), c.NewEvent()
		c.Go(func() {
			asked.Wait()
			answered.Set()
		})
		asked.Set()
		if !wait(answered) {
			t.Errorf("%s was not woken", name)
		}
	}
}

func TestLock(t *testing.T) {
	var mu sync.Mutex
	var c System
	c.Lock(&mu)
	if mu.TryLock() {
		t.Error("not locked")
	}
	mu.Unlock()
}

func TestPool(t *testing.T) {
	made := 0
	p := System{}.NewPool(func() any { made++; return made })
	if v := p.Get(); v != 1 {
		t.Errorf("got %v from an empty pool", v)
	}
	p.Put(1)
	if v := p.Get(); v != made {
		t.Errorf("got %v, not what was put or made last", v)
	}
}

func TestProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	c := System{}
	if n := c.Processors(); n != 4 {
		t.Fatalf("%d processors", n)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 1000 {
				if p := c.Processor(); p < 0 || p >= 4 {
					t.Errorf("runs on processor %d of 4", p)
					return
				}
			}
		})
	}
	wg.Wait()
}
