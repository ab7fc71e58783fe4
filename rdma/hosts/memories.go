package hosts

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// Memories is the registered memory of a machine. It has a table of all copiers: code that
// takes memory away waits for the copy that each of them has in progress.
type Memories struct {
	registered atomic.Pointer[map[rdma.Key]*nvram.Memory]
	mu         struct {
		lockrank.Mutex[lockrank.Leaf]
		copiers map[*Copier]struct{}
		closed  bool
	}
}

// NewMemories returns an empty table.
func NewMemories() *Memories {
	t := new(Memories)
	t.registered.Store(&map[rdma.Key]*nvram.Memory{})
	t.mu.copiers = make(map[*Copier]struct{})
	return t
}

// Register lets copiers reach m under k. It fails with rdma.ErrKeyTaken and rdma.ErrClosed.
func (t *Memories) Register(k rdma.Key, m *nvram.Memory) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	registered := *t.registered.Load()
	if t.mu.closed {
		return rdma.ErrClosed
	}
	if registered[k] != nil {
		return fmt.Errorf("%w: %#x", rdma.ErrKeyTaken, uint64(k))
	}
	next := maps.Clone(registered)
	next[k] = m
	t.registered.Store(&next)
	return nil
}

// Deregister removes the registration of k, if there is one. Once it has returned, no copier touches the memory.
func (t *Memories) Deregister(k rdma.Key) {
	t.mu.Lock()
	next := maps.Clone(*t.registered.Load())
	delete(next, k)
	t.registered.Store(&next)
	copiers := slices.Collect(maps.Keys(t.mu.copiers))
	t.mu.Unlock()
	for _, c := range copiers {
		c.settle()
	}
}

// Close removes all registrations, and refuses further ones. The copiers must have ended.
func (t *Memories) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.closed = true
	t.registered.Store(&map[rdma.Key]*nvram.Memory{})
}

// Copier returns a copier, which the table holds until End.
func (t *Memories) Copier() *Copier {
	c := &Copier{in: t}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.copiers[c] = struct{}{}
	return c
}

// A Copier carries out operations in the memory of this machine, one at a time.
type Copier struct {
	in    *Memories
	mu    lockrank.Mutex[lockrank.Leaf]
	ended bool // the copier copies nothing more
}

// targetLocked returns the memory of an operation, or fails as Check does.
func (c *Copier) targetLocked(k rdma.Key, off uint64, n int) (*nvram.Memory, error) {
	if c.ended {
		return nil, rdma.ErrClosed
	}
	m := (*c.in.registered.Load())[k]
	if m == nil {
		return nil, rdma.ErrKey
	}
	if size := m.Size(); !rdma.Aligned(off, n) || off > size || uint64(n) > size-off {
		return nil, rdma.ErrRange
	}
	return m, nil
}

// Check reports why an operation cannot be carried out: rdma.ErrClosed, rdma.ErrKey or rdma.ErrRange.
func (c *Copier) Check(k rdma.Key, off uint64, n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.targetLocked(k, off, n)
	return err
}

// Write stores src in rising order, as rdma.StoreLines does, or fails as Check does.
func (c *Copier) Write(k rdma.Key, off uint64, src []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.targetLocked(k, off, len(src))
	if err == nil {
		rdma.StoreLines(m, off, src)
	}
	return err
}

// Read fills dst, line by line, or fails as Check does.
func (c *Copier) Read(k rdma.Key, off uint64, dst []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.targetLocked(k, off, len(dst))
	if err == nil {
		m.CopyOutBare(dst, off)
	}
	return err
}

// End waits for the copy in progress, if there is one. After that the copier copies nothing more.
func (c *Copier) End() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	delete(c.in.mu.copiers, c)
}

// settle waits for the copy in progress, if there is one.
func (c *Copier) settle() {
	c.mu.Lock()
	defer c.mu.Unlock()
}
