package tao

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A ref is a client's knowledge of a node: its name and, once read, the heads of its
// lists.
type ref struct {
	id    uint64
	ptr   region.Ptr
	heads [types]cachedHead
}

// A cachedHead is a pointer that the clients of a process share. Its halves may come
// from two different heads; readers notice that the pointer does not lead to the list's head, as
// they notice an outdated pointer.
type cachedHead struct{ addr, rest atomic.Uint64 }

// load returns the pointer, which may be a mix of two.
func (h *cachedHead) load() region.Ptr {
	rest := h.rest.Load()
	return region.MakePtr(region.Addr(h.addr.Load()), region.Class(rest), rest>>8)
}

// store packs incarnation and class into one word, so that two atomic words hold the pointer.
func (h *cachedHead) store(p region.Ptr) {
	h.rest.Store((p.Incarnation() << 8) | uint64(p.Class()))
	h.addr.Store(uint64(p.Addr))
}

// store keeps the graph.
type store struct {
	w      *Workload
	here   []int // the machines of this process
	places []region.Addr
	names  []*hash.Table // handles of the table of names, by machine
}

func newStore(w *Workload) *store {
	s := &store{w: w, here: w.target.Here()}
	for _, m := range s.here {
		w.target.Machine(m).Handle(handlerAssocGet, func(ctx context.Context, arg []byte) ([]byte, error) {
			return newScan(w.target.Machine(m)).serve(ctx, arg)
		})
	}
	return s
}

func (s *store) create(ctx context.Context) (err error) {
	if s.places, err = s.w.target.Places(ctx); err != nil {
		return err
	}
	s.names, err = s.w.target.Hash(ctx, "tao names", hash.Config{KeyBytes: keyBytes, ValueBytes: nameBytes, Seed: s.w.cfg.Seed}, s.places)
	if err != nil {
		return err
	}
	s.w.refs = make([]ref, s.w.cfg.Nodes)
	if !s.w.target.Leads() {
		return nil
	}
	return s.names[0].Reserve(ctx, s.w.cfg.Nodes)
}

// addNode makes a node without edges, and its name.
func (s *store) addNode(t *txn.Tx, m int, id uint64, length int, place region.Addr) (region.Ptr, error) {
	p, payload, err := t.Alloc(nodeBytes+length, place)
	if err != nil {
		return p, err
	}
	node(payload).format(id, length)
	var key [keyBytes]byte
	var name [nameBytes]byte
	return p, s.names[m].Insert(t, appendKey(key[:0], id), appendName(name[:0], p, false))
}

// loadNodes loads nodes first to end-1.
func (s *store) loadNodes(ctx context.Context, m int, first, end uint64) error {
	return s.w.target.Machine(m).Run(ctx, func(t *txn.Tx) error {
		for id := first; id < end; id++ {
			if _, err := s.addNode(t, m, id, s.w.gen.length(id), s.places[m]); err != nil {
				return err
			}
		}
		return nil
	})
}

// readNames reads the names of nodes first to end-1.
func (s *store) readNames(_ context.Context, m int, first, end uint64) error {
	var key [keyBytes]byte
	var name [nameBytes]byte
	for id := first; id < end; id++ {
		v, ok, err := s.names[m].Lookup(appendKey(key[:0], id), name[:])
		if err == nil && !ok {
			err = broken("node %d has no name", id)
		}
		if err != nil {
			return err
		}
		p, err := decodePtr(v)
		if err != nil {
			return err
		}
		s.w.refs[id-1].id, s.w.refs[id-1].ptr = id, p
	}
	return nil
}

// loadEdges loads the edges of nodes first to end-1.
func (s *store) loadEdges(ctx context.Context, m int, first, end uint64) error {
	for id := first; id < end; id++ {
		for kind := range uint8(types) {
			edges := s.edges(id, kind)
			if len(edges) == 0 {
				continue
			}
			err := s.w.target.Machine(m).Run(ctx, func(t *txn.Tx) error {
				var l list
				if err := l.open(t, s.w.refs[id-1].ptr, id, kind, edgesAll); err != nil {
					return err
				}
				return l.fill(edges)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// edges draws the edges of a type that a node is loaded with.
func (s *store) edges(id uint64, kind uint8) [][edgeBytes]byte {
	g := s.w.gen
	edges := make([][edgeBytes]byte, g.count(id, kind))
	for k := range edges {
		putEdge(edges[k][:], id, kind, s.w.refs[g.target(id, kind, k)-1].ptr, g.time(k))
	}
	return edges
}

// readHeads caches the heads of lists, as after a long time of reading.
func (s *store) readHeads(_ context.Context, m int, first, end uint64) error {
	r := reader{m: s.w.target.Machine(m)}
	for id := first; id < end; id++ {
		n := &s.w.refs[id-1]
		err := r.heads(n)
		if err != nil && !errors.Is(err, bench.ErrMiss) {
			return fmt.Errorf("node %d: %w", id, err)
		}
	}
	return nil
}
