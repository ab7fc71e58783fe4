package btree

import (
	"bytes"
	"encoding/binary"

	"github.com/farmsql/farmsql/internal/invariant"
)

// entry is a decoded entry: the whole key and its value.
type entry struct {
	key []byte
	val value
}

// fences bound a node: [low, high), an empty high meaning plus infinity.
type fences struct{ low, high []byte }

// prefix returns the length of the prefix that all keys between the fences share.
func (f fences) prefix() int {
	if len(f.high) == 0 {
		return 0
	}
	return commonPrefix(f.low, f.high)
}

func (f fences) infinite() bool { return len(f.low) == 0 && len(f.high) == 0 }

// commonPrefix returns the length of the longest prefix that a and b share.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// nodeSize returns how many bytes build needs for the entries between the fences.
func nodeSize(f fences, entries []entry) int {
	size := nodeHeaderBytes + len(f.low) + len(f.high) + len(entries)*(entryBytes-f.prefix())
	for i := range entries {
		size += len(entries[i].key)
	}
	return size
}

// fit reports whether nodeSize is within budget. It stops adding up once the budget is exceeded.
func fit(f fences, entries []entry, budget int) bool {
	size, p := nodeHeaderBytes+len(f.low)+len(f.high), f.prefix()
	for i := range entries {
		if size += entryBytes + len(entries[i].key) - p; size > budget {
			return false
		}
	}
	return size <= budget
}

// build writes a node over all of b, which holds at least nodeSize bytes. The
// entries are in order and between the fences, and do not alias b.
func build(b []byte, tree uint64, level int, f fences, entries []entry) node {
	clear(b)
	n := node{b}
	p := f.prefix()
	n.setU16(0, nodeMagic)
	b[levelAt] = byte(level)
	n.setU16(countAt, len(entries))
	n.setU16(prefixAt, p)
	n.setU16(lowAt, len(f.low))
	n.setU16(highAt, len(f.high))
	binary.LittleEndian.PutUint64(b[treeAt:], tree)
	copy(n.low(), f.low)
	copy(n.high(), f.high)
	heap := n.heapEnd()
	for i := range entries {
		suffix := entries[i].key[p:]
		heap -= valueBytes + len(suffix)
		n.putEntry(i, heap, suffix, entries[i].val)
	}
	n.setU16(heapAt, heap)
	if invariant.Enabled {
		mustBeSound(n)
	}
	return n
}

func (n node) putEntry(i, off int, suffix []byte, v value) {
	copy(n.b[off:], v[:])
	copy(n.b[off+valueBytes:], suffix)
	n.setSlot(i, head(suffix), off, len(suffix))
}

// decode returns copies of the fences and the entries. The slice of entries has
// room for extra more.
func (n node) decode(extra int) (fences, []entry) {
	count, p := n.count(), n.prefix()
	size := n.u16(lowAt) + n.u16(highAt)
	for i := range count {
		size += p + len(n.suffix(i))
	}
	arena := make([]byte, 0, size)
	cut := func(from int) []byte { return arena[from:len(arena):len(arena)] }
	arena = append(arena, n.low()...)
	f := fences{low: cut(0)}
	from := len(arena)
	arena = append(arena, n.high()...)
	f.high = cut(from)
	entries := make([]entry, count, count+extra)
	for i := range entries {
		from := len(arena)
		arena = n.appendKey(arena, i)
		entries[i] = entry{key: cut(from), val: n.value(i)}
	}
	return f, entries
}

// insert puts key with v at i, the index that search returned. It compacts the heap first if it must.
// If there is no room even then, it returns false and changes nothing.
func (n node) insert(i int, key []byte, v value) bool {
	suffix := key[n.prefix():]
	need := entryBytes + len(suffix)
	free := n.u16(heapAt) - n.slotsEnd()
	if free < need {
		if free+n.dead() < need {
			return false
		}
		n.compact()
	}
	count, heap := n.count(), n.u16(heapAt)-valueBytes-len(suffix)
	at := nodeHeaderBytes + i*slotBytes
	copy(n.b[at+slotBytes:], n.b[at:nodeHeaderBytes+count*slotBytes])
	n.setU16(countAt, count+1)
	n.setU16(heapAt, heap)
	n.putEntry(i, heap, suffix, v)
	return true
}

// setValue changes the value of entry i.
func (n node) setValue(i int, v value) {
	_, off, _ := n.slot(i)
	copy(n.b[off:off+valueBytes], v[:])
}

// remove takes entry i out.
func (n node) remove(i int) {
	_, off, length := n.slot(i)
	size := valueBytes + length
	if off == n.u16(heapAt) {
		n.setU16(heapAt, off+size)
	} else {
		n.setU16(deadAt, n.dead()+size)
	}
	at, count := nodeHeaderBytes+i*slotBytes, n.count()
	copy(n.b[at:], n.b[at+slotBytes:nodeHeaderBytes+count*slotBytes])
	n.setU16(countAt, count-1)
}

// compact packs the heap again, so that its dead bytes become free space.
func (n node) compact() { n.pack(append([]byte(nil), n.b...)) }

// pack copies the entries of another encoded node into n's heap, without dead bytes. n must already
// have its header and fences.
func (n node) pack(from []byte) {
	src := node{from}
	heap := n.heapEnd()
	for i := range src.count() {
		h, off, length := src.slot(i)
		heap -= valueBytes + length
		copy(n.b[heap:], from[off:off+valueBytes+length])
		n.setSlot(i, h, heap, length)
	}
	n.setU16(heapAt, heap)
	n.setU16(deadAt, 0)
}

// merge returns the entries with the changes applied; both are in key order.
func merge(entries []entry, changes []*change) []entry {
	out := make([]entry, 0, len(entries)+len(changes))
	for _, c := range changes {
		for len(entries) > 0 && bytes.Compare(entries[0].key, c.key) < 0 {
			out, entries = append(out, entries[0]), entries[1:]
		}
		if len(entries) > 0 && bytes.Equal(entries[0].key, c.key) {
			entries = entries[1:]
		}
		if !c.deleted {
			out = append(out, entry{c.key, c.val})
		}
	}
	return append(out, entries...)
}
