package sql

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what this process has used of processors: how long it takes does not depend
// on what else runs on the machine.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// wantSoon fails if more processor time than a bound has been used since start.
func wantSoon(t *testing.T, start, bound time.Duration, what string) {
	t.Helper()
	if used := processorTime(t) - start; used > bound {
		t.Errorf("%.120s used the processor for %v", what, used)
	}
}
