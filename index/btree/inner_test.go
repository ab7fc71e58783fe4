package btree

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/region"
)

// checkInner checks that a cached copy of n answers as n does, for the keys of n
// and for keys next to them.
func checkInner(t *testing.T, n node) {
	t.Helper()
	at7 := region.MakePtr(7*64, 0, 0)
	in := newInner(n, at7)
	if !bytes.Equal(in.low(), n.low()) || !bytes.Equal(in.high(), n.high()) || in.at != at7 {
		t.Fatalf("fences [%x,%x) at %v, want [%x,%x)", in.low(), in.high(), in.at, n.low(), n.high())
	}
	positions := []position{{side: end}, {key: n.low()}, {key: n.high()}}
	for i := range n.count() {
		key := n.appendKey(nil, i)
		positions = append(positions, position{key: key}, position{key: append(key[:len(key):len(key)], 0)})
		if len(key) > 0 {
			less, more := bytes.Clone(key), bytes.Clone(key)
			less[len(key)-1]--
			more[len(key)-1]++
			positions = append(positions, position{key: less}, position{key: more}, position{key: key[:len(key)-1]})
		}
	}
	for _, pos := range positions {
		for _, pos.side = range []side{at, before, end} {
			if !pos.within(n) {
				continue
			}
			got, gotErr := in.child(pos)
			want, wantErr := n.childAt(pos)
			if got != want || fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
				t.Fatalf("%+v leads to %v %v, want %v %v", pos, got, gotErr, want, wantErr)
			}
		}
	}
}

// TestInnerOfEqualHeads has so many keys with the same first bytes that a search should not look at
// them one by one.
func TestInnerOfEqualHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, alphabet := range []int{1, 2, 3, 256} {
		n := build(make([]byte, maxBudgetBytes), testTree, 0, fences{}, nil)
		for i := range 600 {
			key := make([]byte, r.IntN(9))
			for k := range key {
				key[k] = byte(255 - r.IntN(alphabet))
			}
			if at, found := n.search(key); !found {
				n.insert(at, key, encodePtr(rowPtr(i+1)))
			}
		}
		checkInner(t, n)
	}
}

// TestInnerWithoutPointer has a damaged node in memory.
func TestInnerWithoutPointer(t *testing.T) {
	n := build(make([]byte, 400), testTree, 1, fences{[]byte("a"), nil}, entriesOf("a", "c", "e"))
	n.setValue(1, value{1})
	in := newInner(n, region.Ptr{})
	if p, err := in.child(position{key: []byte("d")}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("child without a pointer: %v, %v", p, err)
	}
	if _, err := in.child(position{key: []byte("f")}); err != nil {
		t.Error(err)
	}
}
