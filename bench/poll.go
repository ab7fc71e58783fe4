package bench

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is the time between two looks at something that is waited for.
const pollInterval = 50 * time.Millisecond

// Poll calls condition until it returns true or an error, or until ctx ends. If ctx ends, the error
// contains what, the thing that was waited for.
func Poll(ctx context.Context, what string, condition func() (bool, error)) error {
	for {
		holds, err := condition()
		if holds || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bench: waited for %s: %w", what, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}
