package txn

import (
	"testing"

	"github.com/farmsql/farmsql/txn/outcome"
)

// Every transaction asks, and hardly any has met a conflict.
func TestAbortReason(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { abortReason(nil) }); n != 0 {
		t.Errorf("without a conflict: %v allocations", n)
	}
	for doomed, want := range map[error]Reason{
		nil:                             ReasonUser,
		outcome.ErrConflict:             ReasonUser,
		&AbortError{Reason: ReasonLock}: ReasonLock,
	} {
		if got := abortReason(doomed); got != want {
			t.Errorf("%v: %v", doomed, got)
		}
	}
}
