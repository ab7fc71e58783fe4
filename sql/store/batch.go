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

// batchRows is the number of rows that a scan of which all rows are read reads ahead.
const batchRows = 64

// following returns the next row of the cursor.
func (i *rowIter) following() (region.Ptr, bool, error) {
	many, is := i.cur.(manyCursor)
	if !i.scan.Whole || !is {
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

// skippedTogether is the number of rows that are left out between two looks at the statement's end.
const skippedTogether = 4096

// skipRows leaves out rows at the beginning.
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
		_, ok, err := i.row(ctx)
		if err != nil || !ok {
			return err
		}
		i.skip--
	}
	return nil
}

// skipInRange leaves out up to n rows of the present range, and returns how many: none if there are
// none left, or if the cursor passes entries one by one only.
func (i *rowIter) skipInRange(n int64) (int64, error) {
	many, is := i.cur.(manyCursor)
	if !is {
		return 0, nil
	}
	skipped, err := many.Skip(int(min(n, skippedTogether)))
	return int64(skipped), err
}
