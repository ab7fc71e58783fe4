package tao

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// handlerAssocGet is the function that is shipped to a node's primary.
const handlerAssocGet worker.HandlerID = 0x7a00

// edgesAll reads all of a list.
const edgesAll = math.MaxInt

// An executor executes operations at one machine.
type executor struct {
	s  *store
	th *bench.Thread
	reader
	scan *scan
	r    *request
	ctx  context.Context // context of the operation
	list list
	// found is the result of the last read; a client would use it.
	found []byte
	count int
	// delta is how the last update has changed the numbers of nodes and edges; added is the name of
	// the node that it has added.
	delta int64
	added region.Ptr
	arg   []byte
	edge  [edgeBytes]byte
	// Method values, created once to avoid allocations.
	transactions [kinds]func(*txn.Tx) error
	assocGet     func() error
}

// newExecutor returns an executor for one client. It makes the function values once, so that calls
// do not allocate them.
func (s *store) newExecutor(th *bench.Thread) *executor {
	m := s.w.target.Machine(th.Machine)
	e := &executor{s: s, th: th, reader: reader{m: m}, scan: newScan(m)}
	e.transactions = [kinds]func(*txn.Tx) error{
		assocRange: e.doRange, objAdd: e.doAdd, objUpdate: e.doUpdate, objDelete: e.doDelete,
		assocAdd: e.doAssocAdd, assocDelete: e.doAssocDelete,
	}
	e.assocGet = e.doAssocGet
	return e
}

// execute executes a request.
func (e *executor) execute(ctx context.Context, r *request) error {
	e.r = r
	switch r.kind {
	case objGet, assocCount:
		n, err := e.node(r.node.ptr, r.node.id)
		if err == nil && r.kind == objGet {
			e.found = n.data()
		} else if err == nil {
			e.count = n.count(r.edge)
		}
		return err
	case assocRange:
		return e.assocRange(ctx)
	case assocGet:
		e.ctx = ctx
		return e.th.Retry(ctx, e.assocGet)
	}
	return e.m.Run(ctx, e.transactions[r.kind])
}

// assocRange reads the newest edges, without a transaction if all of them are in the head of the
// list. Otherwise, and if the head keeps moving (!ok), it runs doRange in a transaction.
func (e *executor) assocRange(ctx context.Context) error {
	b, ok, err := e.reader.list(e.r.node, e.r.edge)
	if err != nil {
		return err
	}
	goesOn := b != nil && b.n() < rangeEdges && !b.isLast() // edges that are asked for are in the next block
	if !ok || goesOn {
		return e.m.Run(ctx, e.transactions[assocRange])
	}
	e.found = e.found[:0]
	if b != nil {
		e.found = b.edges(0)[:edgeBytes*min(b.n(), rangeEdges)]
	}
	return nil
}

// doRange is assocRange for more edges than the head has. It reads all blocks in a transaction, so
// that they are of one moment.
func (e *executor) doRange(t *txn.Tx) error {
	e.found = nil
	if err := e.open(t, rangeEdges); err != nil {
		return err
	}
	for _, b := range e.list.blocks {
		e.found = append(e.found, b.edges(0)...)
	}
	e.found = e.found[:min(len(e.found), rangeEdges*edgeBytes)]
	return nil
}

func (e *executor) open(t *txn.Tx, edges int) error {
	return e.list.open(t, e.r.node.ptr, e.r.node.id, e.r.edge, edges)
}

// doAssocGet runs the scan here if this machine is the primary of the node; otherwise it ships the
// scan there.
func (e *executor) doAssocGet() (err error) {
	r := e.r
	if e.m.IsPrimary(r.node.ptr.Addr) {
		e.found, err = e.scan.run(e.ctx, r.node, r.edge, e.names(e.arg[:0]))
		return err
	}
	e.arg = append(r.node.ptr.Append(appendKey(e.arg[:0], r.node.id)), r.edge)
	e.arg = e.names(e.arg)
	e.found, err = e.m.Ship(e.ctx, r.node.ptr.Addr, handlerAssocGet, e.arg)
	switch {
	case errors.Is(err, outcome.ErrInDoubt): // the primary was lost: Retry repeats the read
		return fmt.Errorf("%w: %w", outcome.ErrConflict, err)
	case errors.Is(err, region.ErrFreed):
		return bench.ErrMiss
	}
	return err
}

// names appends the encoded names of the nodes that are asked for.
func (e *executor) names(b []byte) []byte {
	for _, n := range e.r.targets {
		b = n.ptr.Append(b)
	}
	return b
}

// doAdd adds a node at the request's machine.
func (e *executor) doAdd(t *txn.Tx) (err error) {
	r := e.r
	e.delta = counted(1, 0)
	e.added, err = e.s.addNode(t, e.th.Machine, r.id, r.length, e.s.places[r.machine])
	return err
}

// doUpdate changes a node in place. It checks the node's id first, because a deleted node's memory
// may have been reused.
func (e *executor) doUpdate(t *txn.Tx) error {
	e.delta = 0
	if _, err := getNode(t, e.r.node.ptr, e.r.node.id); err != nil {
		return err
	}
	n, err := t.Write(e.r.node.ptr)
	if err == nil {
		node(n).update()
	}
	return err
}

// doDelete frees a node and its lists. Its name stays, marked as deleted.
func (e *executor) doDelete(t *txn.Tx) error {
	edges, r := 0, e.r
	for kind := range uint8(types) {
		if err := e.list.open(t, r.node.ptr, r.node.id, kind, edgesAll); err != nil {
			return err
		}
		edges += e.list.node.count(kind)
		if err := e.list.free(); err != nil {
			return err
		}
	}
	if err := t.Free(r.node.ptr); err != nil {
		return err
	}
	e.delta = counted(-1, -edges)
	var key [keyBytes]byte
	var name [nameBytes]byte
	return e.s.names[e.th.Machine].Put(t, appendKey(key[:0], r.node.id), appendName(name[:0], r.node.ptr, true))
}

// doAssocAdd adds an edge. It replaces an edge to the same target, if there is one.
func (e *executor) doAssocAdd(t *txn.Tx) error {
	if err := e.open(t, edgesAll); err != nil {
		return err
	}
	r := e.r
	putEdge(e.edge[:], r.node.id, r.edge, r.targets[0].ptr, r.time)
	e.delta = counted(0, 1)
	if block, i := e.list.find(e.edge[:region.PtrBytes]); block >= 0 {
		e.delta = 0 // the new edge takes the place of one
		if err := e.list.remove(block, i); err != nil {
			return err
		}
	}
	return e.list.insert(e.edge[:], r.time)
}

func (e *executor) doAssocDelete(t *txn.Tx) error {
	if err := e.open(t, edgesAll); err != nil {
		return err
	}
	block, i := e.list.find(e.r.targets[0].ptr.Append(e.edge[:0]))
	if block < 0 {
		return bench.ErrMiss
	}
	e.delta = counted(0, -1)
	return e.list.remove(block, i)
}

// A scan is an assoc_get at the node's primary.
type scan struct {
	reader
	list  list
	names []byte // encoded names of the requested nodes
	found []byte // the edges that were found
	ref   *ref
	kind  uint8
	do    func(*txn.Tx) error
}

func newScan(m *txn.Machine) *scan {
	s := &scan{reader: reader{m: m}}
	s.do = s.doLong
	return s
}

const scanBytes = keyBytes + region.PtrBytes + 1 // bytes before the names

// serve runs the scan for another machine.
func (s *scan) serve(ctx context.Context, arg []byte) ([]byte, error) {
	if len(arg) < scanBytes || (len(arg)-scanBytes)%region.PtrBytes != 0 {
		return nil, fmt.Errorf("tao: an assoc_get has %d bytes", len(arg))
	}
	p, err := region.DecodePtr(arg[keyBytes:])
	if err != nil {
		return nil, fmt.Errorf("tao: an assoc_get: %w", err)
	}
	kind := arg[scanBytes-1]
	if kind >= types {
		return nil, fmt.Errorf("tao: an assoc_get of edges of type %d", kind)
	}
	found, err := s.run(ctx, &ref{id: binary.LittleEndian.Uint64(arg), ptr: p}, kind, arg[scanBytes:])
	if errors.Is(err, bench.ErrMiss) {
		err = region.ErrFreed // an error that the other machine recognizes
	}
	return found, err
}

// run returns the edges from node n to the requested nodes, whose encoded names are in names. It leaves
// out nodes to which n has no edge.
func (s *scan) run(ctx context.Context, n *ref, kind uint8, names []byte) ([]byte, error) {
	s.ref, s.kind, s.names, s.found = n, kind, names, s.found[:0]
	b, ok, err := s.reader.list(n, kind)
	switch {
	case err != nil:
		return nil, err
	case !ok || (b != nil && !b.isLast()): // the first block could not be read, or is one of several
		err = s.m.Run(ctx, s.do)
	case b != nil: // else the list is empty
		s.match(b)
	}
	return s.found, err
}

// doLong scans a list of several blocks, which must all be of one moment.
func (s *scan) doLong(t *txn.Tx) error {
	s.found = s.found[:0]
	if err := s.list.open(t, s.ref.ptr, s.ref.id, s.kind, edgesAll); err != nil {
		return err
	}
	for _, b := range s.list.blocks {
		s.match(b.block)
	}
	return nil
}

// match appends to s.found those edges of the block that lead to requested nodes.
func (s *scan) match(b block) {
	for names := s.names; len(names) > 0; names = names[region.PtrBytes:] {
		if i := b.find(names[:region.PtrBytes]); i >= 0 {
			s.found = append(s.found, b.edge(i)...)
		}
	}
}
