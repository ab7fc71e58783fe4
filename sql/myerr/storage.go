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
	"github.com/farmsql/farmsql/txn"
)

// stored is where each error that storage can meet becomes one of MySQL's. The
// first match counts.
var stored = []struct {
	err  error
	told Kind
}{
	{txn.ErrConflict, Deadlock},
	{txn.ErrInDoubt, InCommit},
	{txn.ErrUnavailable, Unavailable},
	{txn.ErrTooLarge, TooLarge},
	{txn.ErrLogFull, LogFull},
	{txn.ErrClosed, Shutdown},
	{txn.ErrEvicted, Evicted},
	{txn.ErrNoRegion, RecordFull},
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

// ofStorage returns the error that one of storage becomes, or nil. Of some no more than
// the text is left.
func ofStorage(err error) *mysql.SQLError {
	for _, s := range stored {
		if errors.Is(err, s.err) || strings.HasSuffix(err.Error(), s.err.Error()) {
			return s.told.of(err)
		}
	}
	return nil
}

// numbered are errors of storage whose numbers clients go by: they connect again, or
// say that there is no room.
var numbered = []error{
	txn.ErrInDoubt, txn.ErrUnavailable, txn.ErrEvicted, txn.ErrClosed, txn.ErrTooLarge, txn.ErrLogFull, txn.ErrNoRegion, region.ErrFull, nvram.ErrNoSpace,
}

// Storage is an error of storage as it passes go-mysql-server, which keeps of others than
// its own and MySQL's the text only.
func Storage(err error) error {
	if errors.Is(err, txn.ErrConflict) {
		return gms.ErrLockDeadlock.New(err.Error())
	}
	if slices.ContainsFunc(numbered, func(n error) bool { return errors.Is(err, n) }) {
		return Of(err)
	}
	return err
}
