//go:build race

package tcp

import (
	"sync/atomic"
	"time"
)

// connectMax is longer than in other builds: with the race detector, and other tests beside it, a process may do
// nothing for seconds, and the suites of the protocols have nobody who connects again.
const connectMax = 20 * time.Second

// sent and received tell the race detector that what a machine did before it sent a datagram comes before what
// another one does when it has received it: machines of one process, in tests, tell each other so what has been
// written. The detector knows that order of the system calls of package syscall for streams, but not of those for
// datagrams.
func sent()     { datagrams.Add(1) }
func received() { datagrams.Load() }

var datagrams atomic.Uint64
