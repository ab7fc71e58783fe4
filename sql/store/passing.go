package store

import (
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// This file decides by the stored form of rows whether they pass, and counts those that do.

// loadPassing reads a row, and locks it if it passes and the statement locks its rows. It returns the
// row if it passes; if rows are only counted, it may return nil in its place.
func (i *rowIter) loadPassing(ctx *gms.Context, p region.Ptr, counted bool) (passes bool, r gms.Row, err error) {
	b, err := i.stored(p)
	if err != nil {
		return false, nil, err
	}
	if i.view, err = row.Parse(b); err != nil {
		return false, nil, err
	}
	verdict := i.verdict()
	if verdict == No {
		return false, nil, nil
	}
	if verdict == Maybe || !counted {
		if r, err = i.decode(b); err != nil {
			return false, nil, err
		}
	}
	if verdict == Maybe {
		if ok, err := i.scan.Passes(ctx, r); !ok || err != nil {
			return false, nil, err
		}
	}
	if i.write {
		if _, err := i.tr.Tx.Write(p); err != nil {
			return false, nil, err
		}
	}
	return true, r, nil
}

// decode returns the columns of a stored row that the scan returns.
func (i *rowIter) decode(b []byte) (gms.Row, error) {
	if i.t.Sparse != nil {
		return i.t.Info.Rows.DecodeSparse(i.tr.Tx, b, i.t.Sparse)
	}
	return i.t.Info.Rows.Decode(i.tr.Tx, b, i.t.Columns)
}

// stored reads a row, and returns its stored form, which is valid until the next call.
func (i *rowIter) stored(p region.Ptr) ([]byte, error) {
	switch {
	case i.parts > 0 && i.t.Columns != nil:
		i.parts--
		if i.part == nil {
			i.part = &row.Part{Rows: i.t.Info.Rows, Columns: i.t.Columns}
		}
		return i.tr.Tx.ReadPart(p, i.part)
	case (i.scan.Whole || i.once) && !i.write && !i.scan.Changes:
		// Each row is looked at once and not changed, so the transaction need not keep its bytes.
		return i.tr.Tx.ReadInto(p, &i.room)
	}
	return i.tr.Tx.Read(p)
}

// verdict decides, as far as the row's stored form tells, whether the row passes.
func (i *rowIter) verdict() Verdict {
	switch {
	case i.scan.Passes == nil:
		return Yes
	case i.scan.Stored == nil:
		return Maybe
	}
	return i.scan.Stored(&i.view)
}

// Count returns the number of rows of the scan. It reads no rows if the index alone decides which rows pass.
func (i *rowIter) Count(ctx *gms.Context) (n int64, err error) {
	if i.scan.Passes == nil && !i.write && !i.scan.hasChecks() {
		return i.countKeys(ctx)
	}
	for {
		ok, err := i.nextPassing(ctx)
		if err != nil || !ok {
			return n, myerr.Storage(err)
		}
		n++
	}
}

// NextStored returns the next row of the scan in its stored form, which is valid until the next call;
// nil if there is none.
func (i *rowIter) NextStored(ctx *gms.Context) (*row.View, error) {
	ok, err := i.nextPassing(ctx)
	if err != nil || !ok {
		return nil, myerr.Storage(err)
	}
	return &i.view, nil
}

// StoredValue returns a column of a row that NextStored has returned, as it is stored; nil for NULL.
func (i *rowIter) StoredValue(v *row.View, at int) ([]byte, error) {
	b, err := i.t.Info.Rows.StoredValue(i.tr.Tx, v, at)
	return b, myerr.Storage(err)
}

// nextPassing moves to the next row that passes; false at the end.
func (i *rowIter) nextPassing(ctx *gms.Context) (bool, error) {
	i.once = true
	for {
		if i.rows%RowsBetweenLooks == 0 {
			if err := i.look(ctx); err != nil {
				return false, err
			}
		}
		i.rows++
		if err := i.begin(ctx); err != nil {
			return false, err
		}
		p, ok, err := i.row(ctx)
		if err != nil || !ok {
			return false, err
		}
		passes, _, err := i.loadPassing(ctx, p, true)
		if passes || err != nil {
			return passes, err
		}
	}
}

// look returns an error if the statement has ended or reads too much.
func (i *rowIter) look(ctx *gms.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.s.holdRead(i.tr)
}

// hasChecks reports whether rows must be read to know whether they are within the ranges.
func (s *Scan) hasChecks() bool {
	for i := range s.Ranges {
		if s.Ranges[i].Rest != nil || s.Ranges[i].Check != nil {
			return true
		}
	}
	return false
}

// countKeys is Count for a scan whose rows all pass. The transaction then depends only on the existence of the rows.
func (i *rowIter) countKeys(ctx *gms.Context) (n int64, err error) {
	i.scan.keysOnly, i.collect = true, false
	for {
		skipped, err := i.skipInRange(math.MaxInt64)
		if err == nil {
			err = i.look(ctx)
		}
		if err != nil {
			return 0, myerr.Storage(err)
		}
		if n += skipped; skipped > 0 {
			continue
		}
		_, ok, err := i.entry(ctx)
		if err != nil || !ok {
			return n, myerr.Storage(err)
		}
		n++
	}
}
