package txn_test

import (
	"testing"

	"github.com/farmsql/farmsql/txn"
)

// fire runs the timers that have not been stopped.
func (c *handClock) fire() {
	c.mu.Lock()
	timers := c.timers
	c.timers = nil
	c.mu.Unlock()
	for _, x := range timers {
		x.clock.mu.Lock()
		stopped := x.stopped
		x.clock.mu.Unlock()
		if !stopped {
			x.f()
		}
	}
}

// When no record goes to a participant any more it is told of truncations after a
// while all the same: its backup applies, and its log is free.
func TestTruncationsDoNotWaitForOtherRecords(t *testing.T) {
	r, clock := paperRig(t, 4, 2, 8)
	p := r.elsewhere()
	backup := r.Machine(int(r.Machine(0).ReplicasOf(p)[1]))
	r.settle()
	before := backup.Header(p).Version()
	r.run(0, func(tx *txn.Tx) error { return write(tx, p, 7) })
	clock.fire()
	knock(r, backup)
	if v := backup.Header(p).Version(); v != before+1 {
		t.Errorf("the backup has version %d after a while, not %d", v, before+1)
	}
	r.quiet()
}
