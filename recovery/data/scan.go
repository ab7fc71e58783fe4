package data

import (
	"context"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/region"
)

// Allocator recovery looks at so many objects at a time, so often (SOSP'15
// section 5.5), so that the foreground work does not suffer.
const (
	scanObjects  = 100
	scanInterval = 100 * time.Microsecond
)

// scanObjectsMax bounds what is made up for at once when a pause was long.
const scanObjectsMax = 100 * scanObjects

// Scan rebuilds the free lists of the regions that a has been attached to, paced.
// An operating system that cannot sleep for so short a time makes it look at more
// objects after each pause. It ends early when ctx does. step is told when some have
// been looked at, and when all have; it does not wait.
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
