package tao

import (
	"errors"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A list is the edges of one type of a node, in a transaction.
type list struct {
	t      *txn.Tx
	at     region.Ptr // address of the node
	id     uint64
	kind   uint8
	node   node
	blocks []listBlock
}

type listBlock struct {
	ptr region.Ptr
	block
}

// getNode reads a node; bench.ErrMiss says that it has been deleted.
func getNode(t *txn.Tx, at region.Ptr, id uint64) (node, error) {
	// Reading a freed object makes the transaction abort; Peek does not.
	if _, _, err := t.Peek(at); err != nil {
		if errors.Is(err, region.ErrFreed) {
			err = bench.ErrMiss
		}
		return nil, err
	}
	n, err := t.Read(at)
	if err == nil && !isNode(n, id) {
		err = bench.ErrMiss // the memory now belongs to another object
	}
	return n, err
}

// isNode reports whether a payload is that of a node.
func isNode(payload []byte, id uint64) bool {
	return len(payload) >= nodeBytes && node(payload).id() == id
}

// open reads the node, and then blocks of the list until they have at least the given number of
// edges, or the list ends. Each block has the pointer to the next.
func (l *list) open(t *txn.Tx, at region.Ptr, id uint64, kind uint8, edges int) (err error) {
	*l = list{t: t, at: at, id: id, kind: kind, blocks: l.blocks[:0]}
	if l.node, err = getNode(t, at, id); err != nil {
		return err
	}
	p, err := l.node.head(kind)
	for ; err == nil && !p.IsNil() && edges > 0; p, err = l.blocks[len(l.blocks)-1].next() {
		payload, err := t.Read(p)
		if err != nil {
			return err
		}
		b, ok := asBlock(payload, id, kind)
		if !ok {
			return broken("node %d: no block of its edges of type %d at %v", id, kind, p)
		}
		l.blocks = append(l.blocks, listBlock{p, b})
		edges -= b.n()
	}
	return err
}

// find returns the index of the block with the edge to the node of this encoded name, and the edge's index
// in the block; -1 if there is none.
func (l *list) find(name []byte) (index, i int) {
	for index := range l.blocks {
		if i := l.blocks[index].find(name); i >= 0 {
			return index, i
		}
	}
	return -1, -1
}

// write opens a block for writing.
func (l *list) write(index int) error {
	payload, err := l.t.Write(l.blocks[index].ptr)
	l.blocks[index].block = payload
	return err
}

// change opens the node for writing and adds edges, which may be negative, to the number of the
// list's edges.
func (l *list) change(edges int) (node, error) {
	payload, err := l.t.Write(l.at)
	if err != nil {
		return nil, err
	}
	l.node = payload
	l.node.setCount(l.kind, l.node.count(l.kind)+edges)
	return l.node, nil
}

// alloc makes an empty block near the node, with room for this number of edges.
func (l *list) alloc(edges int) (listBlock, error) {
	p, payload, err := l.t.Alloc(payloadFor(edges), l.at.Addr)
	if err == nil {
		block(payload).format(l.id, l.kind)
	}
	return listBlock{p, payload}, err
}

// fill fills an empty list. Only its last block may have room left. It writes the last block first,
// because each block points to the next.
func (l *list) fill(edges [][edgeBytes]byte) error {
	var next region.Ptr
	begin := ((len(edges) - 1) / edgesMax) * edgesMax // of the last block's edges
	for ; begin >= 0; begin -= edgesMax {
		part := edges[begin:min(begin+edgesMax, len(edges))]
		b, err := l.alloc(len(part))
		if err != nil {
			return err
		}
		b.setNext(next)
		b.setN(len(part))
		for i := range part {
			copy(b.edge(i), part[i][:])
		}
		b.setHead(begin == 0)
		next = b.ptr
	}
	n, err := l.change(len(edges))
	if err == nil {
		n.setHead(l.kind, next)
	}
	return err
}

// insert puts an edge at its place in the order of times.
func (l *list) insert(e []byte, time uint64) error {
	n, err := l.change(1)
	if err != nil {
		return err
	}
	index := 0 // the block that the edge belongs to: the first with an edge that is not newer, or the last
	for index < len(l.blocks)-1 && l.blocks[index].time(l.blocks[index].n()-1) > time {
		index++
	}
	switch {
	case len(l.blocks) == 0:
		err = l.prepend(n)
	case l.blocks[index].n() < l.blocks[index].room():
		err = l.write(index)
	case l.blocks[index].room() < edgesMax: // the block is full, and not of the largest size
		err = l.grow(n, index)
	case index == 0 && time >= l.blocks[0].time(0): // the head is full, and the edge is the newest
		err = l.prepend(n)
	default:
		if err = l.split(index); err == nil && time < l.blocks[index+1].time(0) {
			index++
		}
	}
	if err != nil {
		return err
	}
	l.blocks[index].insert(e)
	return nil
}

// prepend makes an empty block the head.
func (l *list) prepend(n node) error {
	b, err := l.alloc(1)
	if err != nil {
		return err
	}
	if len(l.blocks) > 0 {
		if err := l.write(0); err != nil {
			return err
		}
		l.blocks[0].setHead(false)
		b.setNext(l.blocks[0].ptr)
	}
	b.setHead(true)
	n.setHead(l.kind, b.ptr)
	l.blocks = append([]listBlock{b}, l.blocks...)
	return nil
}

// grow moves the contents of a block to one of the next size, and the pointer that leads to it.
func (l *list) grow(n node, index int) error {
	old := l.blocks[index]
	b, err := l.alloc(old.n() + 1)
	if err != nil {
		return err
	}
	copy(b.block, old.block)
	if err := l.t.Free(old.ptr); err != nil {
		return err
	}
	l.blocks[index] = b
	return l.link(n, index, b.ptr)
}

// link makes the pointer that leads to block i lead to p instead.
func (l *list) link(n node, i int, p region.Ptr) error {
	if i == 0 {
		n.setHead(l.kind, p)
		return nil
	}
	err := l.write(i - 1)
	if err == nil {
		l.blocks[i-1].setNext(p)
	}
	return err
}

// split moves the older half of a block's edges to a new one behind it.
func (l *list) split(index int) error {
	if err := l.write(index); err != nil {
		return err
	}
	b, err := l.alloc(edgesMax)
	if err != nil {
		return err
	}
	old := l.blocks[index]
	n, half := old.n(), old.n()/2
	b.setN(n - half)
	copy(b.edges(0), old.edges(half))
	copy(b.block[blockNext:blockNext+region.PtrBytes], old.block[blockNext:])
	clear(old.edges(half))
	old.setN(half)
	old.setNext(b.ptr)
	l.blocks = append(l.blocks[:index+1], append([]listBlock{b}, l.blocks[index+1:]...)...)
	return nil
}

// remove removes an edge. It removes the edge's block, too, if the block has no other edge; after the
// head, the next block is the head.
func (l *list) remove(index, i int) error {
	n, err := l.change(-1)
	if err != nil {
		return err
	}
	if l.blocks[index].n() > 1 {
		if err = l.write(index); err == nil {
			l.blocks[index].remove(i)
		}
		return err
	}
	var next region.Ptr
	if index+1 < len(l.blocks) {
		next = l.blocks[index+1].ptr
		if index == 0 {
			if err := l.write(1); err != nil {
				return err
			}
			l.blocks[1].setHead(true)
		}
	}
	if err := l.t.Free(l.blocks[index].ptr); err != nil {
		return err
	}
	if err := l.link(n, index, next); err != nil {
		return err
	}
	l.blocks = append(l.blocks[:index], l.blocks[index+1:]...)
	return nil
}

// free frees all blocks.
func (l *list) free() error {
	for _, b := range l.blocks {
		if err := l.t.Free(b.ptr); err != nil {
			return err
		}
	}
	return nil
}
