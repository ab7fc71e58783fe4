package exec

import (
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/executor"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// A run is one execution of a Query.
type run struct {
	prepared *prepared
	narrow   Narrower
	header   *Header
	query    *plan.Query
	s        *store.Session
	tr       *store.Transaction
	values   []plan.Value
	// isChosen is set once chooses is known. chooses is set if this execution chooses accesses
	// and orders anew.
	isChosen, chooses bool
	// hasChosen marks the sources for which this execution has chosen.
	hasChosen [plan.SourcesMax]bool
	taken     int64 // the memory of rows to be returned or changed
	skip      skip  // for the scan that is about to be opened
	// mayWarn is set if the execution may warn: a SELECT may. warned counts its warnings, also those that are not recorded.
	mayWarn bool
	warned  int
	packets *Packets
}

// open returns the rows of a node.
func (r *run) open(ctx *gms.Context, n plan.Node) (gms.RowIter, error) {
	switch n := n.(type) {
	case plan.One:
		return gms.RowsToRowIter(gms.Row{}), nil
	case *plan.Scan:
		return r.scan(ctx, n)
	case *plan.Shown:
		return r.shown(ctx, n)
	case *plan.Join:
		return r.join(ctx, n)
	case *plan.Derived:
		return r.open(ctx, n.Child)
	case *plan.Union:
		return r.union(ctx, n)
	case *plan.Exists:
		return r.exists(ctx, n)
	case *plan.When:
		return r.when(ctx, n)
	case *plan.Filter:
		return r.above(ctx, n.Child, func(rows gms.RowIter) gms.RowIter { return &filter{rows, n.Cond} })
	case *plan.Project:
		return r.above(ctx, n.Child, func(rows gms.RowIter) gms.RowIter { return &project{rows, n.Exprs} })
	case *plan.Group:
		if scan, ok := countsRows(ctx, n); ok {
			return r.counted(ctx, scan)
		}
		if rows, ok, err := r.totals(ctx, n); ok || err != nil {
			return rows, err
		}
		if rows, err := r.storedGroups(ctx, n); rows != nil || err != nil {
			return rows, err
		}
		return r.above(ctx, n.Child, func(rows gms.RowIter) gms.RowIter {
			return executor.NewGroups(ctx, &r.s.Holding, gmsplan.NewGroupBy(n.Exprs, n.By, nil), rows)
		})
	case *plan.Window:
		return r.above(ctx, n.Child, func(rows gms.RowIter) gms.RowIter { return &windows{RowIter: rows, exprs: n.Exprs, h: &r.s.Holding} })
	case *plan.Distinct:
		return r.above(ctx, n.Child, func(rows gms.RowIter) gms.RowIter {
			return compat.NewDistinctRows(&r.s.Holding, rows, n.Schema)
		})
	case *plan.Sort:
		return r.sort(ctx, n)
	case *plan.Limit:
		return r.limit(ctx, n)
	}
	return nil, ErrPlan
}

// above opens a node, and returns the rows that an operator makes of the node's rows.
func (r *run) above(ctx *gms.Context, child plan.Node, operator func(gms.RowIter) gms.RowIter) (gms.RowIter, error) {
	rows, err := r.open(ctx, child)
	if err != nil {
		return nil, err
	}
	return operator(rows), nil
}

// all returns the rows of the query, and counts their memory.
func (r *run) all(ctx *gms.Context) ([]gms.Row, error) {
	rows, err := r.open(ctx, r.query.Rows)
	if err != nil {
		return nil, err
	}
	return r.collect(ctx, rows, nil)
}

// collect returns the rows of an iterator, which it closes, and counts their memory. after, if it is not nil, is called
// after each row.
func (r *run) collect(ctx *gms.Context, rows gms.RowIter, after func()) ([]gms.Row, error) {
	var out []gms.Row
	for {
		row, err := rows.Next(ctx)
		if err == io.EOF {
			return out, rows.Close(ctx)
		}
		if err == nil {
			err = r.keep(row)
		}
		if err == nil && len(out)%store.RowsBetweenLooks == 0 {
			err = ctx.Err()
		}
		if err != nil {
			_ = rows.Close(ctx) // the first error is the one to return
			return nil, err
		}
		if out = append(out, row); after != nil {
			after()
		}
	}
}

// changes reports whether the statement changes rows of a table.
func (r *run) changes(t *store.TableInfo) bool { return slices.Contains(r.query.Changed(), t) }

// keep counts the memory of a row.
func (r *run) keep(row gms.Row) error {
	return r.take(store.RowMemory(row))
}

// take counts memory that is given back when the execution ends.
func (r *run) take(n int64) error {
	err := r.s.Holding.Take(n)
	if err == nil {
		r.taken += n
	}
	return err
}
