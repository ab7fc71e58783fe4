package btree

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// TestGlanceAgreesWithSeek looks keys up in both ways, in nodes of all sizes and
// with keys of all lengths. A warm cache lets a glance decide.
func TestGlanceAgreesWithSeek(t *testing.T) {
	for _, cfg := range []Config{{}, smallNodes, {LeafBytes: maxBudgetBytes}} {
		c := openFarm(t, 1)
		tr := createTree(t, c, cfg)[0]
		r := rand.New(rand.NewPCG(5, 5))
		var keys [][]byte
		for range 20 {
			must(t, c.Machine(0), func(tx *txn.Tx) error {
				for range 50 {
					k := glanceKey(r)
					keys = append(keys, k)
					if err := tr.Put(tx, k, rowPtr(len(keys))); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range 500 {
			keys = append(keys, glanceKey(r))
		}
		for _, k := range keys {
			want, exists, err := seekKey(tr, k)
			if err != nil {
				t.Fatal(err)
			}
			s := tr.scratch()
			op := tr.m.Start()
			got, found, decided := tr.glance(op, s, k)
			op.End()
			s.free()
			if !decided || found != exists || got != want {
				t.Fatalf("%+v: glance at %x: %v %v, decided %v; want %v %v", cfg, k, got, found, decided, want, exists)
			}
		}
	}
}

func glanceKey(r *rand.Rand) []byte {
	k := make([]byte, r.IntN(30))
	for i := range k {
		k[i] = byte(r.IntN(3))
	}
	return k
}

// seekKey is Lookup without the glance.
func seekKey(tr *Tree, key []byte) (region.Ptr, bool, error) {
	op := tr.m.Start()
	defer op.End()
	s := tr.scratch()
	defer s.free()
	lf, err := tr.seek(s, s, s, position{key: key})
	if err != nil {
		return region.Ptr{}, false, err
	}
	return lf.get(key)
}

// TestLookupWhileLeavesChange looks up keys while their neighbours are inserted and deleted. Every
// lookup must find its key, with the right value.
func TestLookupWhileLeavesChange(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	const stable = 60
	must(t, c.Machine(0), func(tx *txn.Tx) error {
		for k := range stable {
			if err := tr.Insert(tx, intKey(10*k), rowPtr(k)); err != nil {
				return err
			}
		}
		return nil
	})
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop.Store(true)
		for round := range 300 {
			err := c.Machine(0).Run(ctx, func(tx *txn.Tx) error {
				for k := round % 7; k < 10*stable; k += 7 {
					if k%10 == 0 {
						continue
					}
					if round/7%2 == 1 {
						if _, err := tr.Delete(tx, intKey(k)); err != nil {
							return err
						}
					} else if err := tr.Put(tx, intKey(k), rowPtr(k)); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	for k := 0; !stop.Load(); k = (k + 1) % stable {
		if v, ok, err := tr.Lookup(intKey(10 * k)); err != nil || !ok || v != rowPtr(k) {
			t.Errorf("lookup %d: %v %v %v", 10*k, v, ok, err)
			break
		}
	}
	wg.Wait()
}
