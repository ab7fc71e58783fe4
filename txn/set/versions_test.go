package set

import (
	"math/rand/v2"
	"slices"
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

// Entries that are repeated do not take memory for ever; each object stays with each version that was added, in the order in
// which these were added first.
func TestVersionsRemoveRepeated(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var s Versions
	var want []Seen
	there, removed := map[Seen]bool{}, 0
	for i := range 20 * repeatedMin {
		slot := rng.Uint32N(repeatedMin) / 2
		e := Seen{region.MakePtr(region.MakeAddr(1, 64*slot), 0, 1), region.Version(slot % 7)}
		if i%1000 == 0 {
			e.Version++
		}
		if !there[e] {
			there[e], want = true, append(want, e)
		}
		if s.Add(e.Ptr, e.Version) {
			removed++
		}
		if len(s.Entries) >= max(repeatedMin, 2*len(want)) {
			t.Fatalf("%d entries of %d objects", len(s.Entries), len(want))
		}
	}
	if removed < 10 {
		t.Errorf("removed %d times", removed)
	}
	if s.removeRepeated(); !slices.Equal(s.Entries, want) {
		t.Errorf("%d entries, want %d", len(s.Entries), len(want))
	}
	for _, i := range []int{0, 1, len(want) / 2, len(want) - 1} {
		if at := s.Find(want[i].Ptr.Addr); s.Entries[at].Ptr != want[i].Ptr || at > i {
			t.Errorf("found %d for %d", at, i)
		}
	}
}
