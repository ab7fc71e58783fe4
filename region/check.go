package region

import (
	"fmt"
	"iter"
)

// FaultKind is a kind of fault that Check can find.
type FaultKind uint8

const (
	// Leak: an allocated object that nothing reaches.
	Leak FaultKind = iota + 1
	// Orphan: a pointer that points to no object: freed, another incarnation, or
	// no slab there.
	Orphan
	// Overlap: a pointer leads into a slab, but not to the beginning of a slot: its object would
	// share memory with objects of the slab.
	Overlap
	// Locked: a lock bit that is set although no transaction runs.
	Locked
	// Torn: an unlocked object whose line versions are not its version.
	Torn
	// Damaged: a value in a header or in the block table that is never written there.
	Damaged
	// DoubleAllocation: an object's slot that the allocator considers free.
	DoubleAllocation
	// LostSlot: a slot without an object that the allocator considers in use, because a
	// transaction has not released it.
	LostSlot
)

var faultNames = [...]string{"", "leak", "orphan", "overlap", "locked", "torn", "damaged", "double allocation", "lost slot"}

func (k FaultKind) String() string { return faultNames[k] }

// Fault is one thing that Check found.
type Fault struct {
	Kind FaultKind
	Ptr  Ptr // zero for the block table
	Text string
}

func (f Fault) String() string { return fmt.Sprintf("%v: %v: %s", f.Kind, f.Ptr, f.Text) }

// faultsMax bounds the number of faults in a report, in case the whole region is damaged.
const faultsMax = 1000

// faults collects what a check finds.
type faults []Fault

func (fs *faults) add(k FaultKind, p Ptr, format string, args ...any) {
	if len(*fs) < faultsMax {
		*fs = append(*fs, Fault{k, p, fmt.Sprintf(format, args...)})
	}
}

// Check walks the whole region and returns every leak, orphan, overlap and other fault; none if the
// region is sound. reachable yields every pointer in use anywhere, in any order and possibly
// repeatedly; pointers to other regions are ignored. No transaction may run. The region must have
// been added to an allocator, now or earlier, because a crash may leave a block table that has to
// be repaired first. The report ends after 1000 faults.
func (r *Region) Check(reachable iter.Seq[Ptr]) []Fault {
	var fs faults
	r.checkTable(&fs)
	reached := map[int][]uint64{} // one bit for each slot of a slab, by the slab's first block
	for s := range r.slabs {
		reached[s.head] = make([]uint64, (s.slots+63)/64)
	}
	for p := range reachable {
		if p.Addr.Region() == r.id {
			r.checkPointer(&fs, p, reached)
		}
	}
	for s := range r.slabs {
		for i := range s.slots {
			p, h := r.slot(s, i)
			r.checkSlot(&fs, p, h)
			if h.Allocated() && (reached[s.head][i/64]>>(i%64))&1 == 0 {
				fs.add(Leak, p, "%v, nothing points to it", h)
			}
		}
	}
	return fs
}

// checkTable finds blocks whose state contradicts itself or its neighbours.
func (r *Region) checkTable(fs *faults) {
	end := 0 // the end of the slab before block i
	for i := range r.Blocks() {
		b := r.block(i)
		switch {
		case !b.valid(i, r.Blocks()):
			fs.add(Damaged, Ptr{}, "block %d: %v", i, b)
		case b.kind() == blockHead && i < end:
			fs.add(Damaged, Ptr{}, "block %d: %v, inside the slab before", i, b)
		case b.kind() == blockHead:
			end = i + b.span()
			if !r.matches(i, runWords(b.span(), b.class())) {
				fs.add(Damaged, Ptr{}, "block %d: %v, but not all of them are its", i, b)
			}
		case b.kind() == blockTail && i >= end:
			fs.add(Damaged, Ptr{}, "block %d: %v, without a head", i, b)
		}
	}
}

// checkPointer marks the slot that p points to as reached.
func (r *Region) checkPointer(fs *faults, p Ptr, reached map[int][]uint64) {
	off := uint64(p.Addr.Offset())
	s, inSlab := extent{}, false
	if off >= r.first && off < r.size {
		s, inSlab = r.slabOf(int(off >> r.shift))
	}
	switch {
	case !inSlab:
		fs.add(Orphan, p, "no slab there")
		return
	case s.class != p.Class() || !s.holds(off):
		fs.add(Overlap, p, "slab of %d slots of %d bytes from %#x on", s.slots, s.class.Size(), s.base)
		return
	}
	i := s.index(off)
	if now, h := r.slot(s, i); !h.Allocated() || now != p {
		fs.add(Orphan, p, "slot is %v, incarnation %d", h, now.Incarnation())
		return
	}
	reached[s.head][i/64] |= 1 << (i % 64)
}

// checkSlot checks the slot's own bytes: header, incarnation and line versions.
func (r *Region) checkSlot(fs *faults, p Ptr, h Header) {
	switch {
	case h.Locked():
		fs.add(Locked, p, "%v", h)
		return
	case h != MakeHeader(h.Version(), h.Allocated()):
		fs.add(Damaged, p, "header %#x", uint64(h))
	case r.Incarnation(p.Addr.Offset()) != p.Incarnation():
		fs.add(Damaged, p, "incarnation %#x", r.Incarnation(p.Addr.Offset()))
	case !h.Allocated():
		return
	}
	for off := uint64(lineBytes); off < uint64(p.Class().Size()); off += lineBytes {
		word := r.m.Load(uint64(p.Addr.Offset()) + off)
		if v := uint16(word); v != lineVersion(h.Version()) {
			fs.add(Torn, p, "%v, line %d at %d", h, off/lineBytes, v)
			return
		}
	}
}

// Check compares the allocator's bits with the objects' headers. No transaction may run.
func (a *Allocator) Check() []Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	var fs faults
	for _, sp := range a.dir.Load().list {
		retired := map[*slab]bool{}
		for _, x := range sp.retired {
			retired[x.slab] = true
		}
		for i := range sp.slabs {
			s := sp.slabs[i].Load()
			if s != nil && s.head == i && s.ready() {
				s.check(&fs, retired[s])
			}
		}
	}
	return fs
}

// check compares a slab's bits with the headers. A retired slab has no bit set.
func (s *slab) check(fs *faults, retired bool) {
	for i := range s.slots {
		p, h := s.space.region.slot(s.extent, i)
		switch free := s.isFree(i); {
		case free && h.Allocated():
			fs.add(DoubleAllocation, p, "%v", h)
		case !free && !h.Allocated() && !h.Locked() && !retired:
			fs.add(LostSlot, p, "%v", h)
		}
	}
}
