package fast

import (
	"cmp"
	"slices"
	"unicode/utf8"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A rowStep sorts rows, or removes those that are equal to an earlier one.
type rowStep struct {
	by       []rowOrder
	distinct bool
}

// A rowOrder orders rows by one of their columns. NULL is below every value.
type rowOrder struct {
	place      int // position of the column among the columns read
	descending bool
	// weights are those of the column's characters, nil for integers.
	weights *row.Weights
	signed  bool
}

// follow translates the nodes above a plan's leaf, from the bottom up, to steps. It returns the
// table's columns that the result has. It returns false if a node cannot be translated.
func (d *direct) follow(ctx *gms.Context, n, leaf gms.Node, info *store.TableInfo) ([]int, bool) {
	if n == leaf {
		return d.leafColumns(ctx, n, info)
	}
	below, ok := []int(nil), false
	if children := n.Children(); len(children) == 1 {
		below, ok = d.follow(ctx, children[0], leaf, info)
	}
	if !ok {
		return nil, false
	}
	switch n := n.(type) {
	case *plan.Project:
		return projected(n.Projections, below)
	case *plan.Distinct:
		return below, len(n.Expressions()) == 0 && d.distinct(below)
	case *plan.Sort:
		return below, d.sort(n.SortFields, below)
	case *plan.GroupBy:
		return d.sum(n, below)
	}
	return nil, false
}

// leafColumns returns the table's columns that the plan's leaf n reads.
func (d *direct) leafColumns(ctx *gms.Context, n gms.Node, info *store.TableInfo) (columns []int, ok bool) {
	for _, c := range n.Schema(ctx) {
		columns = append(columns, info.Column(c.Name))
	}
	return columns, !slices.Contains(columns, -1)
}

// projected returns the table's columns that expressions name, as fieldOf does.
func projected(list []gms.Expression, below []int) (columns []int, ok bool) {
	for _, e := range list {
		if a, ok := e.(*expression.Alias); ok {
			e = a.Child
		}
		c, ok := fieldOf(e, below)
		if !ok {
			return nil, false
		}
		columns = append(columns, c)
	}
	return columns, true
}

// fieldOf returns the table's column that an expression names; below maps the child node's columns
// to the table's. false means that the expression is not a column.
func fieldOf(e gms.Expression, below []int) (int, bool) {
	f, ok := e.(*expression.GetField)
	if !ok || f.Index() < 0 || f.Index() >= len(below) {
		return 0, false
	}
	return below[f.Index()], true
}

// sum translates a GROUP BY without columns that sums up columns.
func (d *direct) sum(n *plan.GroupBy, below []int) (columns []int, ok bool) {
	if d.sums || len(d.steps) > 0 || len(n.GroupByExprs) > 0 {
		return nil, false
	}
	for _, e := range n.SelectDeps {
		if a, ok := e.(*expression.Alias); ok {
			e = a.Child
		}
		a, ok := e.(*compat.ExactAggregate)
		if !ok || a.Avg || a.Window() != nil {
			return nil, false
		}
		c, ok := fieldOf(a.Child, below)
		if !ok || !d.Rows.Columns[c].IsSummed() {
			return nil, false
		}
		columns = append(columns, c)
	}
	d.sums = true
	return columns, len(columns) > 0
}

// distinct adds the step of a DISTINCT; false if the columns cannot be ordered, or rows are
// summed.
func (d *direct) distinct(columns []int) bool {
	s := rowStep{distinct: true}
	for _, c := range columns {
		o, ok := d.order(c)
		if !ok {
			return false
		}
		s.by = append(s.by, o)
	}
	d.steps = append(d.steps, s)
	return !d.sums
}

// sort adds the step of an ORDER BY; false if it orders by something else than columns that can be ordered, puts NULLs
// last, or orders sums.
func (d *direct) sort(fields []gms.SortField, below []int) bool {
	var s rowStep
	for _, f := range fields {
		c, ok := fieldOf(f.Column, below)
		if !ok || f.NullOrdering != gms.NullsFirst {
			return false
		}
		o, ok := d.order(c)
		if !ok {
			return false
		}
		o.descending = f.Order == gms.Descending
		s.by = append(s.by, o)
	}
	d.steps = append(d.steps, s)
	return !d.sums
}

// order returns the order of a column; false if this package cannot compare its values.
func (d *direct) order(column int) (rowOrder, bool) {
	c := &d.Rows.Columns[column]
	if c.Virtual || !c.IsDirect() {
		return rowOrder{}, false
	}
	o := rowOrder{place: d.place(column), signed: c.IsSigned(), weights: row.WeightsOfType(c.Type)}
	return o, o.weights != nil || o.signed || c.IsUnsigned()
}

// arrange executes the steps in order. It returns false if a text has an invalid character.
func (d *directRun) arrange() bool {
	for i := range d.steps {
		s := &d.steps[i]
		ordered := i+1 < len(d.steps) && d.steps[i+1].covers(s)
		if s.distinct && !d.hasValidTexts(s.by) {
			return false
		}
		if !d.step(s, ordered) {
			return false
		}
	}
	return true
}

// step executes one step, and returns false if a text has an invalid character. Equal rows keep their
// order; but if ordered is set, because the next step orders all rows, a DISTINCT may leave the rows in
// any order.
func (d *directRun) step(s *rowStep, ordered bool) bool {
	c := rowComparison{directRun: d, by: s.by, valid: true}
	// Sort places in the present order, so that equal rows can keep it.
	places := d.room.places[:0]
	for i := range d.room.order {
		places = append(places, int32(i))
	}
	slices.SortFunc(places, c.compareInTurn)
	if s.distinct {
		places = slices.CompactFunc(places, func(a, b int32) bool { return c.compare(a, b) == 0 })
		if !ordered {
			slices.Sort(places) // back to the present order
		}
	}
	for i, at := range places { // places becomes the new order
		places[i] = d.room.order[at]
	}
	d.room.order, d.room.places = places, d.room.order // the next step overwrites the former order
	return c.valid
}

// covers reports whether a step orders rows by all columns of another step: if no two
// rows are equal in these, their earlier order does not matter.
func (s *rowStep) covers(other *rowStep) bool {
	return !slices.ContainsFunc(other.by, func(o rowOrder) bool {
		return !slices.ContainsFunc(s.by, func(own rowOrder) bool { return own.place == o.place })
	})
}

// hasValidTexts reports whether all texts in the given columns are valid UTF-8, as DISTINCT requires.
func (d *directRun) hasValidTexts(by []rowOrder) bool {
	for i := range by {
		if by[i].weights == nil {
			continue
		}
		for _, row := range d.room.order {
			if !utf8.Valid(d.cells(row)[by[i].place]) {
				return false
			}
		}
	}
	return true
}

// A rowComparison compares two rows of a run by the columns of an order.
type rowComparison struct {
	*directRun
	by    []rowOrder
	valid bool // no text so far has an invalid character
}

// compareInTurn compares rows, and keeps equal ones in their order.
func (c *rowComparison) compareInTurn(a, b int32) int {
	if n := c.compare(a, b); n != 0 {
		return n
	}
	return cmp.Compare(a, b)
}

func (c *rowComparison) compare(a, b int32) int {
	x, y := c.cells(c.room.order[a]), c.cells(c.room.order[b])
	for i := range c.by {
		o := &c.by[i]
		n, ok := o.compare(x[o.place], y[o.place])
		c.valid = c.valid && ok
		switch {
		case n == 0:
		case o.descending:
			return -n
		default:
			return n
		}
	}
	return 0
}

// compare compares two stored values; false if a text has an invalid character.
func (o *rowOrder) compare(a, b []byte) (int, bool) {
	switch {
	case a == nil && b == nil:
		return 0, true
	case a == nil:
		return -1, true
	case b == nil:
		return 1, true
	case o.weights != nil:
		return row.CompareWeights(o.weights, a, b)
	case o.signed:
		x, _ := row.ReadInt(a)
		y, _ := row.ReadInt(b)
		return cmp.Compare(x, y), true
	}
	x, _ := row.ReadUint(a)
	y, _ := row.ReadUint(b)
	return cmp.Compare(x, y), true
}
