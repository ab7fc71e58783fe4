package tao

import (
	"errors"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A reader reads nodes and blocks without a lock. Its results are valid until its next read.
type reader struct {
	m   *txn.Machine
	buf []byte
}

// read reads an object; false says that it is not there any more, or that p is no pointer, as a mix of
// two may be (cachedHead).
func (r *reader) read(p region.Ptr) ([]byte, bool, error) {
	n := p.Capacity()
	if cap(r.buf) < n {
		r.buf = make([]byte, max(n, 4096))
	}
	o := r.m.Start()
	_, err := o.Read(p, r.buf[:n])
	o.End()
	if errors.Is(err, region.ErrFreed) || errors.Is(err, region.ErrBadPtr) {
		return nil, false, nil
	}
	return r.buf[:n], err == nil, err
}

// node reads a node; bench.ErrMiss says that it has been deleted.
func (r *reader) node(at region.Ptr, id uint64) (node, error) {
	payload, ok, err := r.read(at)
	if err == nil && (!ok || !isNode(payload, id)) {
		err = bench.ErrMiss
	}
	return payload, err
}

// head reads the head of a list; false says that the pointer does not lead there.
func (r *reader) head(p region.Ptr, id uint64, kind uint8) (block, bool, error) {
	payload, ok, err := r.read(p)
	if err != nil || !ok {
		return nil, false, err
	}
	b, ok := asBlock(payload, id, kind)
	return b, ok && b.isHead(), nil
}

// heads reads a node and remembers the heads of its lists.
func (r *reader) heads(n *ref) error {
	got, err := r.node(n.ptr, n.id)
	if err != nil {
		return err
	}
	for kind := range uint8(types) {
		p, err := got.head(kind)
		if err != nil {
			return err
		}
		n.heads[kind].store(p)
	}
	return nil
}

// headTries is the number of attempts to find a head that has moved, before the list is read
// in a transaction.
const headTries = 3

// list reads the head of a node's list by the pointer that is remembered, or a fresh
// one. It returns nil if there are no edges, and false if the head keeps moving.
func (r *reader) list(n *ref, kind uint8) (block, bool, error) {
	for range headTries {
		p := n.heads[kind].load()
		if p.IsNil() {
			if err := r.heads(n); err != nil {
				return nil, false, err
			}
			p = n.heads[kind].load()
			if p.IsNil() {
				return nil, true, nil
			}
		}
		b, ok, err := r.head(p, n.id, kind)
		if err != nil || ok {
			return b, ok, err
		}
		n.heads[kind].store(region.Ptr{})
	}
	return nil, false, nil
}
