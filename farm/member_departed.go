package farm

import (
	"errors"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
)

// A departed replica was complete when a configuration gave it to another machine. This machine
// lives on, so the replica's memory cannot go at once. Transactions of this machine may be
// reading it in place. Machines that have not applied that configuration yet may READ it, and
// WRITE block headers to it. If their operations found nothing, they would take the connection
// for broken.
//
// So the memory stays mapped and registered until all members have left the earlier configurations,
// and then until all operations have ended that may have begun before: two epochs later (see
// worker.Operation).
//
// It keeps its name until recovery is settled here, or another replica of the region takes its place.
// As long as the configuration may be unused, a memory that it has departed from is one of those in
// cluster.Placement.Before: the next configuration may make the region wait for it.
type departed struct {
	region  *region.Region
	in      cluster.ID   // the configuration that has given it away
	epoch   uint64       // this machine's epoch when that configuration was applied
	isRead  bool         // the replica is registered under the region's key
	blocks  rdma.Key     // see Member.blocks; 0 if it is not registered any more
	isNamed bool         // a later life would find it
	release func() error // nil until an attempt was made to take its name
}

// loseComplete makes a complete replica depart that configuration c gives to another machine.
func (m *Member) loseComplete(c *cluster.Configuration, id region.ID) {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	_, isUnread := m.unread[id] // then the replica was filled in a configuration that was never committed here
	m.departed = append(m.departed, &departed{m.regions[id], c.ID, m.txn.Epoch(), !isUnread, m.blocks[id], true, nil})
	delete(m.regions, id)
	delete(m.blocks, id)
	delete(m.unread, id)
}

// hasDepartedNamed reports whether a departed replica of a region still has its name.
func (m *Member) hasDepartedNamed(id region.ID) bool {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	return slices.ContainsFunc(m.departed, func(d *departed) bool { return d.region.ID() == id && d.isNamed })
}

// detachDeparted takes the names from the departed replicas for which isDue returns true.
func (m *Member) detachDeparted(isDue func(*departed) bool) error {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	var errs []error
	for _, d := range m.departed {
		if d.isNamed && isDue(d) {
			errs = append(errs, m.detachLocked(d))
		}
	}
	return errors.Join(errs...)
}

// detachLocked takes the name from a departed replica, and keeps the function that frees its memory.
func (m *Member) detachLocked(d *departed) error {
	release, err := m.memory.Detach(regionName(d.region.ID()))
	if d.release == nil {
		d.release = release
	}
	d.isNamed = err != nil // if it failed, the next call tries once more
	return err
}

// settling is called when recovery for a configuration is about to be settled here. It takes
// the names of departed replicas before it records that in the memory: a later life assumes
// that each replica which it finds has everything up to the last settled configuration.
func (m *Member) settling(in cluster.ID) {
	if err := m.detachDeparted(func(d *departed) bool { return d.in <= in }); err != nil {
		m.log.Warn("memory of replicas that have moved away keeps its name: this machine counts as older than it is when it starts again", "machine", m.id, "error", err)
		return
	}
	m.identity.Store(identitySettled, uint64(in))
}

// departing returns how many replicas have departed, and are not freed yet.
func (m *Member) departing() int {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	return len(m.departed)
}

// endReadsLocked ends READs of a departed replica.
func (m *Member) endReadsLocked(d *departed) {
	if d.isRead {
		m.nic.Deregister(route.RegionKey(d.region.ID()))
		d.isRead = false
	}
}

// endBlocksKeyLocked frees the key under which the replica in placement p is about to receive
// block headers, if a departed replica has that key. This is so if the primary has stayed the
// same.
func (m *Member) endBlocksKeyLocked(p cluster.Placement) {
	for _, d := range m.departed {
		if d.region.ID() == p.Region && d.blocks == route.BlocksKey(p) {
			m.nic.Deregister(d.blocks)
			d.blocks = 0
		}
	}
}

// departedWaiting returns how many departed replicas wait for the end of an epoch. The others
// wait for recovery, or only for the goroutine that frees them.
func (m *Member) departedWaiting() (n int) {
	settled, epoch := cluster.ID(m.settledFor.Load()), m.txn.Epoch()
	m.replicas.Lock()
	defer m.replicas.Unlock()
	for _, d := range m.departed {
		if settled >= d.in && epoch < d.epoch+departedEpochs {
			n++
		}
	}
	return n
}

// departedEpochs is how many epochs must end before every operation that may use a departed
// replica has ended.
const departedEpochs = 2

// freeDeparted frees the memory of the departed replicas that nobody can be using any more.
func (m *Member) freeDeparted() {
	settled, epoch := cluster.ID(m.settledFor.Load()), m.txn.Epoch()
	isUnused := func(d *departed) bool {
		isSettled := settled >= d.in || sabotage.DepartedSettled.Skipped()
		return isSettled && !d.isNamed && (epoch >= d.epoch+departedEpochs || sabotage.DepartedEpochs.Skipped())
	}
	if err := m.freeDepartedIf(isUnused); err != nil {
		m.log.Warn("memory of replicas that have moved away not given back", "machine", m.id, "error", err)
	}
}

func (m *Member) freeDepartedIf(isUnused func(*departed) bool) error {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	var errs []error
	m.departed = slices.DeleteFunc(m.departed, func(d *departed) bool {
		if !isUnused(d) {
			return false
		}
		errs = append(errs, m.endDepartedLocked(d))
		return true
	})
	return errors.Join(errs...)
}

// endDepartedLocked frees a departed replica. If the replica still has its name, its memory
// stays for the next life.
func (m *Member) endDepartedLocked(d *departed) error {
	m.endReadsLocked(d)
	if d.blocks != 0 {
		m.nic.Deregister(d.blocks)
	}
	if d.release == nil {
		return nil
	}
	return m.releaseLocked(d.region, d.release)
}

// departedPoll and departedPollMax are the shortest and the longest time after which awaitDeparted asks
// again.
const (
	departedPoll    = 50 * time.Millisecond
	departedPollMax = 5 * time.Second
)

// awaitDeparted makes the CM end epochs until the memory of all departed replicas is freed. It
// asks again, since its message may be lost, or come to a machine that is no longer the CM. An
// instance that does nothing has no other reason to end epochs.
func (m *Member) awaitDeparted() {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	if m.epochs.awaitsDeparted {
		return
	}
	m.epochs.awaitsDeparted = true
	m.background.run(func() {
		for delay := departedPoll; m.mustAwaitDeparted(); delay = min(2*delay, departedPollMax) {
			m.reclaimWaiting()
			m.departure.WaitFor(delay)
		}
	})
}

// mustAwaitDeparted reports whether replicas have departed and are not freed, and this life of the
// machine goes on. If not, it notes that the goroutine ends, so that the next awaitDeparted starts another.
func (m *Member) mustAwaitDeparted() bool {
	m.epochs.Lock()
	defer m.epochs.Unlock()
	m.epochs.awaitsDeparted = m.ctx.Err() == nil && m.departing() > 0
	return m.epochs.awaitsDeparted
}
