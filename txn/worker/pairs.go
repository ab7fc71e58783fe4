package worker

import (
	"errors"

	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// A PairRead is one of the reads that ReadPairs does together.
type PairRead struct {
	// P and Dst are the arguments of ReadPair.
	P   region.Ptr
	Dst []byte
	// Err is set if the pair could not be read at the first attempt, because of a writer or a
	// failure. ReadPair then waits, or returns the reason.
	Err error

	raw   []byte // bytes that a READ returns, if another machine is the primary
	route *route.Route
}

// Fetch makes the processor fetch the lines that Look needs of the object p, without waiting.
func (o Operation) Fetch(p region.Ptr) {
	if rt := o.b.w.m.Lookable(p); rt != nil {
		rt.Local.Fetch(p)
	}
}

// Aim makes the pair refer to the objects p and p.Element(1), as LookPair does, but looks at
// nothing yet and counts nothing: see CountReads. It makes the pair empty if another machine is the
// primary.
func (o Operation) Aim(a *region.Pair, p region.Ptr) {
	rt := o.b.w.m.Lookable(p)
	if rt == nil {
		*a = region.Pair{}
		return
	}
	rt.Local.Aim(a, p)
}

// Lookable returns the route to p's region if this machine is its primary and the region may be
// read, and nil otherwise.
func (m *Machine) Lookable(p region.Ptr) *route.Route {
	rt := m.Route(p.Addr.Region())
	if rt == nil || !rt.PrimaryHere || rt.State == route.Blocked {
		return nil
	}
	return rt
}

// Gather adds all lines of the object p to a batch, if this machine is its primary.
func (o Operation) Gather(b *prefetch.Batch, p region.Ptr) {
	if rt := o.b.w.m.Route(p.Addr.Region()); rt != nil && rt.PrimaryHere {
		rt.Local.Gather(b, p)
	}
}

// CountReads counts n objects looked at through pairs that Aim has set. Counting each one
// separately would cost as much as the look.
func (o Operation) CountReads(n int) { o.count(n) }

// ReadPairs reads many pairs as ReadPair does, with all of their READs pending at once. It makes
// one attempt: see PairRead.Err.
func (o Operation) ReadPairs(reads []PairRead) {
	raw := o.b.w.m.TakeBuffer()
	defer o.b.w.m.ReturnBuffer(raw)
	size := 0
	for i := range reads {
		size += 2 * reads[i].P.Class().Size()
	}
	err := o.postPairs(reads, raw.Sized(size), &raw.Wait)
	if !raw.Wait.Settled() {
		err = errors.Join(err, o.b.w.Await(&raw.Wait))
	}
	if err == nil {
		err = o.b.w.m.confirmed(nil)
	}
	for i := range reads {
		r := &reads[i]
		switch {
		case err != nil: // a post has failed, or a READ, or there is no lease: no pair counts
			r.Err = err
		case r.raw != nil && o.b.w.m.Route(r.P.Addr.Region()) != r.route:
			r.Err = ErrMoved
		case r.raw != nil && r.Err == nil:
			r.Err = r.unpack()
		}
		r.raw, r.route = nil, nil
	}
}

// postPairs reads the pairs at this machine and posts READs of the others; each READ uses the next
// part of b.
func (o Operation) postPairs(reads []PairRead, b []byte, wt *wait.Waiter) error {
	w := o.b.w
	w.Lock()
	defer w.Unlock()
	hasRead := false
	for i := range reads {
		r := &reads[i]
		r.Err = nil
		rt := w.m.Route(r.P.Addr.Region())
		switch {
		case rt == nil || rt.State == route.Blocked:
			r.Err = ErrMoved
			continue
		case rt.PrimaryHere:
			_, _, r.Err = o.readPairOnce(rt, r.P, r.Dst)
			continue
		}
		n := 2 * r.P.Class().Size()
		r.raw, r.route, b = b[:n], rt, b[n:]
		w.CountRemoteReads(1)
		if !hasRead { // all READs together take one round trip
			hasRead = true
			w.CountRoundTrip()
		}
		if err := w.PostReadLocked(rt.Primary, route.RegionKey(r.P.Addr.Region()), uint64(r.P.Addr.Offset()), r.raw, wt); err != nil {
			return err
		}
	}
	return nil
}

// unpack checks and strips the line versions of both objects.
func (r *PairRead) unpack() error {
	n, size := r.P.Capacity(), r.P.Class().Size()
	_, err := region.Unpack(r.Dst[:n], r.raw[:size], r.P)
	if err == nil {
		_, err = region.Unpack(r.Dst[n:2*n], r.raw[size:], r.P.Element(1))
	}
	return err
}
