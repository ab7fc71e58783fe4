package set

import (
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/region"
)

// Versions against a map, with lookups between additions.
func TestVersions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s Versions
	for range 200 {
		model := map[region.Addr]int{}
		for i := range rng.IntN(400) {
			a := region.MakeAddr(1, 64*(1+rng.Uint32N(300)))
			s.Add(region.MakePtr(a, 0, 1), region.Version(i))
			if _, there := model[a]; !there {
				model[a] = i
			}
			if rng.IntN(20) > 0 {
				continue
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
		if len(s.Entries) > 0 && s.Held() < int64(24*len(s.Entries)) {
			t.Errorf("%d entries take %d bytes", len(s.Entries), s.Held())
		}
		s.Reset()
		if len(s.Entries) != 0 || s.Held() != 0 || s.Find(region.MakeAddr(1, 64)) != -1 {
			t.Fatal("not empty after reset")
		}
	}
	for i := range uint32(seenKeptMost + 1) {
		s.Add(region.MakePtr(region.MakeAddr(1, 64*i), 0, 1), 1)
	}
	if s.Reset(); cap(s.Entries) > seenKeptMost {
		t.Errorf("memory for %d entries is kept", cap(s.Entries))
	}
}
