package route

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Table holds the current routes of one machine. They are read without a lock.
type Table struct {
	self   rdma.MachineID
	routes atomic.Pointer[List]

	mu     lockrank.Mutex[lockrank.Routes]
	closed bool
}

// Init makes t an empty table of machine self.
func (t *Table) Init(self rdma.MachineID) {
	t.self = self
	t.routes.Store(new(List))
}

// Load returns all routes.
func (t *Table) Load() *List { return t.routes.Load() }

// Store replaces the list of routes as a whole.
func (t *Table) Store(all *List) { t.routes.Store(all) }

// Of returns the route of a region, or nil.
func (t *Table) Of(id region.ID) *Route { return t.routes.Load().Of(id) }

// Add adds a region; local is its replica here, or nil.
func (t *Table) Add(p cluster.Placement, local *region.Region) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(p, local)
}

// AddMissing adds a region without a replica here, unless the table has a route to the region. It does
// nothing if the table is closed, or if isCurrent reports that the configuration of p is not the
// machine's current one: the next Remap, which may have been called already, has a newer placement. It
// calls isCurrent under the table's mutex, so no Remap can come in between.
func (t *Table) AddMissing(p cluster.Placement, isCurrent func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if isCurrent() && !t.closed && t.Of(p.Region) == nil {
		t.addLocked(p, nil)
	}
}

func (t *Table) addLocked(p cluster.Placement, local *region.Region) {
	old := *t.routes.Load()
	next := make(List, max(len(old), int(p.Region)+1))
	copy(next, old)
	next[p.Region] = &Route{Placement: p, Local: local, PrimaryHere: local != nil && p.IsPrimary(t.self)}
	t.routes.Store(&next)
}

// Remap replaces all routes by the routes of configuration c, in which no region is active yet.
// A region is readable if it is available, its primary has not changed, and it was active or readable
// before; all others are blocked. Remap does nothing if the table is closed.
func (t *Table) Remap(c *cluster.Configuration, local func(region.ID) *region.Region, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	before := t.routes.Load()
	next := make(List, int(c.NextRegion)+1)
	for _, p := range c.Regions {
		r := &Route{Placement: p, Local: local(p.Region), State: Blocked}
		r.PrimaryHere = r.Local != nil && p.IsPrimary(t.self)
		was := before.Of(p.Region)
		if was != nil && was.Primary == p.Primary && was.State != Blocked && p.IsAvailable() {
			r.State = Readable
		}
		if r.State == Blocked {
			r.setSince(was, now)
		}
		next[p.Region] = r
	}
	t.routes.Store(&next)
}

// Activate makes regions active, if isCurrent reports that their configuration is still the machine's
// current one and the table is not closed. It calls isCurrent under the table's mutex, so no Remap can
// come in between.
func (t *Table) Activate(ids []region.ID, isCurrent func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !isCurrent() || t.closed {
		return
	}
	next := slices.Clone(*t.routes.Load())
	for _, id := range ids {
		if r := next.Of(id); r != nil && r.State != Active {
			active := *r
			active.State = Active
			next[id] = &active
		}
	}
	t.routes.Store(&next)
}

// Renew replaces the list of routes by an equal one, which wakes operations that wait for a change.
func (t *Table) Renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	same := *t.routes.Load()
	t.routes.Store(&same)
}

// Close drops all routes. From then on Remap, AddMissing and Activate do nothing.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.routes.Store(new(List))
}
