package recovery

import (
	"context"
	"time"
)

// WithDeadline returns a context with a deadline that calls compare with the clock by
// themselves: it has no timer, and its Done is ctx's.
func WithDeadline(ctx context.Context, at time.Time) context.Context { return withDeadline{ctx, at} }

type withDeadline struct {
	context.Context
	at time.Time
}

func (d withDeadline) Deadline() (time.Time, bool) { return d.at, true }
