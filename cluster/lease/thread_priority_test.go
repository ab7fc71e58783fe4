//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/clock"
)

// childWithLowPriority is set for a child that may have real-time priority 1 at most.
const childWithLowPriority = "LEASE_TEST_LOW_PRIORITY"

// A process that may have some real-time priority, but not the thread's, gets the lease time of a
// thread without.
func TestThreadOfLowPriority(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childWithLowPriority+"=1")
	out, err := c.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "may: false, 200ms, thread with normal priority") {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%s", out) // the limit is 0 if the tests may not raise it; then this shows less
}

// lowPriorityChild keeps leases while RLIMIT_RTPRIO is 1, or 0 if the tests may not have more.
func lowPriorityChild() {
	_ = unix.Setrlimit(unix.RLIMIT_RTPRIO, &unix.Rlimit{Cur: 1, Max: 1}) // fails only if it is 0 and must stay so
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_RTPRIO, &limit)
	if err == nil && os.Getuid() == 0 { // whom no limit binds
		const nobody = 65534
		err = syscall.Setuid(nobody)
	}
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	k, err := NewThread(rand.Uint64(), peer(0), Config{Clock: clock.System{}})
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	fmt.Printf("may: %v, %v, %s; RLIMIT_RTPRIO is %d\n", MayRealtime(), k.Length(), k.Variant(), limit.Cur)
	k.Close()
}
