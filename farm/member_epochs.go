package farm

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma/call"
)

// Freed memory can be used for objects of another size once epochs have ended on all machines
// (NSDI'14 section 3.5). When a machine is short of memory or has freed much, or replicas have
// moved away from it, the CM ends epochs until no freed memory waits for the end of one. After
// each epoch, machines give the storage of free blocks back to the system.

const (
	// epochPatience is how long the attempt to end one epoch waits for transactions.
	epochPatience = 2 * time.Millisecond
	// reclaimDelay and reclaimDelayMax are the shortest and the longest time
	// from one attempt to the next.
	reclaimDelay    = 5 * time.Millisecond
	reclaimDelayMax = time.Second
	// epochsAtOnce is how many epochs have to end until memory that was freed before the first of
	// them is available again, if no transaction holds one open.
	epochsAtOnce = 6
	// quiescePatience is how long a machine waits for truncations after an epoch has ended.
	quiescePatience = 10 * time.Millisecond
)

// memberEpochs is the state of two background goroutines: reclaim's, which ends epochs at the CM, and
// giveBack's, which frees storage.
type memberEpochs struct {
	lockrank.Mutex[lockrank.Epochs]      // never held across a wait
	reclaims                        bool // reclaim's goroutine runs
	moreToEnd                       bool // reclaim has been called since takeMoreToEnd last checked
	givesBack                       bool // giveBack's goroutine runs
	awaitsDeparted                  bool // awaitDeparted's goroutine runs
	moreToGive                      bool // giveBack has been called since takeMoreToGive last checked

	// giving is held while storage is freed, and while replicas are compared.
	giving lockrank.Mutex[lockrank.Giving]
}

// handleCalls registers the handlers of the other machines' calls.
func (m *Member) handleCalls() {
	m.endpoint.Handle(kindAdvance, m.onAdvance)
	m.endpoint.Handle(kindReclaim, m.onReclaim)
	m.endpoint.Handle(kindMarked, m.onMarked)
	m.endpoint.Handle(kindSums, m.onSums)
}

// onEmptied is called when blocks have become empty. It asks the CM to end epochs, without waiting.
func (m *Member) onEmptied() { m.background.run(m.askReclaim) }

// giveBack frees the storage of blocks that have become free, in the background.
func (m *Member) giveBack() {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	m.epochs.moreToGive = true
	if m.epochs.givesBack {
		return
	}
	m.epochs.givesBack = true
	m.background.run(func() {
		for m.takeMoreToGive() {
			m.clock.Lock(&m.epochs.giving)
			m.freeDeparted()
			m.allocator.GiveBack(m.ctx)
			m.epochs.giving.Unlock()
		}
	})
}

// takeMoreToGive reports whether giveBack has been called since the last check. If not, the goroutine
// must end, and the next giveBack starts another.
func (m *Member) takeMoreToGive() bool {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	more := m.epochs.moreToGive && m.ctx.Err() == nil
	m.epochs.moreToGive, m.epochs.givesBack = false, more
	return more
}

// askReclaim tells the CM that this machine is short of memory. A lost message is not sent again: the
// machine asks once more when it needs more memory, and when recovery is settled.
func (m *Member) askReclaim() {
	c := m.membership.Configuration()
	if c.CM == m.id {
		m.reclaim()
		return
	}
	if cm, ok := c.Member(c.CM); ok {
		_ = m.endpoint.Notify(call.Peer{Machine: c.CM, Incarnation: cm.Incarnation}, kindReclaim, nil)
	}
}

// reclaimWaiting calls askReclaim if some of this machine's memory waits for the end of epochs.
// Epochs should not end needlessly: each end empties the caches of index nodes.
func (m *Member) reclaimWaiting() {
	if m.allocator.Waiting()+m.departing() > 0 {
		m.askReclaim()
	}
}

func (m *Member) onReclaim(call.Peer, []byte) ([]byte, error) {
	m.reclaim()
	return nil, nil
}

// reclaim ends epochs in the background, as long as freed memory waits for their end and this
// machine is the CM.
func (m *Member) reclaim() {
	m.epochs.Lock()
	isRunning := m.epochs.reclaims
	m.epochs.reclaims, m.epochs.moreToEnd = true, true
	m.epochs.Unlock()
	if isRunning {
		return
	}
	m.background.run(func() {
		waiting, delay := 1, reclaimDelay // the first try finds out how many blocks really wait
		for m.takeMoreToEnd(waiting) {
			waiting, delay = m.reclaimOnce(delay)
			m.clock.Sleep(delay)
		}
	})
}

// reclaimOnce ends epochs if this machine is the CM. It returns how many blocks wait for the end
// of another epoch, and the time until the next attempt, which grows while no epoch ends.
func (m *Member) reclaimOnce(delay time.Duration) (waiting int, next time.Duration) {
	c := m.membership.Configuration()
	if c.CM != m.id {
		return 0, delay // machines that are short of memory ask the next CM
	}
	ended, waiting := m.endEpochs(c, epochLogLevel(delay))
	if ended > 0 {
		return waiting, reclaimDelay
	}
	return waiting, min(2*delay, reclaimDelayMax)
}

// takeMoreToEnd reports whether epochs have to end: blocks wait for it, or reclaim has been called since
// the last check. If not, the goroutine must end, and the next reclaim starts another.
func (m *Member) takeMoreToEnd(waiting int) bool {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	m.epochs.reclaims = m.ctx.Err() == nil && (waiting > 0 || m.epochs.moreToEnd)
	m.epochs.moreToEnd = false
	return m.epochs.reclaims
}

// endEpochs ends epochs until no freed memory waits for another to end, but at most epochsAtOnce. It
// returns the number of epochs ended, and of blocks that still wait. It logs a failure at the given
// level.
func (m *Member) endEpochs(c *cluster.Configuration, level slog.Level) (ended, waiting int) {
	ctx := configurationContext{m.ctx, m, c.ID}
	waiting = 1
	patience := epochPatience
	for ended < epochsAtOnce && waiting > 0 {
		advance := func(epoch uint64) (err error) { // called by EndEpoch once the epoch is safe
			waiting, err = m.advance(ctx, c, epoch)
			return err
		}
		ok, err := m.txn.EndEpoch(ctx, c.Machines, patience, advance)
		if err != nil && ctx.Err() == nil {
			m.log.Log(ctx, level, "epoch not ended", "error", err)
		}
		if !ok {
			break
		}
		ended++
		patience = 0 // the first epoch has waited for open transactions: do not wait again
	}
	return ended, waiting
}

// advance tells every machine's allocator that an epoch has ended, and returns how many blocks, and replicas
// that have departed, wait for the end of another epoch.
func (m *Member) advance(ctx configurationContext, c *cluster.Configuration, epoch uint64) (waiting int, err error) {
	arg := binary.LittleEndian.AppendUint64(nil, epoch)
	for i, x := range c.Machines {
		reply, err := m.endpoint.Call(ctx, call.Peer{Machine: x, Incarnation: c.Incarnation[i]}, kindAdvance, arg)
		if err != nil {
			return 0, err
		}
		if len(reply) != 8 {
			return 0, fmt.Errorf("farm: reply about an epoch of %d bytes from machine %d", len(reply), x)
		}
		waiting += int(binary.LittleEndian.Uint64(reply))
	}
	return waiting, nil
}

// onAdvance is one machine's part of advance. It first waits until all backups have applied the
// transactions that were committed here before.
func (m *Member) onAdvance(_ call.Peer, arg []byte) ([]byte, error) {
	if len(arg) != 8 {
		return nil, fmt.Errorf("farm: epoch of %d bytes", len(arg))
	}
	if err := m.txn.Quiesce(quiescePatience); err != nil {
		return nil, err
	}
	m.allocator.Advance(binary.LittleEndian.Uint64(arg))
	m.giveBack()
	return binary.LittleEndian.AppendUint64(nil, uint64(m.allocator.Waiting()+m.departedWaiting())), nil
}

// epochLogLevel returns the level at which to log that an epoch has not ended. Before the delay has
// grown to its maximum, the reason is most likely a busy, starting or failing machine, and passes by
// itself.
func epochLogLevel(delay time.Duration) slog.Level {
	if delay < reclaimDelayMax {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}
