package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// How many rows a table may gain or lose before the machine writes its counter: a
// part of what it has, within bounds. Other machines plan by what is written; to
// them a table that says it is empty is one to be read as a whole for each row of
// another.
const (
	FlushPart  = 1 << 3
	FlushLeast = 1 << 6
	FlushMost  = 1 << 12
)

// Counters keep row counts. A counter that every insert wrote would make every
// insert conflict with every other; so a machine adds up what its transactions
// did after they have committed, and writes the sum now and then, in a
// transaction of its own. After a crash a count is short of what was not
// written yet: Recount puts it right where that is much of it.
type Counters struct {
	m       *txn.Machine
	mu      lockrank.Mutex[lockrank.Leaf]
	pending map[region.Ptr]int64
	written map[region.Ptr]int64 // what the machine wrote last
}

// NewCounters returns counters of a machine that has counted nothing.
func NewCounters(m *txn.Machine) *Counters {
	return &Counters{m: m, pending: make(map[region.Ptr]int64), written: make(map[region.Ptr]int64)}
}

// Add takes over what a transaction has counted.
func (c *Counters) Add(ctx context.Context, rows map[region.Ptr]int64) {
	c.mu.Lock()
	var due map[region.Ptr]int64
	for p, n := range rows { // any order
		if p.IsNil() || n == 0 {
			continue
		}
		sum := c.pending[p] + n
		c.pending[p] = sum
		if limit := min(max(c.written[p]/FlushPart, FlushLeast), FlushMost); -limit < sum && sum < limit {
			continue
		}
		delete(c.pending, p)
		if due == nil {
			due = make(map[region.Ptr]int64)
		}
		due[p] = sum
	}
	c.mu.Unlock()
	if due != nil {
		c.writeAll(ctx, due)
	}
}

// writeAll writes one count after the other, in an order that a simulator can repeat.
func (c *Counters) writeAll(ctx context.Context, all map[region.Ptr]int64) {
	for _, p := range slices.SortedFunc(maps.Keys(all), func(a, b region.Ptr) int { return cmp.Compare(a.Addr, b.Addr) }) {
		c.write(ctx, p, all[p])
	}
}

// write adds to the stored count. A failure goes back to what is pending,
// except for a counter that is gone with its table.
func (c *Counters) write(ctx context.Context, p region.Ptr, n int64) {
	var sum int64
	err := c.m.Run(ctx, func(t *txn.Tx) error {
		b, err := catalog.OpenNumber(t, p)
		if err == nil {
			sum = max(int64(binary.LittleEndian.Uint64(b))+n, 0)
			binary.LittleEndian.PutUint64(b, uint64(sum))
		}
		return err
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.written[p] = sum
	case errors.Is(err, catalog.ErrGone):
		delete(c.written, p)
	default:
		c.pending[p] += n
	}
}

// forget forgets what the machine wrote last, and what is pending if that is not to be
// written any more: of a table that is gone, or has been altered. It is as much as a machine
// loses that fails.
func (c *Counters) forget(p region.Ptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.written, p)
	delete(c.pending, p)
}

// Flush writes everything that is pending.
func (c *Counters) Flush(ctx context.Context) {
	c.mu.Lock()
	all := c.pending
	c.pending = make(map[region.Ptr]int64)
	c.mu.Unlock()
	c.writeAll(ctx, all)
}

// Kept returns of how many tables something is remembered or yet to be written.
func (c *Counters) Kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.written) + len(c.pending)
}

// Read returns the count, near enough.
func (c *Counters) Read(p region.Ptr) uint64 {
	if p.IsNil() {
		return 0
	}
	buf := make([]byte, p.Capacity())
	if _, err := c.m.Read(p, buf); err != nil {
		return 0
	}
	c.mu.Lock()
	n := int64(binary.LittleEndian.Uint64(buf)) + c.pending[p]
	c.mu.Unlock()
	return uint64(max(n, 0))
}
