package nvram

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// A signal does not fail a reservation: the call is repeated, and what it says in the end counts.
func TestSignalsInterruptNothing(t *testing.T) {
	for _, want := range []error{nil, unix.ENOSPC} {
		calls := 0
		err := uninterrupted(func() error {
			if calls++; calls < 3 {
				return unix.EINTR
			}
			return want
		})
		if calls != 3 || !errors.Is(err, want) {
			t.Errorf("%v after %d calls, want %v after 3", err, calls, want)
		}
	}
}
