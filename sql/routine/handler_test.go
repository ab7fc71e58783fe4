package routine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/txn/outcome"
)

// A body that is killed while a statement fails ends as killed, whatever the statement's error was,
// unless the statement may have committed.
func TestErrorsOfAKilledBody(t *testing.T) {
	killed, kill := context.WithCancel(t.Context())
	kill()
	for _, err := range []error{mysql.NewSQLError(1062, "23000", "duplicate"), context.Canceled, fmt.Errorf("commit: %w", outcome.ErrInDoubt)} {
		b := &body{ctx: gms.NewContext(killed)}
		got := b.handle(&sqlparser.Insert{}, err)
		if isDoubt := errors.Is(err, outcome.ErrInDoubt); errors.Is(got, outcome.ErrInDoubt) != isDoubt || errors.Is(got, context.Canceled) == isDoubt {
			t.Errorf("%v: %v", err, got)
		}
	}
}
