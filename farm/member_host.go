package farm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/route"
)

// A host is the view of a Member that implements membership.Host.
type host Member

var _ membership.Host = (*host)(nil)

func (h *host) member() *Member { return (*Member)(h) }

// Freeze implements membership.Host. Regions that get another primary leave the allocator first: what
// it reserves in the new configuration must not lie in them (see region.Allocator.Alloc). They leave
// while the recovery of the last configuration may still run, which attaches regions; but none moves,
// or is handed over, before that recovery is settled.
func (h *host) Freeze(c *cluster.Configuration) {
	h.allocator.Keep(func(id region.ID) (isOurs, goesOn bool) { return h.member().keeps(c, id) })
	h.transactions.Freeze(c)
}

// keeps reports whether c makes this machine the primary of a region (isOurs), and whether the
// machine has been so without interruption (goesOn). There was an interruption if another
// machine was the primary in a configuration between the last one that this machine applied and
// c.
func (m *Member) keeps(c *cluster.Configuration, id region.ID) (isOurs, goesOn bool) {
	if id >= c.NextRegion { // made in c itself, in a later revision
		return true, true
	}
	p, ok := c.Placement(id)
	was := m.txn.Route(id)
	isOurs = ok && p.IsPrimary(m.id)
	return isOurs, was != nil && (was.LastPrimaryChange == p.LastPrimaryChange || sabotage.TenureGoesOn.Skipped())
}

// Apply implements membership.Host.
func (h *host) Apply(c *cluster.Configuration) (refused []region.ID, err error) {
	m := h.member()
	m.leadLife() // before anything in the memory changes: from now on the memory is this life's
	if err := m.dropReplicas(c); err != nil {
		return nil, err
	}
	for _, p := range c.Regions {
		if !p.Has(m.id) {
			continue
		}
		isNew := slices.Contains(p.Filling, m.id)
		err := m.haveReplica(c.ID, p, isNew)
		switch {
		case isNew && isNoRoom(err):
			refused = append(refused, p.Region)
		case err != nil:
			return nil, err
		}
	}
	if len(refused) > 0 {
		return refused, nil
	}
	m.mark(c)
	m.identity.Store(identityLed, uint64(c.ID))
	m.identity.Store(identityApplied, uint64(c.ID))
	m.identity.Store(identityHolds, 1)
	m.txn.Remap(c, m.replica)
	return nil, nil
}

// isNoRoom reports whether a replica could not be made because there is no room.
func isNoRoom(err error) bool {
	return errors.Is(err, nvram.ErrNoSpace) || errors.Is(err, region.ErrFull)
}

// Commit implements membership.Host.
func (h *host) Commit(ctx context.Context, c *cluster.Configuration) error {
	m := h.member()
	m.noteCommitted(c.ID) // before recovery tells other machines anything about transactions
	if err := m.registerReads(c.ID); err != nil {
		return err
	}
	m.keepSomeRoom() // before transactions.Commit, which may wait for long for another machine
	if err := m.transactions.Commit(ctx, c); err != nil {
		return err
	}
	m.keepSomeRoom()
	m.awaitRoom(c)
	return nil
}

// Settle implements membership.Host.
func (h *host) Settle(ctx context.Context, c *cluster.Configuration) error {
	m := h.member()
	err := m.awaitSettled(ctx, c)
	if err == nil && m.departing() > 0 {
		m.giveBack() // enough epochs may have ended while recovery was going on
		m.awaitDeparted()
	}
	return err
}

// awaitSettled waits until this machine has recovered all transactions of configurations before c.
// If that takes long, it reports the progress now and then.
func (m *Member) awaitSettled(ctx context.Context, c *cluster.Configuration) error {
	begun := m.clock.Now()
	tellAfter := settleSlow
	for m.settledFor.Load() < uint32(c.ID) && !sabotage.FillSettled.Skipped() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if took := m.clock.Now().Sub(begun); took > tellAfter && m.cfg.Events.Slow != nil {
			m.cfg.Events.Slow(c, took, m.transactions.Progress())
			tellAfter = 2 * took
		}
		m.clock.Sleep(settlePoll)
	}
	return nil
}

const (
	// settlePoll is the interval at which a machine checks whether its transactions are recovered.
	settlePoll = 500 * time.Microsecond
	// settleSlow is the longest time that recovery takes if nothing is wrong.
	settleSlow = time.Second
)

// Active implements membership.Host.
func (h *host) Active(c *cluster.Configuration) {
	m := h.member()
	m.background.run(func() { m.scan() })
	m.background.run(func() { m.fill(c) })
}

// Evicted implements membership.Host.
func (h *host) Evicted() {
	h.txn.Evict()
	h.member().ended(h.membership.Err())
}

// Restart implements membership.Host.
func (h *host) Restart() {
	h.txn.Evict()
	h.member().ended(h.membership.Err())
}

func (m *Member) ended(reason error) {
	if m.cfg.Ended != nil {
		m.cfg.Ended(reason)
	}
}

// Holds implements membership.Host.
func (h *host) Holds() (ids []region.ID, err error) {
	names, err := h.memory.Names()
	for _, name := range names {
		if id, ok := regionOf(name); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, err
}

// noteCommitted records a configuration as committed. It does nothing if a later one has been
// recorded: the caller's goroutine may be late.
func (m *Member) noteCommitted(id cluster.ID) {
	for {
		last := m.identity.Load(identityCommitted)
		isLate := last != committedUnknown && last >= uint64(id)
		if isLate || m.identity.CompareAndSwap(identityCommitted, last, uint64(id)) {
			return
		}
	}
}

// Committed implements membership.Host.
func (h *host) Committed() (last cluster.ID, isKnown bool) {
	word := h.identity.Load(identityCommitted)
	return cluster.ID(word), word != committedUnknown
}

// Prepare implements membership.Host.
func (h *host) Prepare(p cluster.Placement) error {
	m := h.member()
	if m.replica(p.Region) != nil {
		return nil // the CM has asked twice
	}
	if p.Primary == m.id && m.cfg.Settings.RegionsMax > 0 && m.membership.Configuration().PrimaryOf(m.id) >= m.cfg.Settings.RegionsMax {
		return fmt.Errorf("%w: machine %d has all %d regions that it may have", region.ErrFull, m.id, m.cfg.Settings.RegionsMax)
	}
	return m.haveReplica(0, p, true) // 0: a new region has no replica to fill
}

// Announce implements membership.Host.
func (h *host) Announce(p cluster.Placement) {
	m := h.member()
	m.txn.AddRegion(p, m.replica(p.Region))
}

// replica returns this machine's replica of a region, or nil.
func (m *Member) replica(id region.ID) *region.Region {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	return m.regions[id]
}

// haveReplica makes sure that this machine has its replica of a region, and that the region's
// primary can write block headers to it. A replica that is opened to be filled counts as created in
// the given configuration.
func (m *Member) haveReplica(in cluster.ID, p cluster.Placement, isNew bool) (err error) {
	r := m.replica(p.Region)
	if r == nil {
		if r, err = m.openReplica(in, p, isNew); err != nil {
			return err
		}
		if slices.Contains(p.Filling, m.id) { // before any transaction writes
			r.SetSince(uint32(in))
		}
	}
	m.replicas.Lock()
	defer m.replicas.Unlock()
	m.endBlocksKeyLocked(p)
	m.blocks[p.Region], err = route.ReceiveBlocks(m.nic, p, r, m.blocks[p.Region])
	return err
}

// openReplica maps a replica, or makes it, for a configuration. It registers the replica for READs,
// except one that is being filled: see registerReads.
func (m *Member) openReplica(in cluster.ID, p cluster.Placement, isNew bool) (r *region.Region, err error) {
	id := p.Region
	isFilling := slices.Contains(p.Filling, m.id)
	if err := m.detachDeparted(func(d *departed) bool { return d.region.ID() == id }); err != nil {
		return nil, err
	}
	switch {
	case isFilling:
		r, err = m.openFilling(id)
	case isNew:
		r, err = m.makeRegion(id, m.cfg.Settings.RegionBytes)
	default:
		r, err = m.mapRegion(id, m.cfg.Settings.RegionBytes)
	}
	if err != nil {
		return nil, err
	}
	m.replicas.Lock()
	defer m.replicas.Unlock()
	if isFilling && !sabotage.FillingReads.Skipped() {
		m.unread[id] = in
	} else if err := m.registerReadsLocked(r); err != nil {
		return nil, err
	}
	m.regions[id] = r
	return r, nil
}

// registerReads is called once a configuration is committed. It registers for READs the
// replicas that this machine began to fill in that configuration or an earlier one. Nobody
// needs to READ them before they are complete, and to register them earlier would do harm. If
// an earlier replica of the region has departed from this machine, machines that have not
// applied the configuration yet may take this machine for the primary: they READ the departed
// replica, under the same key, and must not find the empty one.
func (m *Member) registerReads(committed cluster.ID) error {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	for id, in := range m.unread { // any order
		if in > committed {
			continue
		}
		if err := m.registerReadsLocked(m.regions[id]); err != nil {
			return err
		}
		delete(m.unread, id)
	}
	return nil
}

// registerReadsLocked registers a replica for READs, in place of an earlier one that has departed.
func (m *Member) registerReadsLocked(r *region.Region) error {
	for _, d := range m.departed {
		if d.region.ID() == r.ID() {
			m.endReadsLocked(d)
		}
	}
	return m.nic.Register(route.RegionKey(r.ID()), r.Memory())
}

// dropReplicas drops the replicas that c does not give to this machine.
func (m *Member) dropReplicas(c *cluster.Configuration) error {
	for _, id := range m.replicaIDs() {
		if c.Keeps(m.id, id) {
			continue
		}
		if err := m.loseReplica(c, id); err != nil {
			return err
		}
	}
	if err := m.removeStrays(c, m.hasDepartedNamed); err != nil {
		return err
	}
	return m.endStale(func(id region.ID) bool {
		p, ok := c.Placement(id)
		return !ok || !slices.Contains(p.Filling, m.id)
	})
}

// loseReplica drops a replica that c does not give to this machine.
func (m *Member) loseReplica(c *cluster.Configuration, id region.ID) error {
	if m.staleOf(id) == nil {
		m.loseComplete(c, id)
		return nil
	}
	return m.loseFilling(id)
}

// loseFilling drops a replica that is being filled. Its memory stays mapped while a goroutine still fills it: that
// goroutine notices the change of the configuration only after a while.
func (m *Member) loseFilling(id region.ID) error {
	release, err := m.memory.Detach(regionName(id))
	m.replicas.Lock()
	defer m.replicas.Unlock()
	if _, isUnread := m.unread[id]; isUnread {
		delete(m.unread, id) // if the region's key is registered, it belongs to a departed replica
	} else {
		m.nic.Deregister(route.RegionKey(id))
	}
	m.nic.Deregister(m.blocks[id])
	r := m.regions[id]
	delete(m.regions, id)
	delete(m.blocks, id)
	delete(m.read, id)
	return errors.Join(err, m.releaseLocked(r, release))
}

func (m *Member) replicaIDs() []region.ID {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	ids := make([]region.ID, 0, len(m.regions))
	for id := range m.regions { // any order: sorted next
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
