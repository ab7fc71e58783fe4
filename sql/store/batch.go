package store

import (
	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
)

// A manyCursor is a cursor that passes many entries together.
type manyCursor interface {
	cursor
	Skip(n int) (int, error)
	NextMany(values []region.Ptr, n int) ([]region.Ptr, error)
}

var _ manyCursor = (*treeCursor)(nil)

// batchRows is the number of rows that a scan reads ahead if its caller reads all rows.
const batchRows = 64

// following returns the next row of the cursor.
func (i *rowIter) following() (region.Ptr, bool, error) {
	many, ok := i.cur.(manyCursor)
	if !i.scan.Whole || !ok {
		_, p, ok, err := i.cur.Next()
		return p, ok, err
	}
	if len(i.batch) == 0 {
		var err error
		i.batchRoom, err = many.NextMany(i.batchRoom[:0], batchRows)
		if i.batch = i.batchRoom; err != nil || len(i.batch) == 0 {
			return region.Ptr{}, false, err
		}
	}
	if i.tr.Editing == 0 { // otherwise no row is read before all keys are collected
		i.readAhead(i.batch)
	}
	p := i.batch[0]
	i.batch = i.batch[1:]
	return p, true, nil
}

// skippedTogether is the number of rows that are skipped between two checks whether the statement has ended.
const skippedTogether = 4096

// skipRows skips the first rows of the scan.
func (i *rowIter) skipRows(ctx *gms.Context) error {
	for i.skip > 0 {
		if err := i.look(ctx); err != nil {
			return err
		}
		n, err := i.skipInRange(i.skip)
		if err != nil {
			return err
		}
		if i.skip -= n; n > 0 {
			continue
		}
		// The next row is in another range, or must be passed by itself.
		_, ok, err := i.row(ctx)
		if err != nil || !ok {
			return err
		}
		i.skip--
	}
	return nil
}

// skipInRange skips up to n rows of the present range, and returns how many it has skipped. It returns 0 at the end of
// the range, and if the cursor can pass entries only one by one.
func (i *rowIter) skipInRange(n int64) (int64, error) {
	many, ok := i.cur.(manyCursor)
	if !ok {
		return 0, nil
	}
	skipped, err := many.Skip(int(min(n, skippedTogether)))
	return int64(skipped), err
}
