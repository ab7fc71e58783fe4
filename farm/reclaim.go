package farm

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
)

// Memory that was freed can be used for objects of another size once epochs have
// ended on all machines (NSDI'14 section 3.5). They are ended when a machine is
// short of memory, or much has been freed, and from then on every now and then, until
// nothing waits for that any more. Then its storage is given back.

const (
	// epochPatience is how long one end of an epoch may wait for transactions.
	epochPatience = 2 * time.Millisecond
	// reclaimDelay and reclaimDelayMax are the shortest and the longest time
	// from one attempt to the next.
	reclaimDelay    = 5 * time.Millisecond
	reclaimDelayMax = time.Second
	// epochsAtOnce is how many epochs make memory available that was freed
	// before the first, if nothing is open.
	epochsAtOnce = 6
)

// epochs is the state of reclaiming.
type epochs struct {
	sync.Mutex
	timer  clock.Timer
	delay  time.Duration
	closed bool
	// emptied says that onEmptied has begun what is not done yet.
	emptied atomic.Bool
}

// onEmptied has epochs ended soon.
func (c *Cluster) onEmptied() {
	if c.epochs.emptied.CompareAndSwap(false, true) {
		c.cfg.Clock.AfterFunc(reclaimDelay, func() {
			c.epochs.emptied.Store(false) // what is emptied from now on may be too late for this time
			c.cfg.Clock.Lock(&c.epochs.Mutex)
			defer c.epochs.Unlock()
			c.reclaimLocked()
		})
	}
}

// reclaim ends epochs now, unless that is being done.
func (c *Cluster) reclaim() {
	if c.epochs.TryLock() {
		c.reclaimLocked()
		c.epochs.Unlock()
	}
}

func (c *Cluster) onReclaimTimer() {
	c.cfg.Clock.Lock(&c.epochs.Mutex)
	defer c.epochs.Unlock()
	c.epochs.timer = nil
	c.reclaimLocked()
}

// stopReclaiming returns when no epoch is being ended, and none will be.
func (c *Cluster) stopReclaiming() {
	c.cfg.Clock.Lock(&c.epochs.Mutex)
	defer c.epochs.Unlock()
	c.epochs.closed = true
	if c.epochs.timer != nil {
		c.epochs.timer.Stop()
	}
}

// reclaimLocked ends epochs until nothing waits for it, or something is open, and
// then sees to it that it is tried again.
func (c *Cluster) reclaimLocked() {
	if c.epochs.closed {
		return
	}
	ended := 0
	patience := epochPatience
	for c.waiting() > 0 && ended < epochsAtOnce && c.endEpoch(patience) {
		ended++
		patience = 0
	}
	if ended > 0 {
		for _, m := range c.machines {
			m.allocator.GiveBack(context.Background())
		}
	}
	if c.waiting() == 0 {
		return
	}
	if c.epochs.delay = min(2*c.epochs.delay, reclaimDelayMax); ended > 0 || c.epochs.delay == 0 {
		c.epochs.delay = reclaimDelay
	}
	if c.epochs.timer == nil {
		c.epochs.timer = c.cfg.Clock.AfterFunc(c.epochs.delay, c.onReclaimTimer)
	}
}

// waiting is how many blocks the end of epochs would make available.
func (c *Cluster) waiting() int {
	n := 0
	for _, m := range c.machines {
		n += m.allocator.Waiting()
	}
	return n
}

func (c *Cluster) endEpoch(patience time.Duration) bool {
	ids := make([]rdma.MachineID, len(c.machines))
	for i, m := range c.machines {
		ids[i] = m.id
	}
	ended, err := c.machines[0].txn.EndEpoch(context.Background(), ids, patience, c.advance)
	if err != nil {
		c.cfg.Logger.Log(context.Background(), epochLevel(c.epochs.delay), "epoch not ended", "error", err)
	}
	return ended
}

// epochLevel is how loudly to say that an epoch has not ended when the next
// attempt is after delay: machines that are busy, or start, or fail, end it soon.
func epochLevel(delay time.Duration) slog.Level {
	if delay < reclaimDelayMax {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// advance tells the allocators what EndEpoch has found, once all backups have
// applied what was committed before.
func (c *Cluster) advance(epoch uint64) error {
	for _, m := range c.machines {
		if err := m.txn.Quiesce(quiescePatience); err != nil {
			return err
		}
	}
	for _, m := range c.machines {
		m.allocator.Advance(epoch)
	}
	return nil
}

// quiescePatience is how long advance waits for truncations.
const quiescePatience = 10 * time.Millisecond
