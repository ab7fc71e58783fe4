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
	// Seq counts the commits of that worker. In each life of the machine it begins at another
	// number (LifeShift).
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

// The sequence numbers of one life of a machine begin at its first configuration << LifeShift, so
// that no two lives use the same numbers: a machine that has logs from several lives of another can
// tell which transactions a low bound is about. A worker that commits a million transactions a second
// needs half a year to use up a life's numbers, and only lives that are a million configurations
// apart begin with the same number.
const LifeShift = 44

// SameLife reports whether two sequence numbers belong to the same life of a machine.
func SameLife(a, b uint64) bool { return a>>LifeShift == b>>LifeShift }

// FirstOfLife returns the low bound at the start of the life that seq belongs to, when nothing has
// been truncated yet.
func FirstOfLife(seq uint64) uint64 { return ((seq >> LifeShift) << LifeShift) + 1 }
