package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// A Watch measures how busy other processes keep the computer.
type Watch struct{ begin sample }

// StartWatch returns a Watch whose measurement begins now.
func StartWatch() *Watch { return &Watch{familySample()} }

// Conditions returns the conditions of the computer and the program: the time at which the
// watch began, and how busy other processes have kept the computer since. Running children of
// this process count as other processes.
func (w *Watch) Conditions() Conditions {
	now := familySample()
	c := Computer()
	c.Began, c.Others = w.begin.at, otherProcessors(w.begin, now, now.own-w.begin.own)
	return c
}

// familySample returns the processor time of this process and of its children that have ended.
func familySample() sample {
	s := takeSample()
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &u) == nil {
		s.own += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return s
}
