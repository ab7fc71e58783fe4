package data

import (
	"context"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// Allocator recovery looks at scanObjects objects at a time and then pauses (SOSP'15 section 5.5),
// so that it does not slow down transactions.
const (
	scanObjects  = 100
	scanInterval = 100 * time.Microsecond
)

// scanObjectsMax bounds how many objects are scanned at once to catch up after a long pause.
const scanObjectsMax = 100 * scanObjects

// Scan rebuilds the free lists of the regions that the allocator has been attached to, with pauses.
// After a pause that lasted longer than asked, it scans more objects, to keep its average pace. It
// fails when ctx ends. It calls step before each pause, and at the end; step must not wait.
func Scan(ctx context.Context, a *region.Allocator, c clock.Clock, step func(recovery.Step)) error {
	last := c.Now()
	for n := scanObjects; a.Scan(n); {
		if err := ctx.Err(); err != nil {
			return err
		}
		step(recovery.StepScanning)
		c.Sleep(scanInterval)
		now := c.Now()
		n = min(scanObjects*max(1, int(now.Sub(last)/scanInterval)), scanObjectsMax)
		last = now
	}
	step(recovery.StepScanned)
	return nil
}
