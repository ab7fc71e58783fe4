package outcome

import (
	"errors"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/wait"
)

// Known errors have the codes that machines of earlier versions give them, and match at the machine
// that shipped the function what they match here.
func TestKnownErrors(t *testing.T) {
	for i, err := range []error{
		ErrConflict, ErrTooLarge, ErrLogFull, ErrNoRegion, ErrInDoubt, ErrClosed, ErrEvicted,
		region.ErrFull, region.ErrTooLarge, region.ErrFreed, nvram.ErrNoSpace, wait.ErrUnavailable, region.ErrReclaiming,
	} {
		code := CodeOf(fmt.Errorf("in a function: %w", err))
		if code != Code(2+i) {
			t.Errorf("%v has code %d, not %d", err, code, 2+i)
		}
		got := Shipped(code, []byte("its text"))
		if !errors.Is(got, err) || got.Error() != "its text" {
			t.Errorf("%v arrives as %v", err, got)
		}
	}
}

// Errors that are not known, and codes of later versions, arrive as errors that match nothing.
func TestUnknownErrors(t *testing.T) {
	for _, code := range []Code{CodeOf(errors.New("another")), 200} {
		got := Shipped(code, []byte("its text"))
		var s *ShippedError
		if !errors.As(got, &s) || s.Unwrap() != nil || s.Text != "its text" {
			t.Errorf("code %d arrives as %#v", code, got)
		}
	}
	if err := Shipped(CodeOf(nil), []byte("a result")); err != nil {
		t.Errorf("a result arrives as %v", err)
	}
}

// A lost machine is a conflict, and so is a function's error that says so.
func TestLostIsAConflict(t *testing.T) {
	if !errors.Is(ErrLost, ErrConflict) || errors.Is(ErrConflict, ErrLost) {
		t.Error("a lost machine is no conflict, or each conflict a lost machine")
	}
	if err := Shipped(CodeOf(ErrLost), nil); !errors.Is(err, ErrConflict) {
		t.Errorf("arrives as %v", err)
	}
	if err := InDoubt(ErrLost); !errors.Is(err, ErrInDoubt) || !errors.Is(err, ErrLost) {
		t.Errorf("in doubt: %v", err)
	}
}
