package recovery

import (
	"context"
	"time"
)

// WithDeadline returns a context with a deadline but no timer: calls compare the deadline with the
// clock themselves. Its Done is ctx's.
func WithDeadline(ctx context.Context, at time.Time) context.Context { return withDeadline{ctx, at} }

type withDeadline struct {
	context.Context
	at time.Time
}

func (d withDeadline) Deadline() (time.Time, bool) { return d.at, true }
