package sim

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

const testKey rdma.Key = 7

// pairOf joins two processes and returns the queue of the first, and the memory
// of the second.
func pairOf(t *testing.T, a, b *Process) (rdma.Queue, *nvram.Memory) {
	t.Helper()
	var queues [2]rdma.Queue
	var mem *nvram.Memory
	for i, p := range []*Process{a, b} {
		n, err := p.Join()
		if err != nil {
			t.Fatal(err)
		}
		if queues[i], err = n.Open(0, nil); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			mem = withStorage(p.Machine(), "m", 1<<16)
			if err := n.Register(testKey, mem); err != nil {
				t.Fatal(err)
			}
		}
	}
	return queues[0], mem
}

// transfer writes at offset 0 and waits.
func transfer(p *Process, q rdma.Queue, to rdma.MachineID, b []byte) error {
	if _, err := q.Write(to, testKey, 0, b, 1); err != nil {
		return err
	}
	q.Flush()
	return completed(p, q)
}

func completed(p *Process, q rdma.Queue) error {
	var cs [1]rdma.Completion
	for q.Poll(cs[:]) == 0 {
		p.Sleep(time.Microsecond)
	}
	return cs[0].Err
}

// ofOnes returns n words of one value.
func ofOnes(n int) []byte {
	b := make([]byte, 8*n)
	for i := range n {
		binary.NativeEndian.PutUint64(b[8*i:], 1)
	}
	return b
}

// A cut in one direction: an operation whose request is lost fails without effect. An operation
// whose acknowledgement is lost fails after its effect.
func TestOneWayCut(t *testing.T) {
	run(t, Options{}, func(w *World) {
		a := w.Machine(1).Boot()
		q, mem := pairOf(t, a, w.Machine(2).Boot())
		for i, cut := range []link{{1, 2}, {2, 1}} {
			if err := transfer(a, q, 2, make([]byte, 64)); err != nil {
				t.Fatal(err)
			}
			w.Cut(cut.from, cut.to)
			if _, err := q.Write(2, testKey, 0, ofOnes(8), 1); err != nil {
				t.Fatal(err)
			}
			q.Flush()
			isBreaking := false
			for range 100 {
				a.Sleep(w.options.Latency / 10)
				isBreaking = isBreaking || w.Breaking()
			}
			if err := completed(a, q); !errors.Is(err, rdma.ErrBroken) || !isBreaking || w.Breaking() {
				t.Errorf("across the cut: %v; a connection was seen to break: %v, still does: %v", err, isBreaking, w.Breaking())
			}
			if got := mem.Load(0); got != uint64(i) {
				t.Errorf("memory holds %d, want %d", got, i)
			}
			w.Mend(cut.from, cut.to)
		}
	})
}

// After a crash of either side, a prefix of a WRITE has been written: whole lines, and now and then
// a part of one.
func TestCrashTearsWrites(t *testing.T) {
	const lines = 32
	for _, victim := range []rdma.MachineID{1, 2} {
		whole, none, part := 0, 0, 0
		for seed := range uint64(300) {
			run(t, Options{Seed: seed}, func(w *World) {
				a := w.Machine(1).Boot()
				b := w.Machine(2)
				q, _ := pairOf(t, a, b.Boot())
				if _, err := q.Write(2, testKey, 0, ofOnes(8*lines), 1); err != nil {
					t.Fatal(err)
				}
				q.Flush()
				w.Outside().Sleep(w.upTo(10 * time.Microsecond))
				w.Machine(victim).Kill()
				w.Outside().Sleep(time.Second)
				b.Kill()
				b.Boot()
				m, _ := b.Memory().Map("m", 1<<16)
				n := 0
				for n < lines && m.Load(uint64(n*64)) == 1 && m.Load(uint64(n*64+56)) == 1 {
					n++
				}
				for i := n * 64; i < lines*64; i += 8 {
					if m.Load(uint64(i)) != 0 {
						t.Fatalf("seed %d: word at %d of a write cut short after %d lines", seed, i, n)
					}
				}
				switch n {
				case 0:
					none++
				case lines:
					whole++
				default:
					part++
				}
			})
		}
		if whole == 0 || none == 0 || part == 0 {
			t.Errorf("victim %d: %d writes landed, %d did not, %d in part", victim, whole, none, part)
		}
	}
}

// Lines of one READ come from different moments, and words of one line do not.
func TestReadsAreTorn(t *testing.T) {
	torn := 0
	for seed := range uint64(100) {
		run(t, Options{Seed: seed}, func(w *World) {
			a, b := w.Machine(1).Boot(), w.Machine(2).Boot()
			q, mem := pairOf(t, a, b)
			b.Go(func() {
				for v := uint64(1); ; v++ {
					for off := uint64(0); off < 512; off += 8 {
						mem.Store(off, v)
					}
					b.Yield()
				}
			})
			buf := make([]byte, 512)
			if _, err := q.Read(2, testKey, 0, buf, 1); err != nil {
				t.Fatal(err)
			}
			q.Flush()
			if err := completed(a, q); err != nil {
				t.Fatal(err)
			}
			for line := 0; line < 512; line += 64 {
				first := binary.NativeEndian.Uint64(buf[line:])
				for i := line; i < line+64; i += 8 {
					if binary.NativeEndian.Uint64(buf[i:]) != first {
						t.Fatalf("seed %d: the line at %d is torn", seed, line)
					}
				}
			}
			if binary.NativeEndian.Uint64(buf) != binary.NativeEndian.Uint64(buf[448:]) {
				torn++
			}
		})
	}
	if torn < 10 {
		t.Errorf("%d of 100 reads were torn", torn)
	}
}

// A process that waits for an operation which it has not flushed fails the run; one that dies before it
// flushes does not.
func TestForgottenFlush(t *testing.T) {
	for _, dies := range []bool{false, true} {
		w := New(Options{Seed: 1})
		err := w.Run(func() {
			a := w.Machine(1).Boot()
			q, _ := pairOf(t, a, w.Machine(2).Boot())
			if _, err := q.Write(2, testKey, 0, ofOnes(8), 1); err != nil {
				t.Error(err)
			}
			if dies {
				w.Machine(1).Kill()
			}
			w.Outside().Sleep(time.Second)
		})
		if dies && err != nil || !dies && (err == nil || !strings.Contains(err.Error(), "machine 1 waits, and has not flushed write to machine 2")) {
			t.Errorf("dies %v: %v", dies, err)
		}
	}
}

func TestSpike(t *testing.T) {
	run(t, Options{Seed: 1}, func(w *World) {
		a := w.Machine(1).Boot()
		q, _ := pairOf(t, a, w.Machine(2).Boot())
		took := func() time.Duration {
			begin := w.Now()
			for range 20 {
				if err := transfer(a, q, 2, make([]byte, 8)); err != nil {
					t.Fatal(err)
				}
			}
			return w.Now() - begin
		}
		plain := took()
		w.Spike(1, 2, time.Hour, 10*time.Millisecond)
		if slow := took(); slow < 20*time.Millisecond || plain > 5*time.Millisecond {
			t.Errorf("20 writes took %v, in a spike %v", plain, slow)
		}
	})
}

// The sender notices that the connection's machine has died, and gets a new connection to the
// machine's next life.
func TestConnectionToTheDead(t *testing.T) {
	run(t, Options{Seed: 1}, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2)
		q, _ := pairOf(t, a, b.Boot())
		if _, err := q.Write(2, testKey, 0, ofOnes(8), 1); err != nil {
			t.Fatal(err)
		}
		q.Flush()
		b.Kill()
		if err := completed(a, q); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("write to a machine that died: %v", err)
		}
		if err := transfer(a, q, 2, ofOnes(8)); !errors.Is(err, rdma.ErrBroken) {
			t.Errorf("write to a dead machine: %v", err)
		}
		n, err := b.Boot().Join()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Open(0, nil); err != nil {
			t.Fatal(err)
		}
		if err := transfer(a, q, 2, ofOnes(8)); !errors.Is(err, rdma.ErrKey) {
			t.Errorf("write to its next life, which has registered nothing: %v", err)
		}
	})
}

func TestDatagrams(t *testing.T) {
	run(t, Options{Seed: 1, Loss: 200}, func(w *World) {
		a, b := w.Machine(1).Boot(), w.Machine(2)
		na, err := a.Join()
		if err != nil {
			t.Fatal(err)
		}
		nb, err := b.Boot().Join()
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		nb.Datagrams(func(_ rdma.MachineID, d []byte) { got = append(got, d[0]) })
		for i := range 100 {
			if err := na.Datagram(2, []byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		w.Outside().Sleep(time.Second)
		reordered := false
		for i := range got[1:] {
			reordered = reordered || got[i] > got[i+1]
		}
		if len(got) < 60 || len(got) > 95 || !reordered {
			t.Errorf("%d of 100 arrived, reordered: %v", len(got), reordered)
		}
		b.Kill()
		if err := na.Datagram(2, []byte{1}); err != nil {
			t.Errorf("to a dead machine: %v", err)
		}
	})
}

// TestDeaths: in worlds with known deaths, all living processes hear exactly once of each process
// that dies, and of nothing else.
func TestDeaths(t *testing.T) {
	for seed := range uint64(4) {
		run(t, Options{Seed: seed}, func(w *World) {
			heard := map[[2]rdma.MachineID]int{}
			nics := map[rdma.MachineID]rdma.NIC{}
			for id := range rdma.MachineID(5) {
				n, err := w.Machine(id).Boot().Join()
				if err != nil {
					t.Fatal(err)
				}
				n.Deaths(func(m rdma.MachineID) { heard[[2]rdma.MachineID{id, m}]++ })
				nics[id] = n
			}
			w.Machine(5).Boot() // not on the network
			nics[4].Close()
			w.Machine(4).Kill()
			w.Machine(1).Kill()
			w.Machine(2).Kill()
			w.Outside().Sleep(time.Second)
			known := int(seed % 2)
			for who := range rdma.MachineID(6) {
				for m := range rdma.MachineID(6) {
					want := 0
					if (who == 0 || who == 3) && (m == 1 || m == 2) {
						want = known
					}
					if n := heard[[2]rdma.MachineID{who, m}]; n != want {
						t.Errorf("seed %d: machine %d has heard %d times of %d's death, want %d", seed, who, n, m, want)
					}
				}
			}
			w.Machine(3).Kill()
			_, err := w.Machine(3).Boot().Join() // back before anybody has heard
			if err != nil {
				t.Fatal(err)
			}
			w.Outside().Sleep(time.Second)
			if n := heard[[2]rdma.MachineID{0, 3}]; n != 0 {
				t.Errorf("seed %d: heard %d times of the death of one that is back", seed, n)
			}
		})
	}
}
