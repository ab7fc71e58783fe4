package txn

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/wait"
)

// AddRegion tells the machine where a region lives; local is its replica here,
// or nil. The mapping of a region does not change within a configuration; Freeze
// takes the machine to the next.
func (m *machine) AddRegion(p cluster.Placement, local *region.Region) { m.routes.Add(p, local) }

func (m *machine) route(id region.ID) *route.Route { return m.routes.Of(id) }

// Remap sets the replicas that this machine has in configuration c. It is called only after the
// machine was frozen for c and has made room for them.
func (m *machine) Remap(c *cluster.Configuration, local func(region.ID) *region.Region) {
	m.routes.Remap(c, local, m.cfg.Clock.Now())
}

// Activate marks regions as active in a configuration: their primaries have locked every object
// that recovering transactions may still change. If config is not the current configuration,
// nothing changes.
func (m *machine) Activate(config cluster.ID, ids []region.ID) {
	m.routes.Activate(ids, func() bool { return m.config.Load() == uint32(config) })
}

func (m *machine) noRegion(a region.Addr) error {
	if err := m.gone(); err != nil {
		return err
	}
	return fmt.Errorf("%w: region %d of address %v", outcome.ErrNoRegion, a.Region(), a)
}

// locate finds the placement of the region of an address. The caller must have found no route to
// the region: it was allocated after this machine learned of the configuration.
func (m *machine) locate(a region.Addr) error {
	if m.cfg.Locate == nil || m.gone() != nil {
		return m.noRegion(a)
	}
	p, err := m.cfg.Locate(a.Region())
	if errors.Is(err, outcome.ErrConflict) || errors.Is(err, wait.ErrUnavailable) {
		return err // the configuration is changing
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", m.noRegion(a), err)
	}
	if m.route(p.Region) == nil {
		m.routes.Add(p, nil)
	}
	return nil
}

// IsPrimary reports whether this machine is the primary of the region of an address.
func (m *machine) IsPrimary(a region.Addr) bool {
	r := m.route(a.Region())
	return r != nil && r.PrimaryHere
}

// Primary returns the machine that is the primary of the region of an address.
func (m *machine) Primary(a region.Addr) (rdma.MachineID, error) {
	r := m.route(a.Region())
	if r == nil {
		if err := m.locate(a); err != nil {
			return 0, err
		}
		if r = m.route(a.Region()); r == nil {
			return 0, m.noRegion(a)
		}
	}
	return r.Primary, nil
}
