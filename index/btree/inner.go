package btree

import (
	"bytes"
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/region"
)

// inner is a cached node of level 1 that never changes. A search needs the heads of the keys and the
// children first, so the layout has them close together, to be fetched together. In the node's own
// format a search would go from slot to slot and then to the heap, and wait for a cache miss at
// each step, since all nodes together do not fit into the processor's cache.
type inner struct {
	heads    []uint32     // the heads of the keys, in order
	children []region.Ptr // a nil pointer where the node's value was no valid pointer
	prefix   uint32       // bytes that keys leave out, as in a node
	// The low fence is text[lowAt:highAt], the high fence what comes after.
	lowAt, highAt uint32
	text          []byte     // keys, fences
	ends          []uint16   // where in text the keys end
	at            region.Ptr // where the node was read
}

// newInner converts node n, which was read at p. The caller must have checked its slots.
func newInner(n node, p region.Ptr) *inner {
	count := n.count()
	keyBytes, fenceBytes := n.heapEnd()-n.u16(heapAt)-n.dead()-count*valueBytes, len(n.b)-n.heapEnd()
	in := &inner{
		heads: make([]uint32, count), children: make([]region.Ptr, count), prefix: uint32(n.prefix()),
		text: make([]byte, 0, keyBytes+fenceBytes), ends: make([]uint16, count), at: p,
	}
	for i := range count {
		in.heads[i], _, _ = n.slot(i)
		in.children[i], _ = n.ptr(i)
		in.text = append(in.text, n.suffix(i)...)
		in.ends[i] = uint16(len(in.text))
	}
	in.lowAt = uint32(len(in.text))
	in.text = append(in.text, n.low()...)
	in.highAt = uint32(len(in.text))
	in.text = append(in.text, n.high()...)
	return in
}

func (in *inner) low() []byte  { return in.text[in.lowAt:in.highAt] }
func (in *inner) high() []byte { return in.text[in.highAt:] }

// size returns how many bytes the copy takes.
func (in *inner) size() int {
	const perEntry = 4 + region.PtrBytes + 2
	return len(in.heads)*perEntry + len(in.text)
}

// suffix is key i without the prefix.
func (in *inner) suffix(i int) []byte {
	from := uint16(0)
	if i > 0 {
		from = in.ends[i-1]
	}
	return in.text[from:in.ends[i]]
}

// child returns the child that leads to pos. pos must be between the fences.
func (in *inner) child(pos position) (region.Ptr, error) {
	in.touch()
	return in.childFor(pos)
}

// childFor is child of a node that the processor has probably fetched.
func (in *inner) childFor(pos position) (region.Ptr, error) {
	i := in.index(pos)
	if i < 0 {
		return region.Ptr{}, errMoved
	}
	p := in.children[i]
	if p.IsNil() {
		return p, fmt.Errorf("%w: child %d of node %v is no pointer", ErrCorrupt, i, in.at)
	}
	return p, nil
}

// index returns the index of the child that leads to pos, or -1 if there is none.
func (in *inner) index(pos position) int {
	if pos.side == end {
		return len(in.heads) - 1
	}
	i, found := in.search(pos.key)
	if found && pos.side == at {
		return i
	}
	return i - 1
}

// search is like node.search.
func (in *inner) search(key []byte) (i int, found bool) {
	if int(in.prefix) > len(key) {
		return 0, false
	}
	suffix := key[in.prefix:]
	h := head(suffix)
	i = in.below(h)
	if i == len(in.heads) || in.heads[i] != h {
		return i, false
	}
	return in.searchFrom(i, h, suffix)
}

// touch makes the processor fetch the lines that a search may need, and does not wait for them.
func (in *inner) touch() {
	const line = 64
	for i := 0; i < len(in.heads); i += line / 4 {
		atomic.LoadUint32(&in.heads[i])
	}
	for i := 0; i < len(in.children); i += line / region.PtrBytes {
		atomic.LoadUint64((*uint64)(&in.children[i].Addr))
	}
}

// below returns how many heads are less than h. It has no branch that the processor could
// mispredict.
func (in *inner) below(h uint32) int {
	base := 0
	for n := len(in.heads); n > 0; {
		half := (n + 1) / 2
		next := base
		if in.heads[base+half-1] < h {
			next = base + half
		}
		base = next
		n -= half
	}
	return base
}

// searchFrom searches the keys whose head is h. Key i must be the first of them.
func (in *inner) searchFrom(i int, h uint32, suffix []byte) (int, bool) {
	same := in.heads[i:]
	if h < 1<<32-1 { // h+1 does not overflow; otherwise all keys from i on have the head h
		same = same[:(&inner{heads: same}).below(h+1)]
	}
	lo, hi := i, i+len(same)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		switch c := bytes.Compare(in.suffix(m), suffix); {
		case c == 0:
			return m, true
		case c < 0:
			lo = m + 1
		default:
			hi = m
		}
	}
	return lo, false
}
