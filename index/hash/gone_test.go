package hash

import (
	"errors"
	"io"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
)

func TestGone(t *testing.T) {
	for err, want := range map[error]error{
		region.ErrFreed:  ErrDestroyed,
		region.ErrBadPtr: ErrDestroyed,
		region.ErrLocked: outcome.ErrConflict,
		io.EOF:           io.EOF,
	} {
		if got := asDestroyed(err); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v: got %v, want %v", err, got, want)
		}
	}
	if asDestroyed(nil) != nil {
		t.Error("nothing is wrong")
	}
}
