package tao

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
)

// total is the number of nodes and of edges.
type total struct{ nodes, edges int64 }

// A checker walks the graph.
type checker struct {
	reader
	total
	live    map[uint64]region.Ptr
	deleted map[region.Ptr]bool
	targets map[region.Ptr]bool // the targets of the list that is being followed
}

// check compares the graph with the expected totals. The outcome of uncertain updates is
// unknown; each adds or deletes at most one node with its edges.
func (s *store) check(ctx context.Context, want total, uncertain int64) error {
	c := &checker{
		reader: reader{m: s.w.target.Machine(s.here[0])},
		live:   make(map[uint64]region.Ptr), deleted: make(map[region.Ptr]bool), targets: make(map[region.Ptr]bool),
	}
	if err := s.names[s.here[0]].Check(ctx, hash.Visitor{Pair: c.name}); err != nil {
		return err
	}
	for id := range s.w.gen.nodes { // refs has node 1 first
		if p := s.w.refs[id].ptr; c.live[id+1] != p && !c.deleted[p] {
			return broken("node %d is gone", id+1)
		}
	}
	most := int64(1) // the most edges that one update can have added or deleted
	for id, p := range c.live {
		before := c.edges
		if err := c.node(id, p); err != nil {
			return err
		}
		most = max(most, degreeMax, c.edges-before)
	}
	c.nodes = int64(len(c.live))
	if apart(c.nodes, want.nodes) > uncertain || apart(c.edges, want.edges) > uncertain*most {
		return broken("%d nodes and %d edges, want %d and %d (%d operations unknown)", c.nodes, c.edges, want.nodes, want.edges, uncertain)
	}
	return nil
}

// apart returns the distance between two numbers.
func apart(a, b int64) int64 { return max(a-b, b-a) }

// name checks a pair of the table of names, and notes its node as live or deleted.
func (c *checker) name(key, value []byte) error {
	if len(key) != keyBytes || len(value) != nameBytes || value[region.PtrBytes] > 1 {
		return broken("node %x has the name %x", key, value)
	}
	p, err := decodePtr(value)
	if err != nil {
		return err
	}
	if value[region.PtrBytes] != 0 {
		c.deleted[p] = true
	} else {
		c.live[binary.LittleEndian.Uint64(key)] = p
	}
	return nil
}

// node checks a node and its lists.
func (c *checker) node(id uint64, p region.Ptr) error {
	got, err := c.reader.node(p, id)
	if errors.Is(err, bench.ErrMiss) {
		err = broken("node %d is not where its name says", id)
	}
	if err != nil {
		return err
	}
	n := bytes.Clone(got)
	if err := checkNode(n, id); err != nil {
		return err
	}
	for kind := range uint8(types) {
		clear(c.targets)
		if err := c.list(n, kind); err != nil {
			return err
		}
		if len(c.targets) != node(n).count(kind) {
			return broken("node %d: %d edges of type %d, and its count is %d", id, len(c.targets), kind, node(n).count(kind))
		}
		c.edges += int64(len(c.targets))
	}
	return nil
}

// checkNode returns an error if a node's type, version and data do not belong together.
func checkNode(n node, id uint64) error {
	data := n.data()
	want := make([]byte, len(data))
	fillData(want, id, n.version())
	if n[nodeType] != typeOf(id) || data == nil || n.version() == 0 || !bytes.Equal(data, want) {
		return broken("node %d: type %d and data %x of version %d", id, n[nodeType], data, n.version())
	}
	return nil
}

// list checks a list of a node's edges.
func (c *checker) list(n node, kind uint8) error {
	id, last, isHead := n.id(), ^uint64(0), true // last is the time of the edge before, which is newer
	p, err := n.head(kind)
	for err == nil && !p.IsNil() {
		payload, ok, err := c.read(p)
		if err != nil {
			return err
		}
		b, isBlock := asBlock(payload, id, kind)
		if !ok || !isBlock || b.isHead() != isHead || b.n() == 0 {
			return broken("node %d, edges of type %d: no block at %v, or a head in the middle, or an empty one", id, kind, p)
		}
		b, isHead = bytes.Clone(b), false
		for i := range b.n() {
			if b.time(i) > last {
				return broken("node %d, edges of type %d: time %d after %d", id, kind, b.time(i), last)
			}
			last = b.time(i)
			if err := c.edge(b.edge(i), id, kind); err != nil {
				return err
			}
		}
		if p, err = b.next(); err != nil {
			return err
		}
	}
	return err
}

// edge checks an edge by itself.
func (c *checker) edge(e []byte, id uint64, kind uint8) error {
	target, err := decodePtr(e)
	if err != nil {
		return err
	}
	if sum := binary.LittleEndian.Uint64(e[edgeData:]); sum != edgeSum(e, id, kind) {
		return broken("node %d, edges of type %d: the edge to %v has the data %x", id, kind, target, sum)
	}
	if c.targets[target] {
		return broken("node %d: two edges of type %d to %v", id, kind, target)
	}
	c.targets[target] = true
	if c.deleted[target] {
		return nil
	}
	payload, ok, err := c.read(target)
	if err != nil {
		return err
	}
	if !ok || len(payload) < nodeBytes || c.live[node(payload).id()] != target {
		return broken("node %d: an edge of type %d to %v, where no node is", id, kind, target)
	}
	return nil
}
