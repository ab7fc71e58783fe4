package exec

import (
	"errors"
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// union returns the rows of a Union.
func (r *run) union(ctx *gms.Context, n *plan.Union) (gms.RowIter, error) {
	first, err := r.open(ctx, n.First)
	if err != nil {
		return nil, err
	}
	second, err := r.open(ctx, n.Second)
	if err != nil {
		_ = first.Close(ctx) // the first error is the one to return
		return nil, err
	}
	return &union{first: first, second: second}, nil
}

// A union returns the rows of first, and then those of second.
type union struct {
	first, second gms.RowIter
	isOver        bool // first has no more rows
}

// Next implements gms.RowIter.
func (u *union) Next(ctx *gms.Context) (gms.Row, error) {
	if !u.isOver {
		row, err := u.first.Next(ctx)
		if err != io.EOF {
			return row, err
		}
		u.isOver = true
	}
	return u.second.Next(ctx)
}

// Close implements gms.RowIter.
func (u *union) Close(ctx *gms.Context) error {
	return errors.Join(u.first.Close(ctx), u.second.Close(ctx))
}
