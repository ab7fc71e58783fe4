package exec

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"

	"github.com/farmsql/farmsql/sql/store"
)

// A windows returns a row for each row of its child: columns of that row, and window functions.
// go-mysql-server computes the functions once all rows have been read.
type windows struct {
	gms.RowIter
	exprs []gms.Expression
	h     *store.Holding
	taken int64
	// rows has the rows of the child. results returns the values of their functions; nil until all rows have been read.
	rows    []gms.Row
	results gms.RowIter
}

// windowBytes is about the memory that go-mysql-server takes for a row in each window, beyond its values.
const windowBytes = 120

// Next implements gms.RowIter.
func (w *windows) Next(ctx *gms.Context) (gms.Row, error) {
	if w.results == nil {
		if err := w.read(ctx); err != nil {
			return nil, err
		}
	}
	if len(w.rows) == 0 {
		return nil, io.EOF
	}
	row := w.rows[0]
	w.rows = w.rows[1:]
	functions, err := w.results.Next(ctx)
	if err != nil {
		return nil, err
	}
	out := make(gms.Row, len(w.exprs))
	for i, e := range w.exprs {
		if f, ok := e.(*expression.GetField); ok {
			out[i] = row[f.Index()]
			continue
		}
		out[i] = functions[0]
		functions = functions[1:]
	}
	return out, nil
}

// read reads the rows of the child, and makes the iterator of their functions.
func (w *windows) read(ctx *gms.Context) error {
	partitions, ordinals, err := partitionsOf(ctx, w.exprs)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		row, err := w.RowIter.Next(ctx)
		if err == io.EOF {
			break
		}
		if err == nil && n%store.RowsBetweenLooks == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = w.keep(row, len(partitions))
		}
		if err != nil {
			return err
		}
	}
	w.results = aggregation.NewWindowIter(partitions, ordinals, gms.RowsToRowIter(w.rows...))
	return nil
}

// keep keeps a row for this number of windows.
func (w *windows) keep(row gms.Row, windows int) error {
	n := store.RowMemory(row) + int64(windows)*(windowBytes+16*int64(len(row))) // 16: a value's interface
	if err := w.h.Take(n); err != nil {
		return err
	}
	w.taken += n
	// Each window appends to the row. A row without spare capacity is copied then.
	w.rows = append(w.rows, row[:len(row):len(row)])
	return nil
}

// partitionsOf returns an iterator for each window of the window functions in exprs, and for each
// iterator the numbers of the functions that it computes.
func partitionsOf(ctx *gms.Context, exprs []gms.Expression) (iters []*aggregation.WindowPartitionIter, ordinals [][]int, err error) {
	places := make(map[uint64]int) // the place of each window in partitions
	var partitions []*aggregation.WindowPartition
	number := 0 // of the window function
	for _, e := range exprs {
		f, ok := e.(gms.WindowAdaptableExpression)
		if !ok {
			continue
		}
		fn, err := f.NewWindowFunction(ctx)
		if err != nil {
			return nil, nil, err
		}
		id, err := f.Window().PartitionId()
		if err != nil {
			return nil, nil, err
		}
		at, ok := places[id]
		if !ok {
			at = len(partitions)
			places[id] = at
			partitions = append(partitions, aggregation.NewWindowPartition(f.Window().PartitionBy, f.Window().OrderBy, nil))
			ordinals = append(ordinals, nil)
		}
		partitions[at].AddAggregation(aggregation.NewAggregation(fn, fn.DefaultFramer()))
		ordinals[at] = append(ordinals[at], number)
		number++
	}
	for _, p := range partitions {
		iters = append(iters, aggregation.NewWindowPartitionIter(p))
	}
	return iters, ordinals, nil
}

// Close implements gms.RowIter.
func (w *windows) Close(ctx *gms.Context) error {
	w.h.Give(w.taken)
	w.taken, w.rows = 0, nil
	if w.results != nil {
		_ = w.results.Close(ctx) // the close only drops its functions
	}
	return w.RowIter.Close(ctx)
}
