package myerr

import (
	"errors"
	"fmt"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// Errors that say that a machine has ended keep their numbers on the way through go-mysql-server, which
// keeps only the text of most errors.
func TestGoneErrors(t *testing.T) {
	for err, want := range map[error]int{
		outcome.ErrEvicted: Shutdown.Number,
		outcome.ErrClosed:  Shutdown.Number,
		fmt.Errorf("%w: %w", outcome.ErrInDoubt, outcome.ErrEvicted):       InCommit.Number,
		fmt.Errorf("%w: %w", outcome.ErrInDoubt, &wait.UnavailableError{}): InCommit.Number,
		&wait.UnavailableError{Needs: "a lease"}:                           Unavailable.Number,
		outcome.ErrConflict:                                                Deadlock.Number,
	} {
		if got := gms.CastSQLError(Storage(fmt.Errorf("reading: %w", err))); got.Num != want {
			t.Errorf("%v: %d, want %d", err, got.Num, want)
		}
	}
	if err := errors.New("other"); Storage(err) != err {
		t.Error("an error that is not about transactions has changed")
	}
}
