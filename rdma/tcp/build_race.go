//go:build race

package tcp

import (
	"sync/atomic"
	"time"
)

// connectMax is longer than in other builds. With the race detector, and other tests beside it,
// a process may do nothing for seconds, and in the suites of the protocols nobody connects
// again.
const connectMax = 20 * time.Second

// sent and received tell the race detector that a machine's actions before it sent a datagram
// come before another machine's actions after it received it. In tests, machines of one process
// tell each other by datagrams what they have written. The detector knows this order of package
// syscall's system calls for streams, but not of those for datagrams.
func sent()     { datagrams.Add(1) }
func received() { datagrams.Load() }

var datagrams atomic.Uint64
