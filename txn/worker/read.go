package worker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// ReadPatience is how long a reader that holds no locks waits for an object that a transaction has
// locked; the goroutine of that transaction may not be running.
const ReadPatience = 2 * time.Second

// Read is the lock-free read of NSDI'14 section 3.5: a transaction of a single
// read, without its costs. It copies the payload of the object p into
// dst[:p.Capacity()] and returns its version. It does not allocate. It fails
// with region.ErrFreed if p's object is gone.
//
// A pointer that was found some time ago must be used within an Operation; otherwise the memory may
// hold an object of another size by now.
func (m *Machine) Read(p region.Ptr, dst []byte) (region.Version, error) {
	o := m.Start() // the region may move away, and its memory with it
	v, err := o.ReadWithin(context.Background(), p, dst, ReadPatience)
	o.End()
	return v, m.confirmed(err)
}

// Read is Machine.Read within the operation.
func (o Operation) Read(p region.Ptr, dst []byte) (region.Version, error) {
	v, err := o.ReadWithin(context.Background(), p, dst, ReadPatience)
	return v, o.b.w.m.confirmed(err)
}

// Look lets the caller read parts of the object p in place, and costs less than Read. It returns
// false unless this machine is the object's primary and the object exists and is not locked. After
// false call Read, which waits, or returns the reason. The caller may show the bytes that it read only
// after a later Machine.Confirm has succeeded.
func (o Operation) Look(p region.Ptr) (region.View, bool) {
	rt := o.b.w.m.Lookable(p)
	if rt == nil {
		return region.View{}, false
	}
	o.count(1)
	v, err := rt.Local.Look(p)
	return v, err == nil
}

// LookPair is Look at two adjacent objects, p and p.Element(1): it sets the pair's two views.
func (o Operation) LookPair(a *region.Pair, p region.Ptr) bool {
	rt := o.b.w.m.Lookable(p)
	if rt == nil {
		*a = region.Pair{}
		return false
	}
	o.count(2)
	rt.Local.Aim(a, p)
	return a.Look()
}

// ReadHere is like ReadWithin, but makes one attempt, and costs less. It returns false unless this machine is
// the object's primary and the object can be read now. After false call ReadWithin, which waits, or
// returns the reason.
func (o Operation) ReadHere(p region.Ptr, dst []byte) (region.Version, bool) {
	rt := o.b.w.m.Lookable(p)
	if rt == nil {
		return 0, false
	}
	o.count(1)
	h, err := rt.Local.ReadObject(p, dst)
	return h.Version(), err == nil
}

// ReadWithin is Operation.Read for a transaction: it waits up to patience for a writer that has the
// object locked, until ctx ends, and does not confirm the lease.
func (o Operation) ReadWithin(ctx context.Context, p region.Ptr, dst []byte, patience time.Duration) (region.Version, error) {
	w := o.b.w
	b := wait.Backoff{Lease: &w.m.Lease, Patience: patience}
	for {
		before := w.m.Routes.Load()
		rt, err := w.m.readable(ctx, p.Addr)
		if err != nil {
			return 0, err
		}
		h, err := o.readOnce(rt, p, dst)
		if err == nil {
			return h.Version(), nil
		}
		switch {
		case errors.Is(err, ErrMoved): // try again, with the new route
		case errors.Is(err, region.ErrLocked) || errors.Is(err, region.ErrTorn):
			if err := b.Locked(ctx); err != nil {
				return 0, err
			}
		default:
			if err := w.m.AwaitReplacement(ctx, before, err); err != nil {
				return h.Version(), err
			}
		}
	}
}

// readable waits until the region of the given address may be read, and returns the route to it.
func (m *Machine) readable(ctx context.Context, a region.Addr) (*route.Route, error) {
	rt := m.Route(a.Region())
	if rt == nil {
		if err := m.Locate(a); err != nil {
			return nil, err
		}
		rt = m.Route(a.Region())
	}
	for n := (wait.Need{}); rt != nil && rt.State == route.Blocked; rt = m.Route(a.Region()) {
		if n.Lease == nil {
			n = m.moving(ctx, BlockedError(a.Region()), rt.Since)
		}
		if err := n.Pause(); err != nil {
			return nil, err
		}
	}
	if rt == nil {
		return nil, m.noRegion(a)
	}
	return rt, nil
}

// Available waits until this machine holds its lease and may read the region of the given address. It
// fails when the lease or the region has been missing for Config.Patience, which may be
// immediately.
func (m *Machine) Available(ctx context.Context, a region.Addr) error {
	if err := m.Gone(); err != nil {
		return err
	}
	if err := m.ConfirmWithin(ctx); err != nil {
		return err
	}
	_, err := m.readable(ctx, a)
	return err
}

// confirmed returns err, the result of a read outside of a transaction, once membership is confirmed.
// Without that, an evicted machine might return an object that others have changed since, or report
// as freed an object whose region has moved.
func (m *Machine) confirmed(err error) error {
	if m.cfg.Alive == nil || sabotage.ReadConfirm.Skipped() || m.cfg.Alive() {
		return err
	}
	if err != nil && !errors.Is(err, region.ErrFreed) { // the failure says nothing about the object
		return err
	}
	return cmp.Or(m.Confirm(), err)
}

// readOnce makes one attempt to read the object p, by its route. It fails if a writer has p locked.
func (o Operation) readOnce(rt *route.Route, p region.Ptr, dst []byte) (region.Header, error) {
	if rt.PrimaryHere {
		o.count(1)
		return rt.Local.ReadObject(p, dst)
	}
	w := o.b.w
	raw := w.m.TakeBuffer()
	defer w.m.ReturnBuffer(raw)
	b := raw.Sized(p.Class().Size())
	if err := w.readRaw(rt, p, b, raw); err != nil {
		return 0, err
	}
	return region.Unpack(dst, b, p)
}

// A Buffer receives the bytes of an object from another machine, before the line versions are
// checked and stripped.
type Buffer struct {
	b []byte
	// Wait is open while READs into the buffer are pending.
	Wait wait.Waiter
}

// TakeBuffer returns a buffer for READs. ReturnBuffer takes it back, once none is pending.
func (m *Machine) TakeBuffer() *Buffer { return m.raw.Get().(*Buffer) }

// ReturnBuffer takes a buffer back from its user.
func (m *Machine) ReturnBuffer(r *Buffer) { m.raw.Put(r) }

// Sized returns n bytes of the buffer, which grows if it is shorter.
func (r *Buffer) Sized(n int) []byte {
	if cap(r.b) < n {
		r.b = make([]byte, max(n, 4096))
	}
	return r.b[:n]
}

// readRaw reads bytes from the region of p at another machine. It returns ErrMoved if that machine
// has left the configuration since: the bytes must not be used.
func (w *Worker) readRaw(rt *route.Route, p region.Ptr, b []byte, raw *Buffer) error {
	w.CountRemoteReads(1)
	w.CountRoundTrip()
	w.Lock()
	err := w.PostReadLocked(rt.Primary, route.RegionKey(p.Addr.Region()), uint64(p.Addr.Offset()), b, &raw.Wait)
	isPending := !raw.Wait.Settled()
	if isPending {
		w.GatherLocked()
	}
	w.Unlock()
	if isPending {
		err = errors.Join(err, w.Await(&raw.Wait))
	}
	if err == nil && w.m.Route(p.Addr.Region()) != rt && !sabotage.ReadRoute.Skipped() {
		return ErrMoved
	}
	return err
}

// PostWriteLocked posts a WRITE. wt is open until the WRITE has completed. If the post fails, the
// error is returned and wt is not opened. src may be reused when PostWriteLocked returns.
func (w *Worker) PostWriteLocked(to rdma.MachineID, k rdma.Key, off uint64, src []byte, wt *wait.Waiter) error {
	tag := w.ops.add(pendingOp{wait: wt})
	wt.Add(1)
	done, err := w.q.Write(to, k, off, src, tag)
	if done || err != nil {
		w.ops.drop(tag)
		wt.Add(-1)
		w.loseLocked(to, err)
	}
	return err
}

// PostReadLocked posts a READ. wt is open, and dst belongs to the queue, until the READ has
// completed. If the post fails, the error is returned and wt is not opened.
func (w *Worker) PostReadLocked(from rdma.MachineID, k rdma.Key, off uint64, dst []byte, wt *wait.Waiter) error {
	tag := w.ops.add(pendingOp{wait: wt})
	wt.Add(1)
	done, err := w.q.Read(from, k, off, dst, tag)
	if done || err != nil {
		w.ops.drop(tag)
		wt.Add(-1)
		w.loseLocked(from, err)
	}
	return err
}

// ReadReplica fills dst with the bytes at off of a machine's replica of a region, by one-sided READs
// without any consistency check. Data recovery copies with it. If the machine is no longer the
// primary, the bytes are useless, but do no harm: the caller ends with its configuration.
func (m *Machine) ReadReplica(from rdma.MachineID, id region.ID, off uint64, dst []byte) error {
	return m.readRemote(from, route.RegionKey(id), off, dst)
}

// PieceBytes bounds each READ and WRITE of longer memory, such as an annex.
const PieceBytes = 256 << 10

// readRemote reads in pieces, and releases the worker's lock between two pieces.
func (m *Machine) readRemote(from rdma.MachineID, k rdma.Key, off uint64, dst []byte) error {
	w, wait := m.anyWorker(), wait.NewWaiter(m.cfg.Clock)
	for len(dst) > 0 {
		n := min(len(dst), PieceBytes)
		w.Lock()
		err := w.PostReadLocked(from, k, off, dst[:n], &wait)
		w.Unlock()
		if err := errors.Join(err, w.Await(&wait)); err != nil {
			return err
		}
		off, dst = off+uint64(n), dst[n:]
	}
	return nil
}

// ReadPair is Machine.ReadPair within the operation.
func (o Operation) ReadPair(p region.Ptr, dst []byte) (first, second region.Version, err error) {
	first, second, err = o.ReadPairWithin(context.Background(), p, dst, ReadPatience)
	return first, second, o.b.w.m.confirmed(err)
}

// ReadPair reads two adjacent objects of one size, p and p.Element(1), with a single READ if they
// are remote. Their payloads go to dst[:2*p.Capacity()], one after the other. Each payload is
// consistent by itself; the two together may not be. If the second object has been freed, the error
// is region.ErrFreed, too.
func (m *Machine) ReadPair(p region.Ptr, dst []byte) (first, second region.Version, err error) {
	o := m.Start()
	first, second, err = o.ReadPairWithin(context.Background(), p, dst, ReadPatience)
	o.End()
	return first, second, m.confirmed(err)
}

// ReadPairWithin is Operation.ReadPair for a transaction. It waits as ReadWithin does, and does not
// confirm the lease.
func (o Operation) ReadPairWithin(ctx context.Context, p region.Ptr, dst []byte, patience time.Duration) (first, second region.Version, err error) {
	w := o.b.w
	b := wait.Backoff{Lease: &w.m.Lease, Patience: patience}
	for {
		before := w.m.Routes.Load()
		rt, err := w.m.readable(ctx, p.Addr)
		if err != nil {
			return 0, 0, err
		}
		h1, h2, err := o.readPairOnce(rt, p, dst)
		if err == nil {
			return h1.Version(), h2.Version(), nil
		}
		switch {
		case errors.Is(err, ErrMoved): // try again, with the new route
		case errors.Is(err, region.ErrLocked) || errors.Is(err, region.ErrTorn):
			if err := b.Locked(ctx); err != nil {
				return 0, 0, err
			}
		default:
			if err := w.m.AwaitReplacement(ctx, before, err); err != nil {
				return 0, 0, err
			}
		}
	}
}

// readPairOnce reads both objects into dst, one behind the other, by one READ if they are at another machine.
func (o Operation) readPairOnce(rt *route.Route, p region.Ptr, dst []byte) (h1, h2 region.Header, err error) {
	n, next := p.Capacity(), p.Element(1)
	if rt.PrimaryHere {
		o.count(2)
		if h1, err = rt.Local.ReadObject(p, dst[:n]); err == nil {
			h2, err = rt.Local.ReadObject(next, dst[n:2*n])
		}
		return h1, h2, err
	}
	w := o.b.w
	raw := w.m.TakeBuffer()
	defer w.m.ReturnBuffer(raw)
	size := p.Class().Size()
	b := raw.Sized(2 * size)
	if err := w.readRaw(rt, p, b, raw); err != nil {
		return 0, 0, err
	}
	if h1, err = region.Unpack(dst[:n], b[:size], p); err == nil {
		h2, err = region.Unpack(dst[n:2*n], b[size:], next)
	}
	return h1, h2, err
}
