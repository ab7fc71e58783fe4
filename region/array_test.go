package region

import (
	"errors"
	"slices"
	"testing"
)

func TestAllocArray(t *testing.T) {
	p := newPair(t, 1, 1<<20)
	a := newAllocator(t, AllocatorConfig{Replicate: p.replicate}, p.primary)
	single, v := mustAlloc(t, a, 0, 300, 0)
	p.commit(t, single, v, nil)
	live := []Ptr{single}
	for range 5 {
		first, versions, _, err := a.AllocArray(Ordinary, 0, 300, 6, single.Addr)
		if err != nil || len(versions) != 6 {
			t.Fatal(first, versions, err)
		}
		for i, v := range versions {
			e := first.Element(i)
			p.commit(t, e, v, []byte{byte(i)})
			live = append(live, e)
		}
	}
	// A hole of five does not hold an array of six; one of seven does, whatever
	// incarnations its slots have.
	for _, i := range []int{8, 9, 10, 11, 12, 20, 21, 22, 23, 24, 25, 26} {
		p.free(t, a, live[i])
	}
	one, v := mustAlloc(t, a, 0, 300, live[0].Addr)
	if one.Addr != live[8].Addr && one.Addr < live[20].Addr {
		t.Logf("single went to %v", one)
	}
	p.commit(t, one, v, nil)
	first, versions, _, err := a.AllocArray(Ordinary, 0, 300, 6, live[0].Addr)
	if err != nil || first.Incarnation() > 1 {
		t.Fatal(first, err)
	}
	live = append(append(live[:8], live[13:20]...), live[27:]...)
	live = append(live, one)
	for i, v := range versions {
		p.commit(t, first.Element(i), v, nil)
		live = append(live, first.Element(i))
	}
	for _, r := range []*Region{p.primary, p.backup} {
		if fs := r.Check(slices.Values(live)); len(fs) > 0 {
			t.Error(fs)
		}
	}
	if fs := a.Check(); len(fs) > 0 {
		t.Error(fs)
	}
	if _, _, _, err := a.AllocArray(Ordinary, 0, 300, 1000, 0); !errors.Is(err, ErrTooLarge) {
		t.Error("an array of more than a slab:", err)
	}
	if _, _, _, err := a.AllocArray(Ordinary, 0, MaxPayload+1, 2, 0); !errors.Is(err, ErrTooLarge) {
		t.Error("an array of too large objects:", err)
	}
	for range 1000 {
		if _, _, _, err = a.AllocArray(Ordinary, 0, 3000, 2, 0); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Error("a full region:", err)
	}
}
