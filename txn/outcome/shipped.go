package outcome

import (
	"errors"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/wait"
)

// A Code says how a shipped function ended: with a result, with an error, or, from codeKnown on,
// with one of the errors in known.
type Code uint8

const (
	codeResult Code = iota
	codeError
	codeKnown
)

// known are the errors that callers of a shipped function may need to tell apart. Keep their order:
// machines of earlier versions identify each error by its index.
var known = [...]error{ErrConflict, ErrTooLarge, ErrLogFull, ErrNoRegion, ErrInDoubt, ErrClosed, ErrEvicted, region.ErrFull, region.ErrTooLarge, region.ErrFreed, nvram.ErrNoSpace, wait.ErrUnavailable, region.ErrReclaiming}

// CodeOf returns the code for err, the error of a function or nil. If err matches several of known, the
// first counts.
func CodeOf(err error) Code {
	if err == nil {
		return codeResult
	}
	for i, k := range known {
		if errors.Is(err, k) {
			return codeKnown + Code(i)
		}
	}
	return codeError
}

// A ShippedError is the error of a function that ran at another machine. It has the text of the
// original error, and matches the same errors of this package and of region.
type ShippedError struct {
	Text string
	is   error // an element of known, or nil
}

func (e *ShippedError) Error() string { return e.Text }

// Unwrap returns the known error that e matches, or nil.
func (e *ShippedError) Unwrap() error { return e.is }

// Shipped returns the error of a function that ended with the given code, or nil if it had none.
// text is the error's text.
func Shipped(code Code, text []byte) error {
	switch i := int(code) - int(codeKnown); {
	case code == codeResult:
		return nil
	case i >= 0 && i < len(known):
		return &ShippedError{Text: string(text), is: known[i]}
	}
	return &ShippedError{Text: string(text)}
}
