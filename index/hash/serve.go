package hash

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/worker"
)

// The functions that machines ship to the primary of a shard.
const (
	_ worker.HandlerID = 0x6800 + iota // was a lookup whose answer had no sources
	handlerSingle
	handlerSplit
	handlerLookup
	handlerLookups
)

// A Server runs the operations that other machines ship to the primary of a shard. Each
// machine has one.
type Server struct {
	m *txn.Machine

	mu      lockrank.Mutex[lockrank.Leaf]
	tables  map[region.Ptr]*Table
	readers map[region.Ptr]*Table // see reader
}

// Serve registers the handlers of shipped operations at m. Call it on all machines of an
// instance, or on none.
func Serve(m *txn.Machine) *Server {
	s := &Server{m: m, tables: make(map[region.Ptr]*Table), readers: make(map[region.Ptr]*Table)}
	lookup.Serve(m, handlerLookup, s.lookup)
	m.Handle(handlerSingle, s.single)
	m.Handle(handlerSplit, s.startSplit)
	m.Handle(handlerLookups, s.lookups)
	return s
}

// Open returns the machine's only handle on a table, so that operations shipped here are
// combined with the machine's own.
func (s *Server) Open(anchor region.Ptr) *Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	tb := s.tables[anchor]
	if tb == nil {
		tb = Open(s.m, anchor)
		s.tables[anchor] = tb
	}
	return tb
}

// Forget drops the handles on a table that has been destroyed.
func (s *Server) Forget(anchor region.Ptr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, anchor)
	delete(s.readers, anchor)
}

// table returns the handle on a message's table. It does not keep the handle if the
// anchor points to no table.
func (s *Server) table(anchor region.Ptr) (*Table, error) {
	tb := s.Open(anchor)
	if _, err := tb.open(); err != nil {
		s.Forget(anchor)
		return nil, err
	}
	return tb, nil
}

var errMessage = errors.New("hash: bad message")

// Messages begin with the anchor.

func decodeAnchorPtr(b []byte) (region.Ptr, []byte, error) {
	p, err := region.DecodePtr(b)
	if err != nil || p.IsNil() {
		return p, nil, fmt.Errorf("%w: anchor", errMessage)
	}
	return p, b[region.PtrBytes:], nil
}

func appendKey(b, key []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(key))), key...)
}

func decodeKey(b []byte) (key, rest []byte, err error) {
	if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
		return nil, nil, fmt.Errorf("%w: key", errMessage)
	}
	n := 2 + int(binary.LittleEndian.Uint16(b))
	return b[2:n:n], b[n:], nil
}

// lookup looks a key up for another machine, whose READs have not decided.
func (s *Server) lookup(_ context.Context, request []byte) (a lookup.Answer, err error) {
	anchor, rest, err := decodeAnchorPtr(request)
	if err != nil {
		return a, err
	}
	key, rest, err := decodeKey(rest)
	if err != nil || len(rest) > 0 {
		return a, fmt.Errorf("%w: lookup of %d bytes", errMessage, len(request))
	}
	tb, err := s.table(anchor)
	if err != nil {
		return a, err
	}
	return tb.answer(key)
}

// appendSingles encodes operations: for each its kind, and the length and bytes of its value.
func appendSingles(b []byte, ops []single) []byte {
	for _, op := range ops {
		b = append(binary.LittleEndian.AppendUint32(append(b, byte(op.kind)), uint32(len(op.value))), op.value...)
	}
	return b
}

const singleHeaderBytes = 5

func decodeSingles(b []byte) (ops []single, err error) {
	for len(b) > 0 {
		if len(b) < singleHeaderBytes || b[0] >= byte(singleKinds) {
			return nil, fmt.Errorf("%w: operation", errMessage)
		}
		kind, n := singleKind(b[0]), uint64(binary.LittleEndian.Uint32(b[1:]))
		b = b[singleHeaderBytes:]
		if uint64(len(b)) < n {
			return nil, fmt.Errorf("%w: value of %d bytes", errMessage, n)
		}
		ops = append(ops, single{kind: kind, value: b[:n:n]})
		b = b[n:]
	}
	return ops, nil
}

func decodeResults(b []byte, ops []single) error {
	if len(b) != len(ops) {
		return fmt.Errorf("%w: %d results of %d operations", errMessage, len(b), len(ops))
	}
	for i := range ops {
		ops[i].done = b[i] != 0
	}
	return nil
}

// single does single operations that another machine has combined.
func (s *Server) single(ctx context.Context, arg []byte) ([]byte, error) {
	anchor, rest, err := decodeAnchorPtr(arg)
	if err != nil {
		return nil, err
	}
	key, rest, err := decodeKey(rest)
	if err != nil {
		return nil, err
	}
	ops, err := decodeSingles(rest)
	if err != nil {
		return nil, err
	}
	for _, op := range ops {
		if err := checkPair(len(key), len(op.value)); err != nil {
			return nil, err
		}
	}
	tb, err := s.table(anchor)
	if err != nil {
		return nil, err
	}
	err = tb.combine(tb.here, &request{key: key, ops: ops}, func(ops []single, _ bool) error { return tb.doHere(ctx, key, ops) })
	if err != nil {
		return nil, err
	}
	reply := make([]byte, len(ops))
	for i, op := range ops {
		if op.done {
			reply[i] = 1
		}
	}
	return reply, nil
}

func appendSplit(b []byte, anchor, parent region.Ptr, depth int, hint region.Addr) []byte {
	b = append(parent.Append(anchor.Append(b)), byte(depth))
	return binary.LittleEndian.AppendUint64(b, uint64(hint))
}

const splitBytes = 2*region.PtrBytes + 1 + 8

// startSplit begins the split of a shard of another machine, whose child is created here.
func (s *Server) startSplit(ctx context.Context, arg []byte) ([]byte, error) {
	if len(arg) != splitBytes {
		return nil, fmt.Errorf("%w: split of %d bytes", errMessage, len(arg))
	}
	anchor, rest, err := decodeAnchorPtr(arg)
	if err != nil {
		return nil, err
	}
	parent, err := region.DecodePtr(rest)
	depth, hint := int(rest[region.PtrBytes]), region.Addr(binary.LittleEndian.Uint64(rest[region.PtrBytes+1:]))
	if err != nil || parent.IsNil() || depth >= depthMax || !s.m.IsPrimary(hint) {
		return nil, fmt.Errorf("%w: split at depth %d", errMessage, depth)
	}
	tb, err := s.table(anchor)
	if err != nil {
		return nil, err
	}
	o, err := tb.open()
	if err != nil {
		return nil, err
	}
	return nil, beginSplit(ctx, s.m, o.anchor, parent, depth, hint)
}
