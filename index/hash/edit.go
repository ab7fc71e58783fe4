package hash

import (
	"bytes"
	"slices"

	"github.com/farmsql/farmsql/region"
)

// A store is the transaction through which an editor reads and writes pages: a *txn.Late when a
// transaction's operations are applied to fresh copies, a *txn.Tx when a shard is split. After Write
// of a pointer, a slice that Read returned for the same pointer is stale.
type store interface {
	Read(p region.Ptr) ([]byte, error)
	Write(p region.Ptr) ([]byte, error)
	Alloc(payload int, hint region.Addr) (region.Ptr, []byte, error)
	Free(p region.Ptr) error
}

// An editor changes one shard within one transaction. After the last change
// seal must be called once.
type editor struct {
	st    store
	lay   *layout
	seed  uint64
	shard *shard
	first region.Ptr // the shard's bucket 0
	// dirty are the buckets that were written.
	dirty []int
	// overflowed counts pairs that went into a chain. chained is the length in blocks
	// of the longest chain read. Both are signs that the shard should split.
	overflowed, chained int

	moves []move
	buf   []byte
	// neighbourhoods are used in turn: no more than two are needed at a time.
	neighbourhoods [2]neighbourhood
	turn           int
	read           func(i int) (page, error) // the method bucket, bound to this editor
}

func (o *opened) editor(st store, s *shard) *editor {
	e := &editor{}
	e.reset(o, st, s)
	return e
}

// reset makes e an editor of shard s in st, keeping its memory.
func (e *editor) reset(o *opened, st store, s *shard) {
	e.st, e.lay, e.seed, e.shard, e.first = st, &o.layout, o.seed, s, s.first
	e.dirty, e.overflowed, e.chained = e.dirty[:0], 0, 0
}

// release drops all references of e, so that the garbage collector can free what they point
// to. The pages of a neighbourhood beyond its length are clear already.
func (e *editor) release() {
	e.st, e.lay, e.shard = nil, nil, nil
	for i := range e.neighbourhoods {
		e.neighbourhoods[i].cut(0)
	}
}

func (e *editor) bucket(i int) (page, error) {
	b, err := e.st.Read(e.first.Element(i))
	return e.lay.bucket(b), asDestroyed(err)
}

func (e *editor) editBucket(i int) (page, error) {
	b, err := e.st.Write(e.first.Element(i))
	if err == nil && !slices.Contains(e.dirty, i) {
		e.dirty = append(e.dirty, i)
	}
	return e.lay.bucket(b), err
}

// pair reads an outside pair's object.
func (e *editor) pair(s slot) (key, value []byte, err error) {
	_, p, err := s.pair()
	if err != nil {
		return nil, nil, err
	}
	b, err := e.st.Read(p)
	if err != nil {
		return nil, nil, err
	}
	return decodePair(b)
}

// put makes value the value of key, whose hash is h, and reports whether the key
// is new.
func (e *editor) put(h uint64, key, value []byte) (added bool, err error) {
	n, err := e.neighbourhood(bucketOf(h, e.lay.buckets))
	if err != nil {
		return false, err
	}
	at, ok, err := n.find(h, key)
	if err != nil {
		return false, err
	}
	if ok {
		return false, n.replace(at, h, key, value)
	}
	s, err := e.slot(h, key, value)
	if err != nil {
		return false, err
	}
	return true, n.insert(s)
}

// slot makes a slot for a pair, and an object if it needs one.
func (e *editor) slot(h uint64, key, value []byte) (slot, error) {
	if e.lay.inline(len(key), len(value)) {
		s := inlineSlot(h, key, value, e.buf)
		e.buf = s.data
		return s, nil
	}
	p, b, err := e.st.Alloc(pairBytes(len(key), len(value)), e.first.Addr)
	if err != nil {
		return slot{}, err
	}
	encodePair(b, key, value)
	s := outsideSlot(h, p, e.buf)
	e.buf = s.data
	return s, nil
}

// replace gives a pair another value. An outside pair keeps its object if the new pair is outside, too,
// and fits into the object without wasting half of it: then its bucket is not written at all.
func (n *neighbourhood) replace(at spot, h uint64, key, value []byte) error {
	old := n.pages[at.page].slot(at.slot)
	if !old.outside() {
		if n.e.lay.inline(len(key), len(value)) && bytes.Equal(old.value(), value) {
			return nil // do not write the bucket
		}
	} else {
		_, p, err := old.pair()
		if err != nil {
			return err
		}
		need := pairBytes(len(key), len(value))
		class, ok := region.ClassFor(need)
		keepsObject := ok && need <= p.Capacity() && class.Capacity() > p.Capacity()/2
		if keepsObject && !n.e.lay.inline(len(key), len(value)) {
			b, err := n.e.st.Write(p)
			if err == nil {
				encodePair(b, key, value)
			}
			return err
		}
		if err := n.e.st.Free(p); err != nil {
			return err
		}
	}
	s, err := n.e.slot(h, key, value)
	if err != nil {
		return err
	}
	p, err := n.edit(at.page)
	if err == nil {
		p.set(at.slot, s, at.page == 1)
	}
	return err
}

// insert adds a pair: to the home or its neighbour, if necessary after displacing other pairs, or
// else to the chain. It is called only after all pages of the neighbourhood have been read and do
// not have the pair.
func (n *neighbourhood) insert(s slot) error {
	for i := range 2 {
		if k, ok := n.pages[i].free(); ok {
			p, err := n.edit(i)
			if err == nil {
				p.set(k, s, i == 1)
			}
			return err
		}
	}
	if n.e.read == nil {
		n.e.read = n.e.bucket
	}
	moves, err := planHole(n.e.read, n.home, n.e.lay.buckets, n.e.moves[:0])
	if err != nil {
		return err
	}
	n.e.moves = moves
	if len(moves) == 0 {
		return n.overflow(s)
	}
	for _, m := range moves {
		if err := n.e.move(m); err != nil {
			return err
		}
	}
	m := moves[len(moves)-1] // it has freed slot m.from of bucket m.at
	p, err := n.edit(m.at - n.home)
	if err == nil {
		p.set(m.from, s, m.at != n.home)
	}
	return err
}

// move makes one move of a displacement.
func (e *editor) move(m move) error {
	src, err := e.editBucket(m.at)
	if err != nil {
		return err
	}
	target := m.at + 1
	if m.back {
		target = m.at - 1
	}
	dst, err := e.editBucket(target)
	if err != nil {
		return err
	}
	dst.set(m.to, src.slot(m.from), !m.back)
	src.clear(m.from)
	return nil
}

// overflow adds a pair at the end of the chain.
func (n *neighbourhood) overflow(s slot) error {
	n.e.overflowed++
	last := len(n.pages) - 1
	if last >= 2 {
		if k, ok := n.pages[last].free(); ok {
			p, err := n.edit(last)
			if err == nil {
				p.set(k, s, false)
			}
			return err
		}
	}
	ptr, b, err := n.e.st.Alloc(n.e.lay.blockBytes(), n.ptrs[0].Addr)
	if err != nil {
		return err
	}
	n.e.lay.block(b).set(0, s, false)
	prev, err := n.edit(linkedFrom(last + 1))
	if err == nil {
		prev.setLink(link{ptr: ptr})
	}
	return err
}

// remove removes key, frees its object if it has one, and reports whether the key was
// in the shard.
func (e *editor) remove(h uint64, key []byte) (bool, error) {
	n, err := e.neighbourhood(bucketOf(h, e.lay.buckets))
	if err != nil {
		return false, err
	}
	at, ok, err := n.find(h, key)
	if err != nil || !ok {
		return false, err
	}
	if s := n.pages[at.page].slot(at.slot); s.outside() {
		_, p, err := s.pair()
		if err != nil {
			return false, err
		}
		if err := e.st.Free(p); err != nil {
			return false, err
		}
	}
	return true, n.vacate(at)
}

// vacate frees a slot and moves the last pair of the chain into it, which keeps chains short and
// full (NSDI'14 section 3.6). Without a chain it offers the slot to the other home of its bucket (relieve).
func (n *neighbourhood) vacate(at spot) error {
	if err := n.rest(); err != nil {
		return err
	}
	p, err := n.edit(at.page)
	if err != nil {
		return err
	}
	p.clear(at.slot)
	last := len(n.pages) - 1
	if last < 2 {
		return n.relieve(at)
	}
	// The last pair of the chain moves into the slot, also if the slot is in the last block itself.
	if from, ok := n.pages[last].lastUsed(); ok && last != at.page {
		src, err := n.edit(last)
		if err != nil {
			return err
		}
		p.set(at.slot, src.slot(from), at.page == 1)
		src.clear(from)
	} else if ok && from > at.slot {
		p.set(at.slot, p.slot(from), false)
		p.clear(from)
	}
	if n.pages[last].usedSlots() == 0 {
		if err := n.drop(last); err != nil {
			return err
		}
		last--
	}
	return n.renew(max(at.page+1, 2), last) // the blocks after the freed slot; pages 0 and 1 are the buckets
}

// relieve is called when a slot was freed in a bucket, and this home has no chain. If the other
// home whose pairs may be in that bucket has a chain, a pair from that chain moves into the slot.
func (n *neighbourhood) relieve(at spot) error {
	home := n.home + 1 // the slot is in our neighbour, which is this home's own bucket
	if at.page == 0 {
		home = n.home - 1
	}
	if home < 0 || home >= n.e.lay.buckets {
		return nil
	}
	other, err := n.e.bucket(home)
	if err != nil || !other.linked() {
		return err
	}
	o, err := n.e.neighbourhood(home)
	if err != nil {
		return err
	}
	// The other home's vacate fills the slot as if one of its own pairs had left it. The slot's bucket
	// is page 0 of one of the two homes and page 1 of the other.
	return o.vacate(spot{1 - at.page, at.slot})
}

// lastUsed returns the last slot in use, or false.
func (p page) lastUsed() (int, bool) {
	for i := p.slots - 1; i >= 0; i-- {
		if p.control(i) != 0 {
			return i, true
		}
	}
	return 0, false
}

// drop frees the last block of the chain.
func (n *neighbourhood) drop(last int) error {
	prev, err := n.edit(linkedFrom(last))
	if err != nil {
		return err
	}
	prev.setLink(link{})
	if err := n.e.st.Free(n.ptrs[last]); err != nil {
		return err
	}
	n.cut(last)
	return nil
}

// renew gives the blocks from first to last (indexes in pages) new chain versions, after a pair has moved
// from the end of the chain towards its beginning. A lookup that has already passed the pair's new place would miss the pair.
// But the next block that it reads is in the range, or follows a block of the range, so it finds a
// version that differs from the link's, and starts again. The paper renews only the last block, by
// its incarnation; that is not enough for two or more blocks, since a lookup may be between the
// blocks that changed.
func (n *neighbourhood) renew(first, last int) error {
	for i := first; i <= last; i++ {
		p, err := n.edit(i)
		if err != nil {
			return err
		}
		v := p.u16(chainVersion) + 1
		p.setU16(chainVersion, v)
		prev, err := n.edit(linkedFrom(i))
		if err != nil {
			return err
		}
		prev.setLink(link{n.ptrs[i], v})
	}
	return nil
}

// seal gives each pair of adjacent buckets that were both written a new joint
// version (NSDI'14 figure 9).
func (e *editor) seal() error {
	slices.Sort(e.dirty)
	for k := 1; k < len(e.dirty); k++ {
		i := e.dirty[k-1]
		if e.dirty[k] != i+1 {
			continue
		}
		a, err := e.editBucket(i)
		if err != nil {
			return err
		}
		b, err := e.editBucket(i + 1)
		if err != nil {
			return err
		}
		if !joint(a, b) {
			return errOvertaken
		}
		v := a.u16(forwardVersion) + 1
		a.setU16(forwardVersion, v)
		b.setU16(backVersion, v)
	}
	e.dirty = e.dirty[:0]
	return nil
}

// joint reports whether two adjacent buckets are consistent with each other. Each must be
// consistent by itself.
func joint(a, b page) bool { return a.u16(forwardVersion) == b.u16(backVersion) }
