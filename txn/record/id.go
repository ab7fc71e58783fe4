package record

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
	// machine begins (LifeShift).
	Seq uint64
}

// Compare orders identifiers: by configuration, coordinator and sequence.
func (id ID) Compare(other ID) int {
	return cmp.Or(cmp.Compare(id.Config, other.Config), cmp.Compare(id.Machine, other.Machine),
		cmp.Compare(id.Worker, other.Worker), cmp.Compare(id.Seq, other.Seq))
}

func (id ID) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", id.Config, id.Machine, id.Worker, id.Seq&(1<<LifeShift-1))
}

// A life of a machine numbers its transactions from its first configuration on, so
// that no two lives use the same numbers: who has logs of several lives of a machine
// can tell whose low bound is about which transactions. A worker that commits a
// million transactions a second needs half a year to run out of a life's numbers, and
// only lives a million configurations apart begin with the same.
const LifeShift = 44

// SameLife says whether two numbers are of the same life of a machine.
func SameLife(a, b uint64) bool { return a>>LifeShift == b>>LifeShift }

// FirstOfLife returns the low bound of the life that a number is of when nothing has been
// truncated yet.
func FirstOfLife(seq uint64) uint64 { return seq>>LifeShift<<LifeShift + 1 }
