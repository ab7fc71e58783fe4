package txn

import (
	"errors"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/worker"
)

// ahead holds objects that were read before the transaction asked for them. An object joins the
// read set only when the transaction asks for it, with the version that was read ahead.
type ahead struct {
	// found are the objects that the transaction has not asked for yet. While an object's READ is
	// pending, its payload is nil.
	found map[region.Ptr]aheadObject
	// posted are the READs of the latest ReadAhead, until awaitAhead has waited for them. bytes, a
	// part of raw, is the memory that they read into; failed is the error if a READ could not be
	// posted.
	posted []aheadRead
	raw    *worker.Buffer
	bytes  []byte
	failed error
}

type aheadObject struct {
	payload []byte
	version region.Version
	uses    int // how many more times the transaction can ask for this copy
}

// An aheadRead is a READ of an object of another machine.
type aheadRead struct {
	ptr   region.Ptr
	route *route.Route
}

const (
	// aheadReads and aheadBytes bound what one ReadAhead posts.
	aheadReads = 256
	aheadBytes = 1 << 20
	// aheadKeepMost bounds the number of kept objects that the transaction has not asked for.
	aheadKeepMost = 1024
)

// ReadAhead begins to read objects for which the transaction is going to call Read, ReadPart, Write
// or Peek. It returns how many of ptrs it has taken from the beginning. It posts the READs of all
// objects at other machines before it returns; the first call that asks for one of them waits for
// all of them. It fetches objects of this machine into the processor's cache, as Fetch does.
//
// An object that was read ahead joins the read set only when the transaction asks for it, and is
// used as often as it occurs in ptrs: an index looks for several keys in one node. An object that
// cannot be read ahead, because it is locked, gone or moving to another machine, is read when the
// transaction asks for it, and that call waits or fails. Validate forgets the objects that the
// transaction has not asked for by then. If the transaction asks for one of them after Validate, it
// reads the object's latest committed version.
func (t *Tx) ReadAhead(ptrs []region.Ptr) int {
	if t.usable() != nil {
		return 0
	}
	return t.requestAhead(ptrs)
}

// requestAhead does the work of ReadAhead.
func (s *state) requestAhead(ptrs []region.Ptr) int {
	n, size := 0, 0
	for ; n < len(ptrs); n++ {
		p := ptrs[n]
		rt := s.m.Route(p.Addr.Region())
		if rt == nil || rt.State == route.Blocked {
			continue
		}
		if rt.PrimaryHere {
			rt.Local.FetchAll(p)
			continue
		}
		if size == 0 { // nothing is posted by this call yet: end the READs of the previous one
			s.awaitAhead()
			s.ahead.limit()
		}
		if !s.wantsAhead(p) || s.ahead.postedAgain(p) {
			continue
		}
		isFull := size+p.Class().Size() > aheadBytes || len(s.ahead.posted) == aheadReads
		if size > 0 && isFull { // an object larger than aheadBytes is read by itself
			break
		}
		size += p.Class().Size()
		s.ahead.found[p] = aheadObject{uses: 1}
		s.ahead.posted = append(s.ahead.posted, aheadRead{ptr: p, route: rt})
	}
	if size > 0 {
		s.postAhead(size)
	}
	return n
}

// limit makes room for more objects: if there is no found yet, or if it holds too many that were not
// asked for, limit begins with an empty one.
func (a *ahead) limit() {
	if a.found == nil || len(a.found) > aheadKeepMost {
		a.found = make(map[region.Ptr]aheadObject)
	}
}

// wantsAhead reports whether p, an object of another machine, is worth reading ahead: the
// transaction has not read or written it yet.
func (s *state) wantsAhead(p region.Ptr) bool {
	return !p.IsNil() && s.writes.Find(p.Addr) < 0 && s.reads.Find(p.Addr) < 0
}

// postedAgain reports whether p has been read ahead already. If its READ is pending, postedAgain
// counts another use. A copy that has arrived gets no further uses, because it may be out of date.
func (a *ahead) postedAgain(p region.Ptr) bool {
	o, ok := a.found[p]
	if ok && o.payload == nil {
		o.uses++
		a.found[p] = o
	}
	return ok
}

// postAhead posts all pending READs together. size is the number of bytes that they read.
func (s *state) postAhead(size int) {
	a, w := &s.ahead, s.w
	a.raw = s.m.TakeBuffer()
	b := a.raw.Sized(size)
	a.bytes = b
	w.CountRoundTrip()
	w.Lock()
	for rest := a.posted; len(rest) > 0 && a.failed == nil; {
		first, at := rest[0], rest[0].ptr.Addr
		together := neighbours(rest)
		n := together * first.ptr.Class().Size()
		w.CountRemoteReads(1)
		a.failed = w.PostReadLocked(first.route.Primary, route.RegionKey(at.Region()), uint64(at.Offset()), b[:n], &a.raw.Wait)
		rest, b = rest[together:], b[n:]
	}
	w.Unlock()
}

// neighbours returns how many of the objects, from the first on, one READ can read: they follow
// each other in memory, like the two buckets where a hash table looks for a key, and have the same
// route. The region's route may have changed after some of them were posted; take then accepts only
// the objects that have the present route.
func neighbours(reads []aheadRead) int {
	n := 1
	for n < len(reads) && reads[n].route == reads[0].route && reads[n].ptr == reads[n-1].ptr.Element(1) {
		n++
	}
	return n
}

// awaitAhead waits for the pending READs, if there are any, and keeps the objects that arrived whole.
// If one READ fails, it keeps none.
func (s *state) awaitAhead() {
	a := &s.ahead
	if a.raw == nil {
		return
	}
	err := a.failed
	if !a.raw.Wait.Settled() {
		err = errors.Join(err, s.w.Await(&a.raw.Wait))
	}
	b := a.bytes
	for _, r := range a.posted {
		n := r.ptr.Class().Size()
		a.take(s, &r, b[:n], err)
		b = b[n:]
	}
	s.m.ReturnBuffer(a.raw)
	clear(a.posted)
	a.posted, a.raw, a.bytes, a.failed = a.posted[:0], nil, nil, nil
}

// take keeps the object that READ r returned in raw. It forgets the object instead if the READs have
// failed with err, if the object is not whole or not there, or if the region's route has changed since
// the READ was posted: the machine that was read may have left the configuration.
func (a *ahead) take(s *state, r *aheadRead, raw []byte, err error) {
	if err == nil && (s.m.Route(r.ptr.Addr.Region()) == r.route || sabotage.ReadRoute.Skipped()) {
		payload := s.arena.Get(r.ptr.Capacity())
		if h, err := region.Unpack(payload, raw, r.ptr); err == nil {
			a.found[r.ptr] = aheadObject{payload, h.Version(), a.found[r.ptr].uses}
			return
		}
	}
	delete(a.found, r.ptr)
}

// readAhead returns the object p if it has been read ahead and has uses left.
func (s *state) readAhead(p region.Ptr) ([]byte, region.Version, bool) {
	if len(s.ahead.found) == 0 {
		return nil, 0, false
	}
	if _, ok := s.ahead.found[p]; !ok {
		return nil, 0, false
	}
	s.awaitAhead()
	o, ok := s.ahead.found[p]
	if !ok {
		return nil, 0, false
	}
	if o.uses--; o.uses > 0 {
		s.ahead.found[p] = o
	} else {
		delete(s.ahead.found, p)
	}
	return o.payload, o.version, true
}

// readPairAhead returns the objects p and p.Element(1) if both have been read ahead. If only p has
// been, that takes one of its uses all the same.
func (s *state) readPairAhead(p region.Ptr) (a, b []byte, va, vb region.Version, ok bool) {
	if a, va, ok = s.readAhead(p); ok {
		b, vb, ok = s.readAhead(p.Element(1))
	}
	return a, b, va, vb, ok
}

// forgetAhead forgets the objects that the transaction has not asked for.
func (s *state) forgetAhead() {
	s.awaitAhead()
	clear(s.ahead.found)
}

// reset forgets everything. No READ may be pending.
func (a *ahead) reset() {
	if len(a.found) > aheadKeepMost {
		a.found = nil
	}
	clear(a.found)
}

// PeekAhead is like Peek, but does not read p from another machine: it returns false unless p was read
// ahead, or is at this machine and neither locked nor freed. It waits for the READs that ReadAhead has
// posted, if p is among them.
func (t *Tx) PeekAhead(p region.Ptr) ([]byte, region.Version, bool) {
	if t.usable() != nil {
		return nil, 0, false
	}
	if payload, v, ok := t.readAhead(p); ok {
		return payload, v, true
	}
	rt := t.m.Lookable(p)
	if rt == nil {
		return nil, 0, false
	}
	payload := t.arena.Get(p.Capacity())
	t.op.CountReads(1)
	h, err := rt.Local.ReadObject(p, payload)
	return payload, h.Version(), err == nil
}

// ReadMany reads many objects, each as Read does, and appends their payloads to dst, in the order of
// ptrs. It fails with the error of the first object that cannot be read. Within the limits of
// ReadAhead it posts all READs from other machines before it waits for one.
func (t *Tx) ReadMany(dst [][]byte, ptrs []region.Ptr) ([][]byte, error) {
	taken := 0 // ReadAhead has taken ptrs[:taken]
	for i, p := range ptrs {
		if i == taken {
			taken += t.ReadAhead(ptrs[i:])
		}
		payload, err := t.Read(p)
		if err != nil {
			return dst, err
		}
		dst = append(dst, payload)
	}
	return dst, nil
}
