package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// askCM makes a call to the CM. If this machine is the CM, askCM runs handler, the handler of such
// calls, instead. reply may be nil.
func (m *Machine) askCM(ctx context.Context, kind uint8, handler call.Handler, arg, reply any) error {
	c := m.Configuration()
	if c == nil {
		return recovery.ErrNotMember
	}
	encoded, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	var answer []byte
	if c.CM == m.self.Machine {
		answer, err = handler(m.self, encoded)
	} else {
		ask := m.cfg.Endpoint.Call
		if kind == kindMove { // a CM may know moves of regions, but no orders (kindMove). A CM that has started has all its handlers
			ask = m.cfg.Endpoint.CallStarted
		}
		answer, err = ask(during{ctx, m, c.ID}, recovery.PeerIn(c, c.CM), kind, encoded)
	}
	if err != nil || reply == nil {
		return err
	}
	return json.Unmarshal(answer, reply)
}

// during is a context that ends when its configuration is replaced. Calls to the CM use it: the CM may
// be dead.
type during struct {
	context.Context
	m  *Machine
	id cluster.ID
}

func (d during) Err() error {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	switch {
	case d.m.mu.phase.isOver():
		return ErrEvicted
	case d.m.mu.current.ID != d.id:
		return errChanging
	}
	return d.Context.Err()
}

// changeAsCM stores a new revision of the configuration, on behalf of a machine that has asked the CM.
// f makes the revision; it returns its argument if there is nothing to change.
func (m *Machine) changeAsCM(from call.Peer, f func(c *cluster.Configuration) (*cluster.Configuration, error)) error {
	m.cfg.Clock.Lock(&m.change)
	defer m.change.Unlock()
	m.mu.Lock()
	c, isMember := m.mu.current, m.mu.phase.isMember()
	m.mu.Unlock()
	switch {
	case !isMember || c.CM != m.self.Machine:
		return recovery.ErrNotCM
	case !recovery.IsMember(c, from):
		return recovery.ErrNotMember
	}
	next, err := f(c)
	if err != nil || next == c {
		return err
	}
	err = m.cfg.Store.CompareAndSwap(c.Revision, next)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		// The revision may have been stored, or another CM may be at work: find out, and make all
		// machines agree on what is stored.
		m.mu.renew = true
		m.leadLocked()
		return err
	}
	if m.mu.current.ID == next.ID {
		m.mu.current = next
	}
	m.leadLocked() // a replica that moves may be filled
	return nil
}

// An allocation is the argument of ALLOCATE.
type allocation struct {
	Primary rdma.MachineID
	Near    region.ID
}

// Allocate makes a region whose primary is the given machine. The region gets the same replicas as
// the region near, if near has that primary, too. The CM leads two phases (SOSP'15 section 3): first the
// replicas make room; then the CM stores a configuration with the region and tells the replicas. If
// the CM's answer is lost, the region may exist nevertheless, and its replicas know it.
//
// Errors: cluster.ErrNoRoom, region.ErrFull from the host of any replica, and those
// for which IsPassing is true.
func (m *Machine) Allocate(ctx context.Context, primary rdma.MachineID, near region.ID) (cluster.Placement, error) {
	var p cluster.Placement
	err := m.askCM(ctx, kindAllocate, m.onAllocate, allocation{primary, near}, &p)
	return p, err
}

// onAllocate leads the two phases of Allocate at the CM.
func (m *Machine) onAllocate(from call.Peer, arg []byte) ([]byte, error) {
	var a allocation
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, fmt.Errorf("membership: ALLOCATE: %w", err)
	}
	var made cluster.Placement
	var c *cluster.Configuration
	err := m.changeAsCM(from, func(now *cluster.Configuration) (*cluster.Configuration, error) {
		next, p, err := now.Place(a.Primary, a.Near)
		if err != nil {
			return nil, err
		}
		made, c = p, next
		return next, m.atReplicas(calm{m.within(m.patience()), m}, next, p, kindPrepare, m.onPrepare)
	})
	if err != nil {
		return nil, err
	}
	// If a replica does not hear of the region now, the configuration must be changing, and the
	// next configuration tells that replica.
	m.cfg.Events.failed("announce a region", m.atReplicas(during{context.Background(), m, c.ID}, c, made, kindAnnounce, m.onAnnounce))
	return json.Marshal(made)
}

// calm is a context that ends when a machine is suspected: then the next configuration is more urgent.
type calm struct {
	context.Context
	m *Machine
}

func (c calm) Err() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if len(c.m.mu.suspects) > 0 {
		return errChanging
	}
	return c.Context.Err()
}

// A regionNotice is the argument of PREPARE and ANNOUNCE.
type regionNotice struct {
	Configuration cluster.ID
	Placement     cluster.Placement
}

// atReplicas sends a notice of a region to each of its replicas, one after the other, and stops at the
// first error. If this machine is a replica, atReplicas runs handler, the handler of such notices.
func (m *Machine) atReplicas(ctx context.Context, c *cluster.Configuration, p cluster.Placement, kind uint8, handler call.Handler) error {
	arg, err := json.Marshal(regionNotice{c.ID, p})
	if err != nil {
		return err
	}
	for _, x := range p.Replicas() {
		if x == m.self.Machine {
			_, err = handler(m.self, arg)
		} else {
			_, err = m.cfg.Endpoint.Call(ctx, recovery.PeerIn(c, x), kind, arg)
		}
		if err != nil {
			return fmt.Errorf("membership: region %d at machine %d: %w", p.Region, x, err)
		}
	}
	return nil
}

// notice decodes the placement in a notice, and fails unless the sender is the CM of the current
// configuration.
func (m *Machine) notice(from call.Peer, arg []byte) (cluster.Placement, error) {
	var n regionNotice
	if err := json.Unmarshal(arg, &n); err != nil {
		return n.Placement, fmt.Errorf("membership: notice of a region: %w", err)
	}
	c := m.Configuration()
	if c == nil || c.ID != n.Configuration || recovery.PeerIn(c, c.CM) != from || !n.Placement.Has(m.self.Machine) {
		return n.Placement, recovery.ErrSuperseded
	}
	return n.Placement, nil
}

func (m *Machine) onPrepare(from call.Peer, arg []byte) ([]byte, error) {
	p, err := m.notice(from, arg)
	if err != nil {
		return nil, err
	}
	m.cfg.Clock.Lock(&m.apply)
	defer m.apply.Unlock()
	if _, exists := m.Configuration().Placement(p.Region); exists { // a late PREPARE
		return nil, nil
	}
	return nil, m.cfg.Host.Prepare(p)
}

func (m *Machine) onAnnounce(from call.Peer, arg []byte) ([]byte, error) {
	p, err := m.notice(from, arg)
	if err != nil {
		return nil, err
	}
	m.cfg.Clock.Lock(&m.apply)
	defer m.apply.Unlock()
	if m.remember(p) || m.Configuration().CM == m.self.Machine {
		m.cfg.Host.Announce(p)
	}
	return nil, nil
}

// remember adds a region to this machine's copy of the configuration. It returns false if the region
// is there already.
func (m *Machine) remember(p cluster.Placement) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.mu.current.Clone()
	i, found := slices.BinarySearchFunc(c.Regions, p.Region, func(x cluster.Placement, id region.ID) int { return int(int64(x.Region) - int64(id)) })
	if found {
		return false
	}
	c.Regions = slices.Insert(c.Regions, i, p)
	c.NextRegion = max(c.NextRegion, p.Region+1)
	m.mu.current = c
	return true
}

// Placement returns the placement of a region. It asks the CM if this machine does not know it.
// Errors: ErrNoRegion, ErrLost, and those for which IsPassing is true.
func (m *Machine) Placement(ctx context.Context, id region.ID) (cluster.Placement, error) {
	c := m.Configuration()
	if c == nil {
		return cluster.Placement{}, recovery.ErrNotMember
	}
	if p, ok := c.Placement(id); ok {
		return p, nil
	}
	var p cluster.Placement
	if err := m.askCM(ctx, kindMapping, m.onMapping, id, &p); err != nil {
		return p, err
	}
	if now := m.Configuration(); now.ID == c.ID {
		m.remember(p)
	}
	return p, nil
}

// onMapping returns a region's placement, at the CM.
func (m *Machine) onMapping(from call.Peer, arg []byte) ([]byte, error) {
	var id region.ID
	if err := json.Unmarshal(arg, &id); err != nil {
		return nil, fmt.Errorf("membership: mapping: %w", err)
	}
	c := m.Configuration()
	switch {
	case c == nil || c.CM != m.self.Machine:
		return nil, recovery.ErrNotCM
	case !recovery.IsMember(c, from):
		return nil, recovery.ErrNotMember
	}
	if p, ok := c.Placement(id); ok {
		return json.Marshal(p)
	}
	if slices.Contains(c.Lost, id) {
		return nil, fmt.Errorf("%w: region %d", ErrLost, id)
	}
	return nil, fmt.Errorf("%w: region %d", ErrNoRegion, id)
}

// A filling is the argument of FILLED.
type filling struct {
	In      cluster.ID
	Regions []region.ID
}

// Filled tells the CM that this machine has completely filled its replicas of the regions, in the
// given configuration: from now on they can be promoted. In a later configuration the call has no
// effect, since the machine may have dropped a replica meanwhile and begun another.
func (m *Machine) Filled(ctx context.Context, in cluster.ID, regions []region.ID) error {
	return m.askCM(ctx, kindFilled, m.onFilled, filling{in, regions}, nil)
}

// onFilled stores, at the CM, that replicas are complete.
func (m *Machine) onFilled(from call.Peer, arg []byte) ([]byte, error) {
	var f filling
	if err := json.Unmarshal(arg, &f); err != nil {
		return nil, fmt.Errorf("membership: FILLED: %w", err)
	}
	return nil, m.changeAsCM(from, func(c *cluster.Configuration) (*cluster.Configuration, error) {
		if f.In != c.ID {
			return nil, fmt.Errorf("%w: filled in configuration %d, this is %d", errChanging, f.In, c.ID)
		}
		return c.Filled(from.Machine, f.Regions), nil
	})
}

// Root returns the address of the instance's root object. If there is none yet, proposed becomes
// the root, unless it is nil.
func (m *Machine) Root(ctx context.Context, proposed region.Ptr) (region.Ptr, error) {
	var b []byte
	if err := m.askCM(ctx, kindRoot, m.onRoot, proposed.Append(nil), &b); err != nil {
		return region.Ptr{}, err
	}
	return region.DecodePtr(b)
}

// onRoot returns the root's address, at the CM. If there is none, it first stores the proposed one.
func (m *Machine) onRoot(from call.Peer, arg []byte) ([]byte, error) {
	var b []byte
	if err := json.Unmarshal(arg, &b); err != nil {
		return nil, fmt.Errorf("membership: root: %w", err)
	}
	p, err := region.DecodePtr(b)
	if err != nil {
		return nil, fmt.Errorf("membership: root: %w", err)
	}
	err = m.changeAsCM(from, func(c *cluster.Configuration) (*cluster.Configuration, error) {
		if !c.Root.IsNil() || p.IsNil() {
			p = c.Root
			return c, nil
		}
		next := c.Revise()
		next.Root = p
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(p.Append(nil))
}

// ReplaceRoot stores root as the address of the root object. It fails unless the stored address
// equals old, at which the caller has found no object. This machine must be the CM.
func (m *Machine) ReplaceRoot(old, root region.Ptr) error {
	return m.changeAsCM(m.self, func(c *cluster.Configuration) (*cluster.Configuration, error) {
		if c.Root != old {
			return nil, fmt.Errorf("membership: the root object is %v, not %v", c.Root, old)
		}
		next := c.Revise()
		next.Root = root
		return next, nil
	})
}
