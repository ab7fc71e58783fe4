package sql

import (
	"errors"
	"fmt"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/txn"
)

// What a machine's end means to its clients survives go-mysql-server, which keeps
// of most errors the text only.
func TestGoneErrors(t *testing.T) {
	for err, want := range map[error]int{
		txn.ErrEvicted: erServerShutdown,
		txn.ErrClosed:  erServerShutdown,
		fmt.Errorf("%w: %w", txn.ErrInDoubt, txn.ErrEvicted):          erInCommit,
		fmt.Errorf("%w: %w", txn.ErrInDoubt, &txn.UnavailableError{}): erInCommit,
		&txn.UnavailableError{Needs: "a lease"}:                       erUnavailable,
		txn.ErrConflict:                                               erLockDeadlock,
	} {
		if got := gms.CastSQLError(conflict(fmt.Errorf("reading: %w", err))); got.Num != want {
			t.Errorf("%v: %d, want %d", err, got.Num, want)
		}
	}
	if err := errors.New("other"); conflict(err) != err {
		t.Error("an error that is not about transactions has changed")
	}
}
