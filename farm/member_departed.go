package farm

import (
	"errors"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
)

// A departed replica was complete when a configuration gave it to another machine. This machine lives
// on, so its memory cannot go at once: transactions of this machine may be reading it in place, and
// machines that have not applied that configuration yet READ it, and WRITE block headers to it, as
// they may. If their operations found nothing, they would take the connection for broken.
//
// So the memory stays mapped and registered, without a name, until all members have left the earlier
// configurations, and then until all operations have ended that may have begun before: two epochs
// later (see worker.Operation).
type departed struct {
	region  *region.Region
	in      cluster.ID // the configuration that has given it away
	epoch   uint64     // of this machine when it was applied
	blocks  rdma.Key   // see machine.blocks
	hasKeys bool
	release func() error
}

// depart drops a complete replica that configuration c gives to another machine.
func (m *Member) depart(c *cluster.Configuration, id region.ID) error {
	release, err := m.memory.Detach(regionName(id))
	m.replicas.Lock()
	defer m.replicas.Unlock()
	m.departed = append(m.departed, &departed{m.regions[id], c.ID, m.txn.Epoch(), m.blocks[id], true, release})
	delete(m.regions, id)
	delete(m.blocks, id)
	return err
}

// departing returns how many replicas have departed, and are not freed yet.
func (m *Member) departing() int {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	return len(m.departed)
}

// endKeys deregisters the memory of departed replicas of a region: another replica of it is about to
// be registered. By then all members have applied the configuration in which the earlier one left.
func (m *Member) endKeys(id region.ID) {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	for _, d := range m.departed {
		if d.region.ID() == id {
			m.endKeysLocked(d)
		}
	}
}

func (m *Member) endKeysLocked(d *departed) {
	if d.hasKeys {
		m.nic.Deregister(route.RegionKey(d.region.ID()))
		m.nic.Deregister(d.blocks)
		d.hasKeys = false
	}
}

// freeDeparted frees the memory of the departed replicas that nobody can be using any more.
func (m *Member) freeDeparted() {
	settled, epoch := cluster.ID(m.settledFor.Load()), m.txn.Epoch()
	if err := m.freeDepartedIf(func(d *departed) bool { return settled >= d.in && epoch >= d.epoch+2 }); err != nil {
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
		m.endKeysLocked(d)
		errs = append(errs, m.releaseLocked(d.region, d.release))
		return true
	})
	return errors.Join(errs...)
}
