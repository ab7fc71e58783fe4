package farm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// grow asks the CM to allocate a region with this machine as its primary. It gives up when the
// configuration changes: the caller holds the allocator's lock, which recovery needs.
func (m *Member) grow(near region.ID) (*region.Region, error) {
	m.background.run(m.reclaimWaiting)
	ctx := m.patientContext()
	p, err := m.membership.Allocate(ctx, m.id, near)
	switch {
	case err == nil:
	case ctx.Err() != nil, membership.IsPassing(err):
		return nil, ctx.passing(err)
	case errors.Is(err, cluster.ErrNoRoom):
		return nil, fmt.Errorf("%w: %w", region.ErrFull, err)
	default:
		return nil, err
	}
	r := m.replica(p.Region)
	if r == nil {
		return nil, fmt.Errorf("%w: region %d has been allocated and is not here", outcome.ErrLost, p.Region)
	}
	if !m.txn.IsPrimary(region.MakeAddr(p.Region, 0)) {
		// The configuration that is being applied does not contain the region: the next one does,
		// and attaches it.
		return nil, fmt.Errorf("%w: region %d has been allocated meanwhile", outcome.ErrLost, p.Region)
	}
	m.log.Info("region allocated", "region", p.Region, "primary", p.Primary, "backups", p.Backups)
	return r, nil
}

// locate asks the CM for a region's placement.
func (m *Member) locate(id region.ID) (cluster.Placement, error) {
	ctx := m.patientContext()
	p, err := m.membership.Placement(ctx, id)
	if err == nil || errors.Is(err, membership.ErrNoRegion) || errors.Is(err, membership.ErrLost) {
		return p, err
	}
	// The configuration is changing, maybe to one without this machine.
	return p, ctx.passing(err)
}

// colocated reports whether two regions have the same replicas.
func (m *Member) colocated(a, b region.ID) bool {
	c := m.membership.Configuration()
	pa, okA := c.Placement(a)
	pb, okB := c.Placement(b)
	return okA && okB && pa.IsAvailable() && pb.IsAvailable() && pa.Primary == pb.Primary && slices.Equal(pa.Backups, pb.Backups)
}

// rootBytes is the payload of the root object.
const rootBytes = 1008

// openRoot finds the root object, or makes it. Making it needs as many machines as a region has
// replicas. If several machines make one at the same time, the CM chooses one object, and the others
// are freed. A machine keeps proposing the same object until it gets an answer.
func (m *Member) openRoot(ctx context.Context) error {
	var made region.Ptr
	for {
		err := m.tryRoot(ctx, &made)
		if err == nil {
			return nil
		}
		if over := m.membership.Err(); over != nil {
			return over // this life has ended, and err only follows from that
		}
		isPassing := errors.Is(err, cluster.ErrNoRoom) || errors.Is(err, outcome.ErrConflict) || errors.Is(err, wait.ErrUnavailable) ||
			errors.Is(err, outcome.ErrInDoubt) || membership.IsPassing(err)
		if !isPassing || ctx.Err() != nil {
			return err
		}
		m.log.Debug("no root object yet", "machine", m.id, "error", err)
		m.clock.Sleep(rootRetry)
	}
}

// rootRetry is the time between two attempts to find the root object or to make
// it.
const rootRetry = 5 * time.Millisecond

// tryRoot makes one attempt to find or make the root object. *made is an object that this machine has
// made and proposed, nil if none; it stays set while the CM has not answered. If the CM has chosen
// another object, tryRoot frees *made.
func (m *Member) tryRoot(ctx context.Context, made *region.Ptr) (err error) {
	if m.root, err = m.membership.Root(ctx, *made); err != nil {
		return err
	}
	switch {
	case m.root.IsNil():
		*made = m.leftRoot()
		if made.IsNil() {
			*made, err = m.makeRoot(ctx)
		}
		if err == nil {
			m.root, err = m.membership.Root(ctx, *made)
		}
		if err != nil || m.root == *made {
			return err
		}
	case made.IsNil() || m.root == *made:
		return nil
	}
	// leftRoot may have found another machine's proposal, which that machine may have freed by now.
	if _, err := m.txn.Read(*made, make([]byte, made.Capacity())); !errors.Is(err, region.ErrFreed) {
		if err := m.txn.Run(ctx, func(t *txn.Tx) error { return t.Free(*made) }); err != nil {
			return err
		}
	}
	*made = region.Ptr{}
	return nil
}

// leftRoot returns a root object that was made but is not yet known to the CM, for instance because
// the life that made it was killed; nil if there is none. As long as the instance has no root, any
// object large enough must be one.
func (m *Member) leftRoot() region.Ptr {
	for _, id := range m.replicaIDs() {
		r := m.replica(id)
		if r == nil || !m.txn.IsPrimary(region.MakeAddr(id, 0)) {
			continue
		}
		for p, h := range r.Objects {
			if h.Allocated() && p.Capacity() >= rootBytes {
				return p
			}
		}
	}
	return region.Ptr{}
}

// makeRoot makes an object that can become the root.
func (m *Member) makeRoot(ctx context.Context) (made region.Ptr, err error) {
	err = m.txn.Run(ctx, func(t *txn.Tx) (err error) {
		made, _, err = t.Alloc(rootBytes, 0)
		return err
	})
	if err != nil {
		made = region.Ptr{}
	}
	return made, err
}
