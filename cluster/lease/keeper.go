package lease

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// A Keeper keeps the leases of one machine. It is safe for concurrent use.
type Keeper interface {
	// Configure sets which machines exchange leases with the CM from now on. It is called when a
	// machine applies a configuration; a machine that is not among the members holds no lease any
	// more.
	Configure(cm rdma.MachineID, members []call.Peer)

	// Valid reports whether this machine holds a lease from the CM (on the CM: from a majority). It
	// costs a clock reading.
	Valid() bool

	// Beat tells the keeper that the machine's workers work. After the first Beat, the keeper renews
	// leases, both those that the machine holds and those that it grants, only while the last Beat is
	// younger than a lease: the keeper may still run when the rest of the machine hangs.
	Beat()

	// Remind makes the keeper call due, on one goroutine, whenever the next Beat is due. So an
	// idle machine needs no timer for its beats. A busy machine needs one: the goroutine waits
	// for its turn behind all others. A keeper without a thread never calls due. Remind is
	// called once at most.
	Remind(due func())

	// Outstanding returns how long the leases may still last that this machine has granted to
	// former peers, with which it does not exchange leases any more.
	Outstanding() time.Duration

	// Leases returns the state of each lease granted, for display.
	Leases() []Lease

	// Length is the lease time, which another configuration may change, and Variant the kind of keeper.
	Length() time.Duration
	// Shortest is the shortest that Length may become.
	Shortest() time.Duration
	Variant() string

	// Close ends the exchange, and waits for the calls of Remind's due. Afterwards neither due nor Config.Expired is
	// called.
	Close() error
}

// A Lease is a lease that this machine has granted.
type Lease struct {
	Machine rdma.MachineID
	// Left is how long the lease still lasts, or, if negative, how long ago it ended. Held is the
	// same for the lease that this machine holds from the other.
	Left, Held time.Duration
}

// Members returns the machines of a configuration as their lives.
func Members(c *cluster.Configuration) []call.Peer {
	peers := make([]call.Peer, len(c.Machines))
	for i, m := range c.Machines {
		peers[i] = call.Peer{Machine: m, Incarnation: c.Incarnation[i]}
	}
	return peers
}

// leases lists the relations of a core.
func (c *core) leases(now int64) []Lease {
	list := make([]Lease, len(c.relations))
	for i, r := range c.relations {
		list[i] = Lease{r.peer.Machine, time.Duration(r.granted - now), time.Duration(r.held - now)}
	}
	return list
}
