package shm

import (
	"runtime"

	"github.com/farmsql/farmsql/rdma"
)

var _ rdma.Counter = (*NIC)(nil)

// Counts implements rdma.Counter. Counting costs operations nothing: the low half of a worker's
// active word rises by two with each operation. The counter Operations corrects that number: it
// gains 2^31 each time that the low half wraps to 0, and loses the attempts that failed. If a
// queue posts at the moment of such a wrap, once in 2^31 operations, Counts may be wrong.
func (nic *NIC) Counts() rdma.Counts {
	c := nic.counts.Sum()
	for w := range nic.state.workers() {
		count := uint32(nic.state.active(int(w)).Load()) // the low half
		c.Operations += uint64(count / 2)
	}
	runtime.KeepAlive(nic)
	return c
}
