package worker

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// AddRegion tells the machine where a region lives; local is its replica here,
// or nil. The mapping of a region does not change within a configuration; Remap
// replaces it in the next one.
func (m *Machine) AddRegion(p cluster.Placement, local *region.Region) { m.Routes.Add(p, local) }

// Route returns the route to a region, or nil if this machine does not know the region.
func (m *Machine) Route(id region.ID) *route.Route { return m.Routes.Of(id) }

// Remap sets the replicas that this machine has in configuration c. It is called only after the
// machine was frozen for c and has made room for them.
func (m *Machine) Remap(c *cluster.Configuration, local func(region.ID) *region.Region) {
	m.speaks.Store(uint32(c.Version()))
	m.Routes.Remap(c, local, m.cfg.Clock.Now())
}

// Activate marks regions as active in a configuration: their primaries have locked every object
// that recovering transactions may still change. If config is not the current configuration,
// nothing changes.
func (m *Machine) Activate(config cluster.ID, ids []region.ID) {
	m.Routes.Activate(ids, func() bool { return m.config.Load() == uint32(config) })
}

func (m *Machine) noRegion(a region.Addr) error {
	if err := m.Gone(); err != nil {
		return err
	}
	return fmt.Errorf("%w: region %d of address %v", outcome.ErrNoRegion, a.Region(), a)
}

// Locate finds the placement of the region of an address. The caller must have found no route to
// the region: it was allocated after this machine learned of the configuration.
func (m *Machine) Locate(a region.Addr) error {
	if m.cfg.Locate == nil || m.Gone() != nil {
		return m.noRegion(a)
	}
	before := m.config.Load()
	p, err := m.cfg.Locate(a.Region())
	if errors.Is(err, outcome.ErrConflict) || errors.Is(err, wait.ErrUnavailable) {
		return err // the configuration is changing
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", m.noRegion(a), err)
	}
	m.Routes.AddMissing(p, func() bool { return m.config.Load() == before || sabotage.LocateCurrent.Skipped() })
	return nil
}

// IsPrimary reports whether this machine is the primary of the region of an address.
func (m *Machine) IsPrimary(a region.Addr) bool {
	r := m.Route(a.Region())
	return r != nil && r.PrimaryHere
}

// IsBlocked reports whether an access to the region of an address would wait now, for its recovery.
func (m *Machine) IsBlocked(a region.Addr) bool {
	r := m.Route(a.Region())
	return r != nil && r.State == route.Blocked
}

// Primary returns the machine that is the primary of the region of an address.
func (m *Machine) Primary(a region.Addr) (rdma.MachineID, error) {
	r := m.Route(a.Region())
	if r == nil {
		if err := m.Locate(a); err != nil {
			return 0, err
		}
		if r = m.Route(a.Region()); r == nil {
			return 0, m.noRegion(a)
		}
	}
	return r.Primary, nil
}
