package exec

import (
	"io"
	"slices"
	"sort"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// sort returns the rows of a sort's child in order. If the child is a scan whose rows come in this
// order, they are returned as they come.
func (r *run) sort(ctx *gms.Context, n *plan.Sort) (gms.RowIter, error) {
	if r.isOrdered(ctx, n.Child) {
		return r.open(ctx, n.Child)
	}
	return r.above(ctx, n.Child, func(rows gms.RowIter) gms.RowIter {
		return &sorter{RowIter: rows, order: newOrder(ctx, n.By), wanted: r.wanted(n.Wants), h: &r.s.Holding}
	})
}

// isOrdered reports whether the rows of a node come in the wanted order.
func (r *run) isOrdered(ctx *gms.Context, n plan.Node) bool {
	switch n := n.(type) {
	case *plan.Scan:
		return r.choose(ctx, n).Ordered
	case *plan.Join:
		return r.chooseOrder(ctx, n).Ordered
	}
	return false
}

// A sorter returns the first rows in an order: all, or as many as a LIMIT wants. Equal rows keep their order.
type sorter struct {
	gms.RowIter
	order  *order
	wanted int64
	h      *store.Holding
	sorted []sortedRow // not nil once all rows have been read
	taken  int64
}

// A sortedRow is a row with the values that it is sorted by.
type sortedRow struct {
	by, row gms.Row
}

// topMax is the greatest number of wanted rows for which only that many rows are kept.
const topMax = 1 << 10

// Next implements gms.RowIter.
func (s *sorter) Next(ctx *gms.Context) (gms.Row, error) {
	if s.sorted == nil {
		if err := s.read(ctx); err != nil {
			return nil, err
		}
	}
	if len(s.sorted) == 0 {
		return nil, io.EOF
	}
	row := s.sorted[0].row
	s.sorted = s.sorted[1:]
	return row, nil
}

func (s *sorter) read(ctx *gms.Context) error {
	s.sorted = []sortedRow{}
	for n := 0; s.wanted > 0; n++ {
		row, err := s.RowIter.Next(ctx)
		if err == io.EOF {
			break
		}
		if err == nil && n%store.RowsBetweenLooks == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := s.add(ctx, row); err != nil {
			return err
		}
	}
	if s.wanted > topMax {
		slices.SortStableFunc(s.sorted, func(a, b sortedRow) int { return s.order.compare(ctx, a.by, b.by) })
	}
	return s.order.err
}

// add keeps a row, unless enough kept rows come before it, and drops a kept row that is not wanted any more.
func (s *sorter) add(ctx *gms.Context, row gms.Row) error {
	by, err := s.order.valuesOf(ctx, row)
	if err != nil {
		return err
	}
	at := len(s.sorted)
	if s.wanted <= topMax { // keep the rows in order
		at = sort.Search(len(s.sorted), func(i int) bool { return s.order.compare(ctx, s.sorted[i].by, by) > 0 })
		if at == int(s.wanted) {
			return nil
		}
		if len(s.sorted) == int(s.wanted) {
			last := len(s.sorted) - 1
			s.give(s.sorted[last])
			s.sorted = s.sorted[:last]
		}
	}
	kept := sortedRow{by, row}
	if err := s.h.Take(kept.memory()); err != nil {
		return err
	}
	s.taken += kept.memory()
	s.sorted = slices.Insert(s.sorted, at, kept)
	return nil
}

func (r sortedRow) memory() int64 { return store.RowMemory(r.by) + store.RowMemory(r.row) }

func (s *sorter) give(r sortedRow) {
	s.h.Give(r.memory())
	s.taken -= r.memory()
}

// Close implements gms.RowIter.
func (s *sorter) Close(ctx *gms.Context) error {
	s.h.Give(s.taken)
	s.taken, s.sorted = 0, []sortedRow{}
	return s.RowIter.Close(ctx)
}

// An order compares rows.
type order struct {
	by      []plan.Order
	types   []gms.Type
	weights []*row.Weights
	err     error // the first error of a comparison
}

func newOrder(ctx *gms.Context, by []plan.Order) *order {
	o := &order{by: by}
	for i := range by {
		t := by[i].Expr.Type(ctx)
		o.types, o.weights = append(o.types, t), append(o.weights, row.WeightsOfType(t))
	}
	return o
}

// valuesOf returns the values that a row is sorted by.
func (o *order) valuesOf(ctx *gms.Context, row gms.Row) (gms.Row, error) {
	by := make(gms.Row, len(o.by))
	for i := range o.by {
		v, err := o.by[i].Expr.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		if by[i], err = gms.UnwrapAny(ctx, v); err != nil {
			return nil, err
		}
	}
	return by, nil
}

// compare compares the values that two rows are sorted by. An error is kept, and makes them equal.
func (o *order) compare(ctx *gms.Context, a, b gms.Row) int {
	for i := range o.by {
		n, err := o.compareValues(ctx, i, a[i], b[i])
		if err != nil && o.err == nil {
			o.err = err
		}
		switch {
		case n == 0:
		case o.by[i].Desc:
			return -n
		default:
			return n
		}
	}
	return 0
}

func (o *order) compareValues(ctx *gms.Context, i int, a, b any) (int, error) {
	switch {
	case a == nil && b == nil:
		return 0, nil
	case a == nil:
		return -1, nil
	case b == nil:
		return 1, nil
	}
	if w := o.weights[i]; w != nil {
		x, isText := a.(string)
		y, isOtherText := b.(string)
		if isText && isOtherText {
			if n, ok := w.Compare(x, y); ok {
				return n, nil
			}
		}
	}
	return o.types[i].Compare(ctx, a, b)
}
