package exec

import (
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// join returns the rows of a join by nested loops: for each row of a table, the rows of the next are
// looked up.
func (r *run) join(ctx *gms.Context, n *plan.Join) (gms.RowIter, error) {
	if r.s.ForUpdate {
		return nil, ErrPlan // it would have to lock the rows of all tables that are returned, and no others
	}
	o := r.chooseOrder(ctx, n)
	scan := n.Tables[o.Outer].Scan
	rows, err := r.scanBy(ctx, scan, accessOf(scan, o.Access))
	if err != nil {
		return nil, err
	}
	where, ok := r.joinTest(n, o.Where)
	if !ok {
		return nil, ErrPlan
	}
	rows = &widened{rows, where, n.Tables[o.Outer].Offset, n.Width()}
	for i := range o.Steps {
		if rows, ok = r.step(n, &o.Steps[i], rows); !ok {
			return nil, ErrPlan
		}
	}
	return rows, nil
}

// joinTest returns the test of some of a join's conditions; false if a value is not plain.
func (r *run) joinTest(n *plan.Join, numbers []int) (test, bool) {
	var all plan.And
	for _, i := range numbers {
		all = append(all, n.Where[i])
	}
	return joinCompiler(n, r.values).compile(all)
}

// joinCompiler compiles conditions on the rows of a join.
func joinCompiler(n *plan.Join, values []plan.Value) *compiler {
	return &compiler{n.Place, func(column int) *row.KeyCodec {
		t, own := n.Column(column)
		return t.Codec(own)
	}, values}
}

// A widened returns the rows of a join's outermost table with room for those of the others.
type widened struct {
	gms.RowIter
	where     test
	at, width int
}

// Next implements gms.RowIter.
func (w *widened) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := w.RowIter.Next(ctx)
		if err != nil {
			return nil, err
		}
		wide := make(gms.Row, w.width)
		copy(wide[w.at:], row)
		v, err := w.where(ctx, wide)
		if err != nil || v == isTrue {
			return wide, err
		}
	}
}

// A step joins the rows of the tables before with those of a table that are looked up for them.
type step struct {
	gms.RowIter
	r      *run
	table  *store.Table
	lookup *lookup
	passes func(*gms.Context, gms.Row) (bool, error)
	// on decides whether a row belongs to that of the tables before, and where whether what results is
	// returned.
	on, where test
	at, width int
	// isLeft is set if a row of the tables before to which none belongs is joined with NULLs, matched if
	// one belongs to the present row.
	isLeft, matched bool
	// reverse is set if rows are looked up backwards, isUnique if there is one at most.
	reverse, isUnique bool
	// outer is the present row of the tables before, nil if there is none; the table's columns in it
	// are those of the row looked at last. found are the rows that are looked up for it.
	outer gms.Row
	found gms.RowIter
	looks int
}

// step returns the rows of a step; false if a value is not plain.
func (r *run) step(n *plan.Join, s *plan.JoinStep, outer gms.RowIter) (gms.RowIter, bool) {
	t := &n.Tables[s.Table]
	own := compiler{t.Scan.Place, t.Table.Codec, r.values}
	passes, ok := own.compile(whereOf(t.Scan))
	where, can := r.joinTest(n, s.Where)
	on, will := joinCompiler(n, r.values).compile(plan.And(t.On))
	l, is := r.newLookup(n, s)
	return &step{
		RowIter: outer, r: r, lookup: l, passes: passing(passes), on: on, where: where, at: t.Offset, width: t.Width(), isLeft: t.Left, reverse: s.Reverse,
		table: &store.Table{Store: r.s.Store, Info: t.Table, Columns: t.Columns}, isUnique: s.Lookup.IsUnique(t.Table),
	}, ok && can && will && is
}

// Next implements gms.RowIter.
func (s *step) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		if s.outer == nil {
			if err := s.next(ctx); err != nil {
				return nil, err
			}
		}
		isLast, err := s.match(ctx)
		if err != nil {
			return nil, err
		}
		outer := s.outer
		if isLast {
			s.outer = nil
			if !s.isLeft || s.matched {
				continue
			}
			clear(outer[s.at : s.at+s.width])
		}
		v, err := s.where(ctx, outer)
		switch {
		case err != nil:
			return nil, err
		case v != isTrue:
		case isLast:
			return outer, nil
		case s.isUnique:
			s.outer = nil
			return outer, nil
		default:
			return slices.Clone(outer), nil
		}
	}
}

// match joins the present row of the tables before with the next one that belongs to it; isLast is set
// if there is no more.
func (s *step) match(ctx *gms.Context) (isLast bool, err error) {
	for {
		row, err := s.found.Next(ctx)
		if err != nil {
			return err == io.EOF, unlessEnd(err)
		}
		copy(s.outer[s.at:], row)
		v, err := s.on(ctx, s.outer)
		if err != nil || v == isTrue {
			s.matched = true
			return false, err
		}
	}
}

// unlessEnd returns an error that is not the end of rows.
func unlessEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// next takes the next row of the tables before, and looks up those that belong to it.
func (s *step) next(ctx *gms.Context) error {
	if s.looks++; s.looks%store.RowsBetweenLooks == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	outer, err := s.RowIter.Next(ctx)
	if err != nil {
		return err
	}
	k, ok, err := s.lookup.rangeFor(outer)
	if err != nil {
		return err
	}
	s.outer, s.matched, s.found = outer, false, gms.RowsToRowIter()
	if ok {
		s.found = s.table.Rows(s.r.s, s.r.tr, &store.Scan{
			Index: s.lookup.index, Ranges: []store.KeyRange{k}, Reverse: s.reverse, Passes: s.passes,
		})
	}
	return nil
}
