package catalog

import (
	"context"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
)

// A turn is held by one caller at a time, as long as the caller needs. Other callers wait until
// the turn ends, and then check whether anything is left to do. The mutex that guards a turn is
// not held during the turn.
type turn struct {
	taken   bool
	waiting []clock.Event
}

// takeLocked takes the turn, or returns an event that is set when it has ended.
func (t *turn) takeLocked(c clock.Clock) (over clock.Event) {
	if !t.taken {
		t.taken = true
		return nil
	}
	over = c.NewEvent()
	t.waiting = append(t.waiting, over)
	return over
}

// endLocked ends the turn and wakes all callers that wait for its end.
func (t *turn) endLocked() {
	for _, over := range t.waiting {
		over.Set()
	}
	t.taken, t.waiting = false, nil
}

// contextPoll is the interval at which a waiting caller checks whether its context has ended.
const contextPoll = 20 * time.Millisecond

// waitFor waits for an event that comes soon. If ctx is done before, it returns ctx's error.
func waitFor(ctx context.Context, e clock.Event) error {
	if ctx.Done() == nil {
		e.Wait()
		return nil
	}
	for !e.WaitFor(contextPoll) {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
