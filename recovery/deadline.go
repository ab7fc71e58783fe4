package recovery

import (
	"context"
	"time"
)

// WithDeadline returns a context with a deadline but no timer: its Done and Err are those of ctx, and
// calls compare the deadline with their own clock.
func WithDeadline(ctx context.Context, at time.Time) context.Context { return withDeadline{ctx, at} }

type withDeadline struct {
	context.Context
	at time.Time
}

func (d withDeadline) Deadline() (time.Time, bool) { return d.at, true }
