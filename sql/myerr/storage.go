package myerr

import (
	"context"
	"errors"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// stored maps the errors of storage to kinds. The first match counts.
var stored = []struct {
	err  error
	kind Kind
}{
	{outcome.ErrConflict, Deadlock},
	{outcome.ErrInDoubt, InCommit},
	{wait.ErrUnavailable, Unavailable},
	{outcome.ErrTooLarge, TooLarge},
	{outcome.ErrLogFull, LogFull},
	{outcome.ErrClosed, Shutdown},
	{outcome.ErrEvicted, Evicted},
	{outcome.ErrNoRegion, RecordFull},
	{region.ErrFull, RecordFull},
	{nvram.ErrNoSpace, RecordFull},
	{catalog.ErrAltering, LockWaitTimeout},
	{catalog.ErrExhausted, AutoIncrement},
	{catalog.ErrTooLarge, RowTooBig},
	{btree.ErrKeyTooLong, KeyTooLong},
	{row.ErrCorrupt, Corrupt},
	{catalog.ErrCorrupt, Corrupt},
	{btree.ErrCorrupt, Corrupt},
	{hash.ErrCorrupt, Corrupt},
	{context.DeadlineExceeded, QueryTimeout},
	{context.Canceled, QueryInterrupted},
}

// ofStorage converts an error of storage, of which sometimes only the text is left; nil for other
// errors.
func ofStorage(err error) *mysql.SQLError {
	for _, s := range stored {
		if errors.Is(err, s.err) || strings.HasSuffix(err.Error(), s.err.Error()) {
			return s.kind.from(err)
		}
	}
	return nil
}

// numbered are storage errors whose numbers clients act on: they reconnect, or report
// that there is no room.
var numbered = []error{
	outcome.ErrInDoubt, wait.ErrUnavailable, outcome.ErrEvicted, outcome.ErrClosed, outcome.ErrTooLarge, outcome.ErrLogFull, outcome.ErrNoRegion, region.ErrFull, nvram.ErrNoSpace,
}

// Storage converts a storage error to a MySQL error, so that it keeps its number on the way
// through go-mysql-server, which keeps only the text of other errors.
func Storage(err error) error {
	if errors.Is(err, outcome.ErrConflict) {
		return gms.ErrLockDeadlock.New(err.Error())
	}
	if slices.ContainsFunc(numbered, func(n error) bool { return errors.Is(err, n) }) {
		return Of(err)
	}
	return err
}
