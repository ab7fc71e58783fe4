package txn

import (
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
	// Seq counts the commits of that worker, upwards from 1.
	Seq uint64
}

func (id ID) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", id.Config, id.Machine, id.Worker, id.Seq)
}
