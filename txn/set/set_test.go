package set

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/region"
)

// The set against a map, across the size at which it changes its ways.
func TestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	var s Set
	for range 300 {
		model := map[region.Addr]int{}
		for range rng.IntN(4*scanMax) << rng.IntN(5) {
			switch n := len(s.Entries); {
			case rng.IntN(8) == 0 && n > 0:
				n -= rng.IntN(min(n, 2*scanMax) + 1)
				s.Truncate(n)
				for a, i := range model {
					if i >= n {
						delete(model, a)
					}
				}
			default:
				a := region.MakeAddr(1, 64*(1+rng.Uint32N(300)))
				if _, there := model[a]; !there {
					model[a] = s.Add(Entry{Ptr: region.MakePtr(a, 0, 1)})
				}
			}
			for slot := range uint32(302) {
				a := region.MakeAddr(1, 64*slot)
				want, there := model[a]
				if !there {
					want = -1
				}
				if got := s.Find(a); got != want {
					t.Fatalf("find(%v) is %d, want %d", a, got, want)
				}
			}
		}
		s.Reset()
		if len(s.Entries) != 0 || s.Find(region.MakeAddr(1, 64)) != -1 {
			t.Fatal("not empty after reset")
		}
	}
	for i := range tableKeepMost {
		if at := s.Add(Entry{Ptr: region.MakePtr(region.MakeAddr(1, uint32(64*i)), 0, 1)}); at != i || s.Find(region.MakeAddr(1, uint32(64*i))) != i {
			t.Fatalf("entry %d is at %d", i, at)
		}
	}
	if s.Reset(); cap(s.table) != 0 {
		t.Errorf("a table of %d places is kept", cap(s.table))
	}
}

func TestArena(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var a Arena
	for range 20 {
		type slice struct {
			b    []byte
			fill byte
		}
		var all []slice
		for i := range 200 {
			n := rng.IntN(300)
			if i%50 == 49 {
				n = arenaChunkBytes + rng.IntN(100_000)
			}
			b := a.Get(n)
			if len(b) != n || cap(b) != n {
				t.Fatalf("asked for %d bytes, got %d with room for %d", n, len(b), cap(b))
			}
			for k := range b {
				b[k] = byte(i)
			}
			all = append(all, slice{b, byte(i)})
		}
		for _, s := range all {
			if !bytes.Equal(s.b, bytes.Repeat([]byte{s.fill}, len(s.b))) {
				t.Fatal("slices overlap")
			}
		}
		if c := a.Copy(all[3].b); !bytes.Equal(c, all[3].b) {
			t.Fatal("copy differs")
		}
		a.Reset()
		if len(a.chunk) > arenaKeepBytes {
			t.Fatalf("keeps %d bytes", len(a.chunk))
		}
	}
}
