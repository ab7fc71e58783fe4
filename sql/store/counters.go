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

// A machine writes a table's counter once the table has gained or lost this many rows: a
// part (1/FlushPart) of its rows, within bounds. Other machines plan by the written count:
// if it says that a table is empty, their joins read the whole table for each row of
// another table.
const (
	FlushPart  = 1 << 3
	FlushLeast = 1 << 6
	FlushMost  = 1 << 12
)

// Counters keep row counts. If every insert wrote its table's counter, all inserts would
// conflict. So a machine sums up what its transactions have counted, once they have
// committed, and writes the sum now and then in a transaction of its own. A crash loses the
// sums that are not written yet; Recount then corrects the counts of small tables.
type Counters struct {
	m       *txn.Machine
	mu      lockrank.Mutex[lockrank.Leaf]
	pending map[region.Ptr]int64
	written map[region.Ptr]int64 // the count that the machine last wrote
}

// NewCounters returns counters without counts.
func NewCounters(m *txn.Machine) *Counters {
	return &Counters{m: m, pending: make(map[region.Ptr]int64), written: make(map[region.Ptr]int64)}
}

// Add adds a committed transaction's counts.
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
			continue // not worth a write yet
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

// write adds n to the stored count. If that fails, n becomes pending again, unless the
// counter has been freed with its table.
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

// forget drops the last written and the pending count of a table that has been dropped or
// altered. The loss is as small as after a crash.
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

// Kept returns the number of tables with a remembered or pending count.
func (c *Counters) Kept() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.written) + len(c.pending)
}

// Read returns the stored count, which is approximate.
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
