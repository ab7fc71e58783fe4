package executor

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/hash"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// This file executes GROUP BY as go-mysql-server does, but counts the memory of the
// groups. go-mysql-server's iterator also waits for ever if an aggregate fails while rows
// are left.

var (
	_ gms.RowIter    = (*groupIter)(nil)
	_ gms.Expression = (*heldValue)(nil)
)

// groupBytes is the memory of a group, and bufferBytes that of one of its aggregates,
// without values.
const (
	groupBytes  = 160
	bufferBytes = 120
)

// GroupBy executes GROUP BY.
func (x Executor) GroupBy(ctx *gms.Context, n *plan.GroupBy, row gms.Row) (gms.RowIter, error) {
	rows, err := x.Builder.Build(ctx, n.Child, row)
	if err != nil {
		return nil, err
	}
	return newGroupIter(ctx, x.Holding, n, rows), nil
}

// A groupIter returns a row for each group of rows.
type groupIter struct {
	rows    gms.RowIter
	h       *store.Holding
	bytes   int64 // bytes that h counts for the groups
	by      []gms.Expression
	schema  gms.Schema
	columns []gms.Expression
	holds   []holds
	key     gms.Row
	groups  map[uint64]int
	buffers [][]gms.AggregationBuffer // the aggregates' buffers, by group
	read    bool
	next    int
	// isEachRow is set if each row is a group: there are neither keys to group by nor aggregates besides ANY_VALUE.
	isEachRow bool
}

// NewGroups returns the rows of a GROUP BY over rows, whatever its child is. It counts the memory in h.
func NewGroups(ctx *gms.Context, h *store.Holding, n *plan.GroupBy, rows gms.RowIter) gms.RowIter {
	return newGroupIter(ctx, h, n, rows)
}

func newGroupIter(ctx *gms.Context, h *store.Holding, n *plan.GroupBy, rows gms.RowIter) *groupIter {
	i := &groupIter{rows: rows, h: h, by: n.GroupByExprs, columns: n.SelectDeps, schema: hash.ExprsToSchema(ctx, n.GroupByExprs...),
		key: make(gms.Row, len(n.GroupByExprs)), groups: make(map[uint64]int), isEachRow: len(n.GroupByExprs) == 0}
	for _, c := range i.columns {
		i.holds = append(i.holds, holdsOf(ctx, c))
		if a, ok := c.(gms.Aggregation); ok {
			if _, ok := a.(*aggregation.AnyValue); !ok {
				i.isEachRow = false
			}
		}
	}
	return i
}

// Next implements gms.RowIter.
func (i *groupIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.isEachRow {
		return i.singleGroup(ctx)
	}
	if !i.read {
		if err := i.readAll(ctx); err != nil {
			return nil, err
		}
		i.read = true
	}
	if i.next == len(i.buffers) {
		return nil, io.EOF
	}
	i.next++
	return evaluated(ctx, i.buffers[i.next-1])
}

// singleGroup returns the result of a group that has only the next row.
func (i *groupIter) singleGroup(ctx *gms.Context) (gms.Row, error) {
	row, err := i.rows.Next(ctx)
	if err != nil {
		return nil, err
	}
	group, err := i.newGroup(ctx)
	if err != nil {
		return nil, err
	}
	if err := update(ctx, group, row); err != nil {
		return nil, err
	}
	return evaluated(ctx, group)
}

// readAll reads all rows, and adds each to its group.
func (i *groupIter) readAll(ctx *gms.Context) error {
	if len(i.by) == 0 { // there is one group, even without rows
		if err := i.addGroup(ctx, 0, nil); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		row, err := i.rows.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err == nil && n%store.RowsBetweenLooks == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := i.add(ctx, row); err != nil {
			return err
		}
	}
}

// add adds a row to its group.
func (i *groupIter) add(ctx *gms.Context, row gms.Row) error {
	key, err := i.keyOf(ctx, row)
	if err != nil {
		return err
	}
	at, ok := i.groups[key]
	if !ok {
		at = len(i.buffers)
		if err := i.addGroup(ctx, key, row); err != nil {
			return err
		}
	}
	return update(ctx, i.buffers[at], row)
}

// keyOf returns a hash of the row's grouped values.
func (i *groupIter) keyOf(ctx *gms.Context, row gms.Row) (uint64, error) {
	if len(i.by) == 0 {
		return 0, nil
	}
	for at, e := range i.by {
		var err error
		if i.key[at], err = e.Eval(ctx, row); err != nil {
			return 0, err
		}
	}
	return hash.HashOf(ctx, i.schema, i.key)
}

// addGroup adds a group whose first row is row.
func (i *groupIter) addGroup(ctx *gms.Context, key uint64, row gms.Row) error {
	if err := i.take(groupBytes + bufferBytes*int64(len(i.columns)) + store.RowMemory(row)); err != nil {
		return err
	}
	group, err := i.newGroup(ctx)
	if err != nil {
		return err
	}
	i.groups[key] = len(i.buffers)
	i.buffers = append(i.buffers, group)
	return nil
}

// newGroup makes the buffers of a group.
func (i *groupIter) newGroup(ctx *gms.Context) ([]gms.AggregationBuffer, error) {
	group := make([]gms.AggregationBuffer, len(i.columns))
	for at, c := range i.columns {
		a, ok := c.(gms.Aggregation)
		if !ok { // without ONLY_FULL_GROUP_BY, take the first row's value
			a = aggregation.NewFirst(c)
		}
		a, err := i.counted(ctx, a, i.holds[at])
		if err != nil {
			return nil, err
		}
		if group[at], err = a.NewBuffer(ctx); err != nil {
			return nil, err
		}
	}
	return group, nil
}

// take takes n more bytes from the statement's memory, or fails if that is used up. Close gives
// them back.
func (i *groupIter) take(n int64) error {
	err := i.h.Take(n)
	if err == nil {
		i.bytes += n
	}
	return err
}

// update passes a row to all aggregates of a group.
func update(ctx *gms.Context, group []gms.AggregationBuffer, row gms.Row) error {
	for _, b := range group {
		if err := b.Update(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// evaluated returns the row of a group's results.
func evaluated(ctx *gms.Context, group []gms.AggregationBuffer) (gms.Row, error) {
	row := make(gms.Row, len(group))
	for at, b := range group {
		var err error
		if row[at], err = b.Eval(ctx); err != nil {
			return nil, err
		}
	}
	return row, nil
}

// Close implements gms.RowIter.
func (i *groupIter) Close(ctx *gms.Context) error {
	for _, group := range i.buffers {
		for _, b := range group {
			b.Dispose(ctx)
		}
	}
	i.buffers, i.groups = nil, nil
	i.h.Give(i.bytes)
	i.bytes = 0
	return i.rows.Close(ctx)
}

// holds says which of its input values an aggregate keeps.
type holds uint8

const (
	holdsNone holds = iota // the aggregate keeps only a number
	holdsOne               // the aggregate keeps a single value, which may be long
	holdsAll
)

// holdsOf returns which of its input values the aggregate c keeps.
func holdsOf(ctx *gms.Context, c gms.Expression) holds {
	switch c := c.(type) {
	case *aggregation.GroupConcat, *aggregation.JsonArray, *aggregation.JSONObjectAgg, *aggregation.CountDistinct, *compat.DistinctAggregate:
		return holdsAll
	case *aggregation.Sum, *aggregation.Avg, *aggregation.Count, *compat.ExactAggregate:
		return holdsNone
	default:
		if t := c.Type(ctx); types.IsText(t) || types.IsJSON(t) {
			return holdsOne
		}
	}
	return holdsNone
}

// counted returns an aggregate that counts the memory of the values that it keeps.
func (i *groupIter) counted(ctx *gms.Context, a gms.Aggregation, h holds) (gms.Aggregation, error) {
	switch d := a.(type) {
	case *compat.DistinctAggregate:
		if _, ok := d.Aggregation.(*aggregation.CountDistinct); ok { // COUNT DISTINCT with our counter keeps no values itself
			return &compat.DistinctAggregate{Aggregation: d.Aggregation, Keys: d.Keys, Memory: i.h, Counts: d.Counts}, nil
		}
		inner, err := i.held(ctx, d.Aggregation, h)
		return &compat.DistinctAggregate{Aggregation: inner, Keys: d.Keys, Memory: i.h, Counts: d.Counts}, err
	case *aggregation.CountDistinct:
		keys := d.Children()
		if _, ok := keys[0].(*expression.Star); ok {
			return a, nil
		}
		return &compat.DistinctAggregate{Aggregation: a, Keys: keys, Memory: i.h, Counts: true}, nil
	case *aggregation.GroupConcat:
		if compat.IsDistinct(d) {
			inner, err := i.held(ctx, d, h)
			return &compat.DistinctAggregate{Aggregation: inner, Keys: d.OutputExpressions(), Memory: i.h}, err
		}
	}
	if h == holdsNone {
		return a, nil
	}
	return i.held(ctx, a, h)
}

// held returns an aggregate that counts the values that it is given.
func (i *groupIter) held(ctx *gms.Context, a gms.Aggregation, h holds) (gms.Aggregation, error) {
	children := a.Children()
	values := make([]gms.Expression, len(children))
	for at, c := range children {
		values[at] = &heldValue{c, i, h, new(int64)}
	}
	out, err := a.WithChildren(ctx, values...)
	if c, ok := out.(gms.Aggregation); ok && err == nil {
		return c, nil
	}
	return a, err
}

// A heldValue is an expression whose values an aggregate keeps.
type heldValue struct {
	gms.Expression
	by    *groupIter
	holds holds
	most  *int64 // bytes of the longest value so far
}

// Eval implements gms.Expression.
func (v *heldValue) Eval(ctx *gms.Context, row gms.Row) (any, error) {
	value, err := v.Expression.Eval(ctx, row)
	if err != nil {
		return nil, err
	}
	n := store.ValueMemory(value)
	if v.holds == holdsAll {
		return value, v.by.take(n + store.RowBytesMin)
	}
	if n <= *v.most {
		return value, nil
	}
	more := n - *v.most
	*v.most = n
	return value, v.by.take(more)
}

// CollationCoercibility implements gms.CollationCoercible.
func (v *heldValue) CollationCoercibility(ctx *gms.Context) (gms.CollationID, byte) {
	return gms.GetCoercibility(ctx, v.Expression)
}

// WithChildren implements gms.Expression.
func (v *heldValue) WithChildren(ctx *gms.Context, children ...gms.Expression) (gms.Expression, error) {
	e, err := v.Expression.WithChildren(ctx, children...)
	return &heldValue{e, v.by, v.holds, v.most}, err
}
