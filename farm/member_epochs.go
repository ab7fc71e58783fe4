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

// Memory that was freed can be used for objects of another size once epochs have
// ended on all machines (NSDI'14 section 3.5). The CM ends them when a machine is
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
	// quiescePatience is how long a machine waits for truncations when an epoch has ended.
	quiescePatience = 10 * time.Millisecond
)

// memberEpochs is what the CM does to make freed memory available for objects of
// other sizes, when a machine has asked it to.
type memberEpochs struct {
	lockrank.Mutex[lockrank.Epochs] // never held across a wait
	reclaims                        bool
	moreToEnd                       bool // reclaim has been called since it looked last
	givesBack                       bool
	moreToGive                      bool // it has to begin again

	// giving is held while storage is given back, and by who checks that replicas are alike.
	giving lockrank.Mutex[lockrank.Giving]
}

// handleCalls has the machine answer what others ask of it.
func (m *Member) handleCalls() {
	m.endpoint.Handle(kindAdvance, m.onAdvance)
	m.endpoint.Handle(kindReclaim, m.onReclaim)
	m.endpoint.Handle(kindMarked, m.onMarked)
	m.endpoint.Handle(kindSums, m.onSums)
}

// onEmptied causes epochs to be ended soon. It does not wait.
func (m *Member) onEmptied() { m.background.run(m.askReclaim) }

// giveBack gives the storage of what has become free back, in the background.
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
			m.allocator.GiveBack(m.ctx)
			m.epochs.giving.Unlock()
		}
	})
}

// takeMoreToGive says whether giveBack has been called since, and if not that it may begin
// another goroutine.
func (m *Member) takeMoreToGive() bool {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	more := m.epochs.moreToGive && m.ctx.Err() == nil
	m.epochs.moreToGive, m.epochs.givesBack = false, more
	return more
}

// askReclaim tells the CM that this machine is short of memory. If the message is
// lost the next one, when it is shorter still, will do.
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

// reclaimWaiting is askReclaim if some of this machine's memory waits for the end of epochs. They
// are not ended for nothing: caches of index nodes are empty after each.
func (m *Member) reclaimWaiting() {
	if m.allocator.Waiting() > 0 {
		m.askReclaim()
	}
}

func (m *Member) onReclaim(call.Peer, []byte) ([]byte, error) {
	m.reclaim()
	return nil, nil
}

// reclaim ends epochs in the background until nothing waits for that any more, or
// this machine is not the CM.
func (m *Member) reclaim() {
	m.epochs.Lock()
	isGoing := m.epochs.reclaims
	m.epochs.reclaims, m.epochs.moreToEnd = true, true
	m.epochs.Unlock()
	if isGoing {
		return
	}
	m.background.run(func() {
		waiting := 1
		for delay := reclaimDelay; m.hasToEnd(waiting); m.clock.Sleep(delay) {
			c := m.membership.Configuration()
			if c.CM != m.id {
				waiting = 0 // the next CM is asked by who is short of memory then
				continue
			}
			ended := 0
			ended, waiting = m.endEpochs(c, epochLevel(delay))
			if delay = min(2*delay, reclaimDelayMax); ended > 0 {
				delay = reclaimDelay
			}
		}
	})
}

// hasToEnd says whether epochs are to be ended: something waits for it, or reclaim has been
// called meanwhile. If not, reclaim may begin another goroutine.
func (m *Member) hasToEnd(waiting int) bool {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	m.epochs.reclaims = m.ctx.Err() == nil && (waiting > 0 || m.epochs.moreToEnd)
	m.epochs.moreToEnd = false
	return m.epochs.reclaims
}

// endEpochs ends as many epochs as make available what was freed before. It
// returns how many, and how many blocks wait for another; what keeps it from that
// is logged at the level.
func (m *Member) endEpochs(c *cluster.Configuration, level slog.Level) (ended, waiting int) {
	ctx := configurationContext{m.ctx, m, c.ID}
	waiting = 1
	patience := epochPatience
	for ended < epochsAtOnce && waiting > 0 {
		over := func(epoch uint64) (err error) {
			waiting, err = m.advance(ctx, c, epoch)
			return err
		}
		ok, err := m.txn.EndEpoch(ctx, c.Machines, patience, over)
		if err != nil && ctx.Err() == nil {
			m.log.Log(ctx, level, "epoch not ended", "error", err)
		}
		if !ok {
			break
		}
		ended++
		patience = 0
	}
	return ended, waiting
}

// advance tells all allocators what EndEpoch has found.
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

// onAdvance is advance at one machine, once all backups have applied what was
// committed here before.
func (m *Member) onAdvance(_ call.Peer, arg []byte) ([]byte, error) {
	if len(arg) != 8 {
		return nil, fmt.Errorf("farm: epoch of %d bytes", len(arg))
	}
	if err := m.txn.Quiesce(quiescePatience); err != nil {
		return nil, err
	}
	m.allocator.Advance(binary.LittleEndian.Uint64(arg))
	m.giveBack()
	return binary.LittleEndian.AppendUint64(nil, uint64(m.allocator.Waiting())), nil
}

// epochLevel is how loudly to say that an epoch has not ended when the next
// attempt is after delay: machines that are busy, or start, or fail, end it soon.
func epochLevel(delay time.Duration) slog.Level {
	if delay < reclaimDelayMax {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}
