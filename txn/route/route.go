// Package route defines a machine's routes. A route says which machines have the replicas of a
// region, and which accesses to them are allowed in the present configuration. keys.go defines the
// keys under which a machine's memory is registered with its NIC.
//
// Routes are read on every access to an object, without a mutex: a List never changes. The Table
// replaces it as a whole, under its mutex.
package route

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
)

// A Route is a machine's knowledge of one region: the placement of its replicas, and the local
// replica if there is one.
type Route struct {
	cluster.Placement
	// Local is the replica at this machine, or nil; PrimaryHere says that it is the primary.
	Local       *region.Region
	PrimaryHere bool
	State       State
	// Since is the time at which a blocked region was first blocked; zero if that is not known.
	Since time.Time
}

// A State determines what a machine may do in a region (SOSP'15 section 5.3 steps 1 and 4).
type State uint8

const (
	// Active: read, write and commit.
	Active State = iota
	// Readable: read only. The primary has not changed, and objects that recovering transactions
	// have locked there are still locked.
	Readable
	// Blocked: no access; wait.
	Blocked
)

// A List holds the route of each region, by its number. A List never changes: the Table replaces
// it.
type List []*Route

// Of returns the route of a region, or nil.
func (rs *List) Of(id region.ID) *Route {
	if int(id) >= len(*rs) {
		return nil
	}
	return (*rs)[id]
}

// setSince sets the time at which the region was first blocked: the time in the previous route, if
// it was blocked already, and otherwise now.
func (r *Route) setSince(was *Route, now time.Time) {
	r.Since = now
	if was != nil && was.State == Blocked {
		r.Since = was.Since
	}
}
