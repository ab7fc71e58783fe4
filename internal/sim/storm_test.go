package sim

import (
	"testing"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// datagrams sends n datagrams from machine 1 to machine 2. It returns the delays of those that
// arrived.
func datagrams(t *testing.T, n int, in Storm) (took []time.Duration) {
	w := New(Options{Seed: 5})
	err := w.Run(func() {
		var nics [2]rdma.NIC
		for i := range nics {
			p := w.Machine(rdma.MachineID(1 + i)).Boot()
			nics[i], _ = p.Join()
		}
		sent := make([]time.Duration, n)
		nics[1].Datagrams(func(_ rdma.MachineID, b []byte) { took = append(took, w.Now()-sent[int(b[0])<<8|int(b[1])]) })
		w.Storm(in)
		for i := range n {
			sent[i] = w.Now()
			if err := nics[0].Datagram(2, []byte{byte(i >> 8), byte(i)}); err != nil {
				t.Error(err)
			}
			w.Outside().Sleep(time.Millisecond)
		}
		w.Outside().Sleep(time.Second)
	})
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// In a storm some datagrams arrive twice, and some much later than others.
func TestStorm(t *testing.T) {
	for _, c := range []struct {
		storm       Storm
		double, far bool
	}{
		{Storm{}, false, false},
		{Storm{Doubled: 100}, true, false},
		{Storm{Late: 100, LateMax: 500 * time.Millisecond}, false, true},
	} {
		took := datagrams(t, 1000, c.storm)
		late := 0
		for _, d := range took {
			if d > 10*time.Millisecond {
				late++
			}
		}
		if doubled := len(took) - 1000; c.double != (doubled > 50) || !c.double && doubled != 0 {
			t.Errorf("%+v: %d of 1000 arrived", c.storm, len(took))
		}
		if c.far != (late > 50) || !c.far && late > 0 {
			t.Errorf("%+v: %d are late", c.storm, late)
		}
	}
}

// A link that two overlapping faults have cut is mended when both are over.
func TestCutTwice(t *testing.T) {
	w := New(Options{Seed: 1})
	w.Cut(1, 2)
	w.Cut(1, 2)
	w.Mend(1, 2)
	if w.Up(1, 2) || !w.Up(2, 1) {
		t.Error("mended once, the link that was cut twice is up")
	}
	w.Mend(1, 2)
	if !w.Up(1, 2) {
		t.Error("mended twice, the link is cut")
	}
}

// A slow machine's routines take longer, only while it is slow. Asides do not.
func TestSlow(t *testing.T) {
	w := New(Options{Seed: 1})
	err := w.Run(func() {
		m := w.Machine(1)
		p := m.Boot()
		if _, err := p.Join(); err != nil {
			t.Error(err)
		}
		aside := make(map[bool]time.Duration)
		took := func(isAside bool) time.Duration {
			done, begin := w.Outside().NewEvent(), w.Now()
			f := func() {
				for range 100 {
					p.Yield()
				}
				aside[isAside] = w.Now() - begin
				done.Set()
			}
			if isAside {
				Aside{p}.Go(f)
			} else {
				p.Go(f)
			}
			done.Wait()
			return aside[isAside]
		}
		m.Slow(time.Second, time.Millisecond)
		if d := took(true); d > time.Millisecond {
			t.Errorf("what is aside took %v", d)
		}
		if d := took(false); d < 10*time.Millisecond {
			t.Errorf("a slow machine took %v", d)
		}
		w.Outside().Sleep(time.Second)
		if d := took(false); d > time.Millisecond {
			t.Errorf("no longer slow, it took %v", d)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A slow machine that hangs begins no turns that were waiting for its processors.
func TestHangWhileSlow(t *testing.T) {
	run(t, Options{Seed: 1}, func(w *World) {
		m := w.Machine(1)
		p := m.Boot()
		m.Slow(time.Second, 5*time.Millisecond)
		ran := 0
		for range 100 {
			p.Go(func() { ran++ })
		}
		w.Outside().Sleep(time.Millisecond)
		m.Hang(20 * time.Millisecond)
		before := ran
		w.Outside().Sleep(10 * time.Millisecond)
		if ran != before || before == 100 {
			t.Errorf("%d turns before it hung, %d while it did", before, ran-before)
		}
		w.Outside().Sleep(20 * time.Millisecond)
		if ran != 100 {
			t.Errorf("%d turns of 100", ran)
		}
	})
}
