package sql

import (
	"errors"
	"io"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// failingLookAhead fails always.
type failingLookAhead struct{ calls int }

func (f *failingLookAhead) first() int { return 2 }

func (f *failingLookAhead) lookUp(*gms.Context, []gms.Row, gms.Row) error {
	f.calls++
	return errors.New("a key cannot be looked up")
}

// Rows whose lookups fail ahead are returned all the same: the join above meets the error where it
// uses the row, if a LIMIT does not end it before.
func TestFailedLookAhead(t *testing.T) {
	rows := []gms.Row{{1}, {2}, {3}, {4}}
	f := new(failingLookAhead)
	i := &aheadIter{RowIter: gms.RowsToRowIter(rows...), lookAhead: f, together: f.first()}
	ctx := gms.NewEmptyContext()
	for _, want := range rows {
		row, err := i.Next(ctx)
		if err != nil || row[0] != want[0] {
			t.Errorf("%v, %v, want %v", row, err, want)
		}
	}
	if _, err := i.Next(ctx); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if f.calls != 2 {
		t.Errorf("%d lookups ahead, want 2", f.calls)
	}
}
