package region

import (
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// A Tenure is a time during which this machine is the primary of a region without interruption. It
// ends when a configuration makes another machine the primary; if this machine becomes the primary
// once more, that is another tenure. Every operation on the blocks of a region belongs to a tenure. The machine may
// keep the memory afterwards, as a backup's or for its next tenure, but the blocks that an operation has reserved may
// be in other use by then. So a late operation must not touch them.
type Tenure struct {
	*Region
	over atomic.Bool
	// writes is held for reading during a write to this replica's block table, or to its free blocks.
	writes lockrank.RWMutex[lockrank.Leaf]
}

// IsOver reports whether the tenure has ended.
func (t *Tenure) IsOver() bool { return t.over.Load() }

// During calls write, which writes to blocks of this machine's replica, and must not wait. If the tenure is over,
// During fails with ErrDeparted and does not call write. The tenure does not end during the call, so writes of the next
// primary come after it.
func (t *Tenure) During(write func()) error {
	t.writes.RLock()
	defer t.writes.RUnlock()
	if t.over.Load() && !sabotage.LateBlocks.Skipped() {
		return fmt.Errorf("%w: region %d", ErrDeparted, t.id)
	}
	write()
	return nil
}

// end ends the tenure, and waits for the writes that have begun.
func (t *Tenure) end() {
	t.over.Store(!sabotage.Dropped.Skipped())
	t.writes.Lock()
	defer t.writes.Unlock()
}
