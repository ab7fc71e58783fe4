// Package cputime measures the processor time of tests and benchmarks. On a computer with other busy
// processes it says more than elapsed time.
package cputime

import (
	"syscall"
	"testing"
	"time"
)

// Now returns the processor time that this process has taken since it began.
func Now(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Report makes a benchmark report the processor time of an operation, from now until end is called.
func Report(b *testing.B) (end func()) {
	begin := Now(b)
	return func() { b.ReportMetric(float64(Now(b)-begin)/float64(b.N), "cpu-ns/op") }
}
