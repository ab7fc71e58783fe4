package plan

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// A Subquery is a SELECT in an expression. It runs for each outer row if it uses the outer row's
// columns, otherwise once for each execution.
type Subquery struct {
	// Rows returns the rows of the SELECT.
	Rows   Node
	number int
	outer  []*Outer
	// computed has the values that are computed from outer.
	computed []computed
	// rows and values belong to the present execution. isKnown is set if value holds for all outer rows.
	rows    RowSource
	values  []Value
	isKnown bool
	value   any
	// members has the rows among which a column is looked for.
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

// finish completes the subqueries of a query: it optimises and prunes them, and gives them the computed values that depend
// on their Outers. It numbers their sources from next on, and returns the number after them.
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

// each calls f for each row of the subquery, until f returns an error.
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

// Begin begins an execution with these values. rows opens its nodes.
func (q *Query) Begin(rows RowSource, values []Value) {
	for _, s := range q.subqueries {
		s.rows, s.values = rows, values
	}
}

// End ends an execution, and drops its state.
func (q *Query) End() {
	for _, s := range q.subqueries {
		s.rows, s.values, s.isKnown, s.value, s.members = nil, nil, false, nil, nil
		for _, o := range s.outer {
			o.value = nil
		}
	}
}

// closed closes rows after an error, and returns the error. After io.EOF it returns the error of the close.
func closed(ctx *gms.Context, rows gms.RowIter, err error) error {
	if end := rows.Close(ctx); err == io.EOF {
		return end
	}
	return err
}
