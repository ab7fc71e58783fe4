package farm

import (
	"cmp"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma"
)

// A Status is a machine's knowledge of its instance, for display.
type Status struct {
	// Configuration is the last configuration applied; nil before the first. Callers must not change
	// it.
	Configuration *cluster.Configuration
	// Leases are the leases that this machine has granted to other machines, and the leases that it
	// holds at them. IsValid says whether its own lease is valid.
	Leases  []lease.Lease
	IsValid bool
	// Length is the lease time. KeptBy describes the keeper of leases.
	Length time.Duration
	KeptBy string
	// Suspects are machines whose leases have run out. Joining are machines that wait to be
	// admitted; only the CM's status lists them.
	Suspects, Joining []rdma.MachineID
	// Unavailable is the reason why operations wait or fail; empty if they do not.
	Unavailable string
	// Missing are machines that do not answer and are needed for a majority.
	Missing []rdma.MachineID
	// IsRecovering says that not all regions are active yet. Recovery is the progress of the
	// recovery of transactions at this machine.
	IsRecovering bool
	Recovery     string
	// BalanceIn, in the CM's status, is the time until regions move for the sake of balance; 0 if none
	// are to move.
	BalanceIn time.Duration
	// MovesAwait, in the CM's status, is what moves would wait for now; empty if nothing is in the way.
	MovesAwait string
	// Err is the reason why the machine is no longer part of the instance.
	Err error
}

// Status returns the machine's status. It may be called from MemberConfig.Begun on, and after
// Close.
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
		BalanceIn: s.BalanceIn, MovesAwait: s.MovesAwait, Err: s.Err,
	}
}
