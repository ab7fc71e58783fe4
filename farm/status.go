package farm

import (
	"cmp"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma"
)

// A Status is what a machine knows of its instance, for display.
type Status struct {
	// Configuration is the one applied last; nil before the first. It is not to be
	// changed.
	Configuration *cluster.Configuration
	// Leases are those that this machine has granted, with what it holds at the
	// others. IsValid says whether its own lasts.
	Leases  []lease.Lease
	IsValid bool
	// Length is the lease time, and KeptBy what keeps leases.
	Length time.Duration
	KeptBy string
	// Suspects are machines whose leases have run out; Joining those that wait to
	// be admitted, at the CM.
	Suspects, Joining []rdma.MachineID
	// Unavailable says why operations wait or fail; empty if they do not.
	Unavailable string
	// Missing are machines that do not answer, without whom there is no majority.
	Missing []rdma.MachineID
	// IsRecovering says that not all regions are active yet. Recovery is how far
	// the recovery of transactions has come at this machine.
	IsRecovering bool
	Recovery     string
	// Err is why the machine has no part in the instance any more.
	Err error
}

// Status returns how the machine is, which can be asked from MemberConfig.Begun on, and
// after Close, too.
func (m *Member) Status() Status {
	s := m.membership.Status()
	unavailable := ""
	if !m.keeper.Valid() {
		unavailable = cmp.Or(m.missing(0), "this machine has no lease")
	}
	return Status{
		Configuration: s.Configuration, Unavailable: unavailable,
		Leases: m.keeper.Leases(), IsValid: m.keeper.Valid(), Length: m.keeper.Length(), KeptBy: m.keeper.Variant(),
		Suspects: s.Suspects, Joining: s.Joining, Missing: s.Missing,
		IsRecovering: s.Recovering, Recovery: m.transactions.Progress(),
		Err: s.Err,
	}
}
