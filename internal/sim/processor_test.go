package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// limited returns options for a world in which only Process.Work costs processor time.
func limited(processors int) Options { return Options{Seed: 1, Processors: processors} }

// jobs runs n routines that work for d each, and returns the time at which each ended.
func jobs(w *World, p *Process, n int, d time.Duration) (ended []time.Duration) {
	done := w.Outside().NewEvent()
	for range n {
		p.Go(func() {
			p.Work(d)
			w.Outside().Go(func() {
				if ended = append(ended, w.Now()); len(ended) == n {
					done.Set()
				}
			})
		})
	}
	done.Wait()
	return ended
}

// As many turns run at a time as there are processors, one after the other.
func TestProcessors(t *testing.T) {
	const d = time.Millisecond
	for processors, rounds := range map[int]int{1: 6, 2: 3, 4: 2, 6: 1} {
		run(t, limited(processors), func(w *World) {
			ended := jobs(w, w.Machine(1).Boot(), 6, d)
			for i, at := range ended {
				round := time.Duration(i/processors + 1)
				if at < round*d || at > round*d+d/10 {
					t.Errorf("%d processors: job %d ended at %v, want %v", processors, i, at, round*d)
				}
			}
			if len(ended) != 6 || rounds != (5/processors)+1 {
				t.Errorf("%d jobs, %d rounds", len(ended), rounds)
			}
		})
	}
}

// Without limits, work takes no time. The work of the outside never takes time.
func TestWorkForFree(t *testing.T) {
	run(t, Options{Seed: 1}, func(w *World) {
		if ended := jobs(w, w.Machine(1).Boot(), 6, time.Hour); ended[5] > time.Millisecond {
			t.Errorf("ended at %v", ended)
		}
	})
	run(t, limited(1), func(w *World) {
		if ended := jobs(w, w.Outside(), 6, time.Hour); ended[5] > time.Millisecond {
			t.Errorf("ended at %v", ended)
		}
	})
}

// A turn changes memory at once. It reads the clock, posts, sets events, and starts routines and
// timers later by the work that it has done.
func TestWorkComesBefore(t *testing.T) {
	const d = time.Second
	run(t, limited(1), func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		q, mem := pairOf(t, a, b)
		var at []time.Duration
		note := func() { at = append(at, w.Now()) }
		e := w.Outside().NewEvent()
		var late time.Duration
		w.Outside().Go(func() {
			e.Wait()
			note()
		})
		a.Go(func() {
			before := a.Now()
			a.Work(d)
			late = a.Now().Sub(before)
			if _, err := q.Write(2, testKey, 0, ofOnes(1), 1); err != nil {
				t.Error(err)
			}
			q.Flush()
			e.Set()
			a.Go(note)
			a.AfterFunc(0, note)
		})
		w.Outside().Sleep(d - time.Millisecond)
		if mem.Load(0) != 0 {
			t.Error("the write landed before the work was done")
		}
		w.Outside().Sleep(2 * time.Millisecond)
		if mem.Load(0) != 1 {
			t.Error("the write did not land")
		}
		slices.Sort(at)
		if late != d || len(at) != 3 || at[0] < d || at[2] > d+time.Millisecond {
			t.Errorf("the clock was %v later; the rest at %v", late, at)
		}
	})
}

// Operations, datagrams and repeated checks cost as much as the options say.
func TestCosts(t *testing.T) {
	o := limited(1)
	o.Costs = Costs{Operation: time.Millisecond, Datagram: 10 * time.Millisecond, Kilobyte: 100 * time.Millisecond, Yield: time.Second}
	run(t, o, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		q, _ := pairOf(t, a, b)
		var posted, sent, took, away time.Duration
		b.nic.Datagrams(func(rdma.MachineID, []byte) { took = w.time() - w.Now() })
		a.Go(func() {
			begin := a.Now()
			for range 3 {
				if err := transfer(a, q, 2, ofOnes(1)); err != nil {
					t.Error(err)
				}
			}
			posted = a.Now().Sub(begin)
			begin = a.Now()
			if err := a.nic.Datagram(2, make([]byte, 2048)); err != nil {
				t.Error(err)
			}
			sent = a.Now().Sub(begin)
			a.Yield()
			away = a.Now().Sub(begin)
		})
		w.Outside().Sleep(2 * time.Second)
		if posted < 3*time.Millisecond || posted > 4*time.Millisecond || sent != 10*time.Millisecond || took != 210*time.Millisecond {
			t.Errorf("three writes %v, a datagram %v to send and %v to receive", posted, sent, took)
		}
		if away < time.Second || away > time.Second+11*time.Millisecond {
			t.Errorf("yielded for %v", away)
		}
	})
}

// A card sends one transfer after the other: this card sends the bytes of WRITEs, the other card
// those of READs.
func TestBandwidth(t *testing.T) {
	o := Options{Seed: 1, Bandwidth: 1e6}
	run(t, o, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		q, _ := pairOf(t, a, b)
		for _, post := range []func(rdma.MachineID, rdma.Key, uint64, []byte, uint64) (bool, error){q.Write, q.Read} {
			begin := w.Now()
			for range 4 {
				if _, err := post(2, testKey, 0, make([]byte, 1000), 1); err != nil {
					t.Fatal(err)
				}
			}
			q.Flush()
			for range 4 {
				if err := completed(w.Outside(), q); err != nil {
					t.Error(err)
				}
			}
			if took := w.Now() - begin; took < 4*time.Millisecond || took > 5*time.Millisecond {
				t.Errorf("4 KB at 1 MB/s took %v", took)
			}
		}
	})
}

// A card works on one packet after the other: two of an operation at either end. Bytes do not take longer for that.
func TestPackets(t *testing.T) {
	o := Options{Seed: 1, Packet: time.Millisecond, Bandwidth: 1e6}
	run(t, o, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		q, _ := pairOf(t, a, b)
		for bytes, least := range map[int]time.Duration{8: 8 * time.Millisecond, 3000: 12 * time.Millisecond} {
			begin := w.Now()
			for range 4 {
				if _, err := q.Write(2, testKey, 0, make([]byte, bytes), 1); err != nil {
					t.Fatal(err)
				}
			}
			q.Flush()
			for range 4 {
				if err := completed(w.Outside(), q); err != nil {
					t.Error(err)
				}
			}
			if took := w.Now() - begin; took < least || took > least+9*time.Millisecond { // the other card's packets
				t.Errorf("4 WRITEs of %d bytes took %v", bytes, took)
			}
		}
	})
}

// On a steady network each READ takes the same time, however many lines it has.
func TestSteady(t *testing.T) {
	run(t, Options{Seed: 1, Steady: true, Latency: time.Millisecond}, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		q, _ := pairOf(t, a, b)
		for range 100 {
			begin := w.Now()
			if _, err := q.Read(2, testKey, 0, make([]byte, 1024), 1); err != nil {
				t.Fatal(err)
			}
			q.Flush()
			if err := completed(w.Outside(), q); err != nil {
				t.Error(err)
			}
			if took := w.Now() - begin; took < 2*time.Millisecond || took > 2*time.Millisecond+5*time.Microsecond {
				t.Fatalf("a READ took %v", took)
			}
		}
	})
}

// Asides do not wait for processors.
func TestAside(t *testing.T) {
	run(t, limited(1), func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		pairOf(t, a, b)
		var at []time.Duration
		note := func() { at = append(at, w.Now()) }
		own := Aside{b}
		own.NIC().Datagrams(func(rdma.MachineID, []byte) { note() })
		b.nic.Datagrams(func(rdma.MachineID, []byte) { t.Error("arrived at the other port") })
		b.Go(func() { b.Work(time.Second) })
		w.Outside().Sleep(time.Millisecond)
		own.Go(func() {
			own.Yield()
			note()
		})
		own.AfterFunc(time.Millisecond, note)
		if err := (Aside{a}).NIC().Datagram(2, []byte{1}); err != nil {
			t.Error(err)
		}
		w.Outside().Sleep(100 * time.Millisecond)
		if len(at) != 3 {
			t.Errorf("happened beside the work: %v", at)
		}
	})
}

// A pause holds back turns that wait for a processor, and death ends them.
func TestProcessorsOfThePausedAndTheDead(t *testing.T) {
	run(t, limited(1), func(w *World) {
		m := w.Machine(1)
		p := m.Boot()
		ran := 0
		for range 3 {
			p.Go(func() {
				ran++
				p.Work(time.Millisecond)
			})
		}
		w.Outside().Sleep(500 * time.Microsecond)
		m.Pause(10 * time.Millisecond)
		w.Outside().Sleep(5 * time.Millisecond)
		if ran != 1 {
			t.Errorf("%d turns ran before and while it was paused", ran)
		}
		w.Outside().Sleep(6500 * time.Microsecond)
		if ran != 3 {
			t.Errorf("%d turns ran afterwards", ran)
		}
		p.Go(func() { t.Error("a dead process ran") })
		m.Kill()
		w.Outside().Sleep(time.Second)
	})
}

// The same seed gives the same run with limited processors, too.
func TestSeedDecidesTurns(t *testing.T) {
	hash := func(seed uint64) uint64 {
		o := limited(2)
		o.Seed, o.Costs = seed, Costs{Operation: 3 * time.Microsecond}
		return run(t, o, func(w *World) { jobs(w, w.Machine(1).Boot(), 20, time.Microsecond) }).Hash()
	}
	one, again, other := hash(1), hash(1), hash(2)
	if one != again || one == other {
		t.Error("the same seed must give the same run, another another")
	}
}

// On a machine that hangs, only Asides run. Afterwards it does everything that it has missed.
func TestHang(t *testing.T) {
	run(t, Options{Seed: 3}, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
		pairOf(t, a, b)
		ran, aside, heard, heardAside := 0, 0, 0, 0
		var tick, tickAside func()
		tick = func() { ran++; b.AfterFunc(time.Millisecond, tick) }
		tickAside = func() { aside++; Aside{b}.AfterFunc(time.Millisecond, tickAside) }
		tick()
		tickAside()
		Aside{b}.NIC().Datagrams(func(rdma.MachineID, []byte) { heardAside++ })
		b.nic.Datagrams(func(rdma.MachineID, []byte) { heard++ })
		w.Outside().Sleep(5500 * time.Microsecond)
		w.Machine(2).Hang(10 * time.Millisecond)
		w.Machine(2).Hang(time.Hour) // it hangs already
		w.Machine(2).Pause(time.Hour)
		before, beforeAside := ran, aside
		for _, n := range []rdma.NIC{a.nic, Aside{a}.NIC()} {
			if err := n.Datagram(2, []byte{1}); err != nil {
				t.Error(err)
			}
		}
		w.Outside().Sleep(9 * time.Millisecond)
		if ran != before || heard != 0 {
			t.Errorf("did %d things and heard %d while it hung", ran-before, heard)
		}
		if aside < beforeAside+8 || heardAside != 1 {
			t.Errorf("aside, %d things were done and %d heard", aside-beforeAside, heardAside)
		}
		w.Outside().Sleep(5 * time.Millisecond)
		if ran <= before || heard != 1 {
			t.Errorf("did %d things and heard %d after it hung", ran-before, heard)
		}
		w.Machine(2).Hang(time.Millisecond)
		w.Machine(2).Kill()
		w.Outside().Sleep(2 * time.Millisecond)
		if w.Machine(2).Boot(); w.Machine(2).Process().hung {
			t.Error("the next life hangs")
		}
	})
}
