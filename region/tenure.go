package region

import (
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
)

// A Tenure is a time during which this machine is the primary of a region without interruption. It
// ends when a configuration makes another machine the primary; if this machine becomes the primary
// once more, that is another tenure. Whatever is done to the blocks of a region belongs to a tenure:
// the memory may stay, as a backup's or as the next tenure's, and what is late must not touch it,
// since the blocks are not those that were reserved.
type Tenure struct {
	*Region
	over atomic.Bool
	// writes is held for reading during a write to this replica's block table, or to its free blocks.
	writes lockrank.RWMutex[lockrank.Leaf]
}

// IsOver reports whether the tenure has ended.
func (t *Tenure) IsOver() bool { return t.over.Load() }

// During calls write, which writes to blocks of this machine's replica, and must not wait. It fails
// with ErrDeparted, without the call, if the tenure is over. The tenure does not end meanwhile: what
// the next primary sends comes after all that During has written.
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
