package lease

import (
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// A Keeper keeps the leases of one machine. It is safe for concurrent use.
type Keeper interface {
	// Configure says who exchanges leases with whom from now on. It is called
	// when a machine applies a configuration; a machine that is not among the
	// members holds no lease any more.
	Configure(cm rdma.MachineID, members []call.Peer)

	// Valid reports whether the machine's own lease lasts: at the CM or, at the
	// CM, at a majority. It costs a clock reading.
	Valid() bool

	// Beat says that the machine's workers work. From the first on, leases are renewed,
	// those that the machine holds and those that it grants, only while the last is
	// younger than a lease: the keeper may go on when nothing else of the machine does.
	Beat()

	// Outstanding returns for how much longer leases may last that this machine
	// has granted to machines that it exchanges leases with no longer.
	Outstanding() time.Duration

	// Leases returns the state of each lease granted, for display.
	Leases() []Lease

	// Length is the lease time, and Variant says what keeps it.
	Length() time.Duration
	Variant() string

	// Close ends the exchange. No call of Config.Expired begins any more.
	Close() error
}

// A Lease is one that this machine has granted.
type Lease struct {
	Machine rdma.MachineID
	// Left is how long it lasts, or negative since when it has not. Held is the
	// same for the lease that this machine holds there.
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
