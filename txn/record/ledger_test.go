package record

import (
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// A ledger says of a life's transactions what a set of the truncated ones says,
// also when it is opened again.
func TestLedger(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	log := nvram.NewMemory(64 << 10)
	c := Coordinator{Machine: 7, Worker: 3}
	l := NewLedger(log, c)
	for life := range uint32(20) {
		w := NewWindow(2 + 3*life)
		first := w.Low
		for range 400 {
			for range rng.IntN(9) {
				w.Begin()
			}
			for range rng.IntN(8) {
				seq := w.Low + uint64(rng.IntN(int(w.Next-w.Low)+1))
				if seq == w.Next || w.Finished(seq) || seq-w.Low >= LedgerNames {
					continue
				}
				w.Finish(seq)
				if l.Raise(w.Low); !l.Passed(seq) {
					if !l.CanName(seq) {
						t.Fatalf("there is no place for %d, the bound is %d", seq, w.Low)
					}
					l.Name(seq)
				}
			}
		}
		opened, from := OpenLedger(log)
		if opened == nil || from != c {
			t.Fatalf("the ledger is of %v: %v", from, opened)
		}
		for _, b := range []*Ledger{l, opened} {
			for seq := first; seq < w.Next+LedgerNames; seq++ {
				if b.Has(seq) != w.Finished(seq) {
					t.Fatalf("life %d: has(%d) is %v, the bound is %d", life, seq-first, b.Has(seq), w.Low-first)
				}
			}
			for _, other := range []uint64{first - 1<<LifeShift, first + 1<<LifeShift} {
				if b.Passed(other) {
					t.Fatalf("life %d's bound is about %#x", life, other)
				}
			}
		}
	}
}

// A transaction that nobody has named, or that is too far above the low bound to be named, is not
// truncated.
func TestLedgerHasPlaces(t *testing.T) {
	l := NewLedger(nvram.NewMemory(8<<10), Coordinator{})
	l.Raise(100)
	for seq, want := range map[uint64]bool{100: true, 99 + LedgerNames: true, 100 + LedgerNames: false, 99: false} {
		if l.CanName(seq) != want {
			t.Errorf("canName(%d) is %v", seq, !want)
		}
	}
	l.Name(150)
	for seq, want := range map[uint64]bool{99: true, 100: false, 150: true, 150 + LedgerNames: false} {
		if l.Has(seq) != want {
			t.Errorf("has(%d) is %v", seq, !want)
		}
	}
}
