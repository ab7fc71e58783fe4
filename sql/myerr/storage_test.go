package myerr

import (
	"errors"
	"fmt"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/wait"
)

// What a machine's end means to its clients survives go-mysql-server, which keeps
// of most errors the text only.
func TestGoneErrors(t *testing.T) {
	for err, want := range map[error]int{
		txn.ErrEvicted: Shutdown.Number,
		txn.ErrClosed:  Shutdown.Number,
		fmt.Errorf("%w: %w", txn.ErrInDoubt, txn.ErrEvicted):           InCommit.Number,
		fmt.Errorf("%w: %w", txn.ErrInDoubt, &wait.UnavailableError{}): InCommit.Number,
		&wait.UnavailableError{Needs: "a lease"}:                       Unavailable.Number,
		txn.ErrConflict:                                                Deadlock.Number,
	} {
		if got := gms.CastSQLError(Storage(fmt.Errorf("reading: %w", err))); got.Num != want {
			t.Errorf("%v: %d, want %d", err, got.Num, want)
		}
	}
	if err := errors.New("other"); Storage(err) != err {
		t.Error("an error that is not about transactions has changed")
	}
}
