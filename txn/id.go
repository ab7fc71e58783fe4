package txn

import (
	"cmp"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
)

// ID names a transaction from the start of its commit: the tuple <c, m, t, l>
// of SOSP'15 section 5.3.
type ID struct {
	// Config is the configuration in which the commit started.
	Config uint32
	// Machine and Worker are the coordinator and its thread.
	Machine rdma.MachineID
	Worker  uint16
	// Seq counts the commits of that worker, upwards from where this life of the
	// machine begins (see window).
	Seq uint64
}

// Compare orders identifiers: by configuration, coordinator and sequence.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Config, other.Config), cmp.Compare(id.Machine, other.Machine),
		cmp.Compare(id.Worker, other.Worker), cmp.Compare(id.Seq, other.Seq))
}

func (id ID) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", id.Config, id.Machine, id.Worker, id.Seq&(1<<lifeShift-1))
}
