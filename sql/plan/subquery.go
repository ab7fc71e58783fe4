package plan

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// A Subquery is a SELECT in an expression. It is run for each row of the query around if it uses columns
// of that, else once for each execution.
type Subquery struct {
	// Rows are the rows of the SELECT.
	Rows   Node
	number int
	outer  []*Outer
	// computed are the values that are computed of outer.
	computed []computed
	// rows and values are those of the present execution. isKnown is set if value is that of every row.
	rows    RowSource
	values  []Value
	isKnown bool
	value   any
	// members are the rows that a column is looked for in.
	members *members
}

// A RowSource runs the nodes of a Query.
type RowSource interface {
	// Open returns the rows of a node.
	Open(ctx *gms.Context, n Node) (gms.RowIter, error)
	// Keep counts bytes that are kept until the execution ends.
	Keep(n int64) error
}

// single returns the value of the subquery's only row, nil if it has none.
func (q *Subquery) single(ctx *gms.Context) (v any, err error) {
	n := 0
	err = q.each(ctx, func(row gms.Row) error {
		if n++; n > 1 {
			return gms.ErrExpectedSingleRow.New()
		}
		v = row[0]
		return nil
	})
	return v, err
}

// finish optimises the subqueries of a query, and numbers their sources from next on; it returns the
// number after them.
func (b *builder) finish(next int) (int, error) {
	for _, q := range b.subqueries {
		var err error
		if q.Rows, err = optimise(b.ctx, q.Rows); err != nil {
			return 0, err
		}
		if err := prune(b.ctx, q.Rows); err != nil {
			return 0, err
		}
		next = numberSources(q.Rows, next)
		for _, c := range b.computed {
			if c.within == q {
				q.computed = append(q.computed, c)
			}
		}
	}
	return next, nil
}

// each calls f for each row of the subquery, until that returns an error.
func (q *Subquery) each(ctx *gms.Context, f func(gms.Row) error) error {
	rows, err := q.rows.Open(ctx, q.Rows)
	if err != nil {
		return err
	}
	for {
		row, err := rows.Next(ctx)
		if err == nil {
			err = f(row)
		}
		if err != nil {
			return closed(ctx, rows, err)
		}
	}
}

// Begin begins an execution, whose rows come from a source and which has these values.
func (q *Query) Begin(rows RowSource, values []Value) {
	for _, s := range q.subqueries {
		s.rows, s.values = rows, values
	}
}

// End ends an execution: nothing of it is kept.
func (q *Query) End() {
	for _, s := range q.subqueries {
		s.rows, s.values, s.isKnown, s.value, s.members = nil, nil, false, nil, nil
		for _, o := range s.outer {
			o.value = nil
		}
	}
}

// closed closes rows after an error, and returns the error; that of the close if it was only their end.
func closed(ctx *gms.Context, rows gms.RowIter, err error) error {
	if end := rows.Close(ctx); err == io.EOF {
		return end
	}
	return err
}
