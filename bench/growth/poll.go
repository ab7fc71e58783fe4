package growth

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is the time between two looks at something that is waited for.
const pollInterval = 100 * time.Millisecond

// poll looks until is returns true, or an error.
func poll(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		ok, err := is()
		if ok || err != nil {
			return err
		}
		if !sleep(ctx, pollInterval) {
			return fmt.Errorf("growth: waited for %s: %w", what, context.Cause(ctx))
		}
	}
}

// sleep returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
