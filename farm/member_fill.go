package farm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/region"
)

// fillRetry is the time between the first two attempts to fill a replica. Later times grow up to
// fillRetryMax.
const (
	fillRetry    = 10 * time.Millisecond
	fillRetryMax = 320 * time.Millisecond
	// refuseAfter is the number of attempts without room after which this machine refuses a
	// replica that its region can do without. Until then, memory of replicas that have moved
	// away may become free.
	refuseAfter = 8
)

// scan rebuilds the free lists of the regions whose primary this machine has become (SOSP'15 section
// 5.5).
func (m *Member) scan() {
	if err := data.Scan(m.ctx, m.allocator, m.clock, m.reportStep); err != nil && m.ctx.Err() == nil {
		m.log.Error("free lists are not complete", "machine", m.id, "error", err)
	}
}

// reportStep reports a step of recovery.
func (m *Member) reportStep(s recovery.Step) {
	if m.cfg.Recovering != nil {
		m.cfg.Recovering(s)
	}
}

// fill fills this machine's new backups, until the configuration changes (SOSP'15 section 5.4).
func (m *Member) fill(c *cluster.Configuration) {
	order := fillOrder(c, m.id)
	for _, p := range order {
		m.askEarly(c, p)
	}
	for _, p := range order {
		if err := m.fillRegion(c, p); err != nil {
			return // the configuration has changed: the next one's fill goes on
		}
	}
}

// fillOrder returns the regions that machine id has to fill. Regions with only one complete replica
// come first: they would be lost with it, and must not wait for regions that are filled slowly.
func fillOrder(c *cluster.Configuration, id rdma.MachineID) (order []cluster.Placement) {
	var others []cluster.Placement
	for _, p := range c.Regions {
		switch {
		case !slices.Contains(p.Filling, id), !p.IsAvailable(): // nothing to fill
		case isLast(p):
			order = append(order, p)
		default:
			others = append(others, p)
		}
	}
	return append(order, others...)
}

// isLast reports whether the primary is the only complete replica.
func isLast(p cluster.Placement) bool { return len(p.Backups) == len(p.Filling) }

// askEarly asks for a region's stale chunks before it is the region's turn to be filled: see
// data.Refill.AskMarks. If there is no answer, fillRegion asks again.
func (m *Member) askEarly(c *cluster.Configuration, p cluster.Placement) {
	backup := m.beginFilling(p.Region)
	if backup == nil {
		return
	}
	defer m.endFilling(backup)
	if stale := m.staleOf(p.Region); stale != nil {
		f := m.refill(c, p, stale)
		if err := f.AskMarks(configurationContext{m.ctx, m, c.ID}); err != nil {
			m.log.Debug("not known yet what has changed", "machine", m.id, "region", p.Region, "error", err)
		}
	}
}

// refill returns the Refill of a replica.
func (m *Member) refill(c *cluster.Configuration, p cluster.Placement, stale *region.Stale) data.Refill {
	return data.Refill{
		Stale: stale,
		Read: func(ctx context.Context, off uint64, dst []byte) error {
			return m.txn.ReadReplica(p.Primary, p.Region, off, dst)
		},
		Marked: func(ctx context.Context, since uint32) (region.ChunkSet, bool, error) {
			return m.askMarked(ctx, c, p, since)
		},
		Sums: func(ctx context.Context, chunk, n int) ([]uint64, error) {
			return m.askSums(ctx, c, p, chunk, n)
		},
		Hold:  func() func() { return m.txn.Start().End },
		Clock: m.clock,
		Pace:  m.paceOf(c, p),
	}
}

// fillRegion fills one replica, and reports that to the CM. It tries again until the configuration
// changes.
func (m *Member) fillRegion(c *cluster.Configuration, p cluster.Placement) error {
	ctx := configurationContext{m.ctx, m, c.ID}
	backup := m.beginFilling(p.Region)
	if backup == nil {
		return context.Canceled
	}
	defer m.endFilling(backup)
	stale := m.staleOf(p.Region)
	if stale == nil {
		return nil // the replica has everything already
	}
	begin := m.clock.Now()
	f := m.refill(c, p, stale)
	f.Bytes = func(n int) {
		m.addRead(p.Region, n)
		m.reportStep(recovery.StepFilling)
	}
	full := 0 // attempts that have found no room
	for delay := fillRetry; ; delay = min(2*delay, fillRetryMax) {
		err := m.fillOnce(ctx, c, &f)
		if err == nil {
			m.log.Info("replica filled", "machine", m.id, "region", p.Region, "bytes", m.takeRead(p.Region), "of", backup.Used(), "took", m.clock.Now().Sub(begin))
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if delay < fillRetryMax { // further failures are not reported: these were enough
			m.log.Warn("replica is not filled yet", "machine", m.id, "region", p.Region, "error", err)
		}
		if isNoRoom(err) {
			if full++; full == 1 {
				m.reclaimWaiting()
			}
			m.refuseNeedless(ctx, c, p, full)
		}
		m.clock.Sleep(delay)
	}
}

// refuseNeedless refuses a replica that has found no room refuseAfter times, if its region can
// do without it: the replica moves here, or a resize added it, or fewer replicas are wanted by
// now. Nothing is lost by that, and no other region moves, grows or shrinks as long as this
// replica is being filled. A replica that its region needs is not given up.
func (m *Member) refuseNeedless(ctx configurationContext, c *cluster.Configuration, p cluster.Placement, full int) {
	isNeedless := !c.NeedsFilling(&p) || (p.Move != nil && p.Move.To == m.id)
	if !isNeedless || full < refuseAfter || sabotage.FullTarget.Skipped() {
		return
	}
	m.needRoomForAll()
	if err := m.membership.Refuse(ctx, ctx.id, []region.ID{p.Region}); err != nil && ctx.Err() == nil {
		m.log.Debug("the CM does not know yet that there is no room for what moves or grows here", "machine", m.id, "region", p.Region, "error", err)
	}
}

// fillOnce makes one attempt to fill a replica, waits until the replica has everything, and reports
// that to the CM.
func (m *Member) fillOnce(ctx context.Context, c *cluster.Configuration, f *data.Refill) error {
	if err := f.Run(ctx); err != nil {
		return err
	}
	backup := f.Stale.Region()
	backup.EndFill()
	m.reportStep(recovery.StepFilled)
	// Objects that recovering transactions write may have been copied while they were locked at the
	// primary: their new contents come with the recovery of those transactions.
	if err := m.awaitSettled(ctx, c); err != nil {
		return err
	}
	if err := m.membership.Filled(ctx, c.ID, []region.ID{backup.ID()}); err != nil {
		return err
	}
	return m.dropStale(backup.ID(), f.Stale)
}

// addRead adds to the bytes read for a replica that is being filled, in this configuration or
// earlier ones.
func (m *Member) addRead(id region.ID, n int) {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	m.read[id] += n
}

// takeRead returns how many bytes addRead has counted for a region, and forgets the count.
func (m *Member) takeRead(id region.ID) int {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	n := m.read[id]
	delete(m.read, id)
	return n
}

// beginFilling returns this machine's replica of a region, or nil if it has been dropped. The
// replica stays mapped until endFilling.
func (m *Member) beginFilling(id region.ID) *region.Region {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	r := m.regions[id]
	if r != nil {
		m.filling[r]++
	}
	return r
}

// endFilling ends the use of a replica by one goroutine. The last one frees the replica's memory if
// the replica has been dropped meanwhile.
func (m *Member) endFilling(r *region.Region) {
	m.replicas.Lock()
	defer m.replicas.Unlock()
	m.filling[r]--
	if m.filling[r] > 0 {
		return
	}
	delete(m.filling, r)
	if release := m.dropped[r]; release != nil {
		delete(m.dropped, r)
		if err := release(); err != nil {
			m.log.Warn("memory of a replica not given back", "machine", m.id, "region", r.ID(), "error", err)
		}
	}
}

// releaseLocked calls release, which frees memory of a replica: now, or, if goroutines still fill the
// replica, when the last of them ends.
func (m *Member) releaseLocked(r *region.Region, release func() error) error {
	if m.filling[r] == 0 {
		return release()
	}
	earlier := m.dropped[r]
	if earlier == nil {
		earlier = func() error { return nil }
	}
	m.dropped[r] = func() error { return errors.Join(earlier(), release()) }
	return nil
}

// paceOf returns the aggressive pace if only one replica is left that has everything (SOSP'15
// section 6.4). A region that moves or grows has all the replicas that it needs, even if that
// is one, and is in no hurry.
func (m *Member) paceOf(c *cluster.Configuration, p cluster.Placement) data.Pace {
	switch {
	case isLast(p) && c.NeedsFilling(&p):
		return data.Aggressive
	case m.cfg.Pace == data.Pace{}:
		return data.Slow
	}
	return m.cfg.Pace
}

// A configurationContext ends when its configuration does.
type configurationContext struct {
	context.Context
	m  *Member
	id cluster.ID
}

func (c configurationContext) Err() error {
	if c.m.txn.Config() != c.id {
		return context.Canceled
	}
	return c.Context.Err()
}
