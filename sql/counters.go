package sql

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// flushAfter is how many rows a table may gain or lose before the machine
// writes its counter.
const flushAfter = 1 << 12

// counters keep row counts. A counter that every insert wrote would make every
// insert conflict with every other; so a machine adds up what its transactions
// did after they have committed, and writes the sum now and then, in a
// transaction of its own. After a crash a count is short of what was not
// written yet: Recount puts it right where that is much of it.
type counters struct {
	m       *txn.Machine
	mu      sync.Mutex
	pending map[region.Ptr]int64
}

func newCounters(m *txn.Machine) *counters {
	return &counters{m: m, pending: make(map[region.Ptr]int64)}
}

// add takes over what a transaction has counted.
func (c *counters) add(ctx context.Context, rows map[region.Ptr]int64) {
	for p, n := range rows {
		if p.IsNil() || n == 0 {
			continue
		}
		c.mu.Lock()
		sum := c.pending[p] + n
		c.pending[p] = sum
		due := sum >= flushAfter || sum <= -flushAfter
		if due {
			delete(c.pending, p)
		}
		c.mu.Unlock()
		if due {
			c.write(ctx, p, sum)
		}
	}
}

// write adds to the stored count. A failure goes back to what is pending,
// except for a counter that is gone with its table.
func (c *counters) write(ctx context.Context, p region.Ptr, n int64) {
	err := c.m.Run(ctx, func(t *txn.Tx) error {
		b, err := catalog.OpenNumber(t, p)
		if err == nil {
			sum := int64(binary.LittleEndian.Uint64(b)) + n
			binary.LittleEndian.PutUint64(b, uint64(max(sum, 0)))
		}
		return err
	})
	if err == nil || errors.Is(err, catalog.ErrGone) {
		return
	}
	c.mu.Lock()
	c.pending[p] += n
	c.mu.Unlock()
}

// flush writes everything that is pending.
func (c *counters) flush(ctx context.Context) {
	c.mu.Lock()
	all := c.pending
	c.pending = make(map[region.Ptr]int64)
	c.mu.Unlock()
	for p, n := range all {
		c.write(ctx, p, n)
	}
}

// read returns the count, near enough.
func (c *counters) read(p region.Ptr) uint64 {
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
