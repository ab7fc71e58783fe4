package exec

import (
	"encoding/binary"
	"errors"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"
	"github.com/dolthub/go-mysql-server/sql/hash"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
)

// This file computes SUM, AVG and COUNT of the rows of a table from their stored form, in whole numbers, without making Go
// values of the rows. go-mysql-server's decimals take several allocations for each operation.

// A totals is a GROUP BY whose groups are totalled.
type totals struct {
	by   []totalColumn
	sums []total
	// schema describes the columns to group by, and values has room for their values.
	schema gms.Schema
	values gms.Row
	// groups are in the order of their first rows. byStored finds them by the stored form of the columns, byHash by their
	// values: texts that differ in case are in one group.
	groups   []*totalGroup
	byStored map[string]*totalGroup
	byHash   map[uint64]*totalGroup
	room     []byte // memory for a stored form
	take     func(int64) error
}

// A totalColumn is a column of the table by which rows are grouped, or whose value in a group's first row is returned.
type totalColumn struct {
	at    int
	codec *row.Column
}

// A total is one of the columns of the result.
type total struct {
	first *totalColumn           // its value in the first row; nil for the others
	of    *exactNumber           // is added up; nil for the others
	by    *compat.ExactAggregate // makes the result of a sum
	// counted is the column whose values COUNT counts; nil for COUNT of all rows.
	counted *totalColumn
}

// A totalGroup has the totals of a group.
type totalGroup struct {
	first  gms.Row // by total
	counts []int64
	sums   []exactSum
}

// errWide means that a number is too large, or a value not plain, for totals.
var errWide = errors.New("exec: beyond whole numbers")

const (
	// totalGroupBytes is about the memory of a group, and totalBytes that of one of its totals.
	totalGroupBytes, totalBytes = 160, 48
)

// totals returns the result of a GROUP BY; false if it is not of the kind of this file, or has numbers that are too large.
func (r *run) totals(ctx *gms.Context, n *plan.Group) (gms.RowIter, bool, error) {
	scan, ok := n.Child.(*plan.Scan)
	if !ok || scan.End || r.s.ForUpdate {
		return nil, false, nil
	}
	t, ok := newTotals(ctx, n, scan)
	if !ok {
		return nil, false, nil
	}
	taken := int64(0)
	t.take = func(n int64) error {
		err := r.s.Holding.Take(n)
		if err == nil {
			taken += n
		}
		return err
	}
	defer func() { r.s.Holding.Give(taken) }()
	rows, err := r.scan(ctx, scan)
	if err != nil {
		return nil, false, err
	}
	for _, branch := range branchesOf(rows) {
		from, ok := branch.(storeRows)
		if !ok {
			return nil, false, nil
		}
		if err := t.addAll(ctx, from); err == errWide {
			return nil, false, nil
		} else if err != nil {
			return nil, false, err
		}
	}
	return gms.RowsToRowIter(t.result()...), true, nil
}

// newTotals returns the totals for a node over a scan; false if it has other aggregates, or columns that are not plain.
func newTotals(ctx *gms.Context, n *plan.Group, scan *plan.Scan) (*totals, bool) {
	t := &totals{values: make(gms.Row, len(n.By)), byStored: make(map[string]*totalGroup), byHash: make(map[uint64]*totalGroup)}
	for _, e := range n.By {
		c, ok := totalColumnOf(e, scan)
		if !ok {
			return nil, false
		}
		t.by = append(t.by, c)
	}
	hasSum := false
	for _, e := range n.Exprs {
		x, ok := totalOf(ctx, e, scan)
		if !ok {
			return nil, false
		}
		hasSum = hasSum || x.of != nil
		t.sums = append(t.sums, x)
	}
	t.schema = hash.ExprsToSchema(ctx, n.By...)
	if len(n.By) == 0 { // there is one group, even without rows
		t.groups = append(t.groups, t.newGroup())
	}
	return t, hasSum
}

// totalOf returns the total for a column of the result.
func totalOf(ctx *gms.Context, e gms.Expression, scan *plan.Scan) (total, bool) {
	switch e := e.(type) {
	case *expression.GetField:
		c, ok := totalColumnOf(e, scan)
		return total{first: &c}, ok
	case *aggregation.Count:
		if isNeverNull(ctx, e.Children()[0]) {
			return total{}, e.Window() == nil
		}
		c, ok := totalColumnOf(e.Children()[0], scan)
		return total{counted: &c}, ok && e.Window() == nil
	case *compat.ExactAggregate:
		x, ok := exactNumberOf(ctx, e.Child, scan)
		return total{of: x, by: e}, ok && e.Window() == nil
	}
	return total{}, false
}

// totalColumnOf returns the column that an expression is; false for other expressions, and for columns whose values are not
// plain.
func totalColumnOf(e gms.Expression, scan *plan.Scan) (totalColumn, bool) {
	f, ok := e.(*expression.GetField)
	if !ok {
		return totalColumn{}, false
	}
	at := f.Index()
	if scan.Columns != nil {
		at = scan.Columns[at]
	}
	k := scan.Table.Codec(at)
	isPlain := k != nil && (k.IsInteger() || k.Kind == catalog.KindDecimal || k.Kind == catalog.KindDate || (row.IsCharacter(k.Kind) && k.IsDirect()))
	return totalColumn{at, &scan.Table.Rows.Columns[at]}, isPlain
}

// addAll adds the rows of a table.
func (t *totals) addAll(ctx *gms.Context, from storeRows) error {
	for {
		v, err := from.NextStored(ctx)
		if err != nil || v == nil {
			return err
		}
		g, err := t.groupOf(ctx, from, v)
		if err != nil {
			return err
		}
		if err := t.add(g, from, v); err != nil {
			return err
		}
	}
}

// add adds a row to its group.
func (t *totals) add(g *totalGroup, from storeRows, v *row.View) error {
	for i := range t.sums {
		x := &t.sums[i]
		switch {
		case x.of != nil:
			n, isNull, err := x.of.value(from, v)
			if err != nil {
				return err
			}
			if !isNull {
				g.counts[i]++
				g.sums[i].add(n)
			}
		case x.counted != nil:
			b, err := from.StoredValue(v, x.counted.at)
			if err != nil {
				return err
			}
			if b != nil {
				g.counts[i]++
			}
		case x.first == nil:
			g.counts[i]++
		}
	}
	return nil
}

// groupOf returns the group of a row, and makes it if there is none.
func (t *totals) groupOf(ctx *gms.Context, from storeRows, v *row.View) (*totalGroup, error) {
	if len(t.by) == 0 {
		g := t.groups[0]
		if g.first == nil {
			return g, t.begin(g, from, v)
		}
		return g, nil
	}
	key := t.room[:0]
	for _, c := range t.by {
		b, err := from.StoredValue(v, c.at)
		if err != nil {
			return nil, err
		}
		if b == nil {
			key = append(key, 0)
			continue
		}
		key = append(binary.AppendUvarint(append(key, 1), uint64(len(b))), b...)
	}
	t.room = key
	if g, ok := t.byStored[string(key)]; ok {
		return g, nil
	}
	return t.findGroup(ctx, from, v, string(key))
}

// findGroup is groupOf for columns in a stored form that comes for the first time.
func (t *totals) findGroup(ctx *gms.Context, from storeRows, v *row.View, key string) (*totalGroup, error) {
	if err := t.take(totalGroupBytes + int64(len(key)) + totalBytes*int64(len(t.sums))); err != nil {
		return nil, err
	}
	for i := range t.by {
		var err error
		if t.values[i], err = t.by[i].value(from, v); err != nil {
			return nil, err
		}
	}
	h, err := hash.HashOf(ctx, t.schema, t.values)
	if err != nil {
		return nil, err
	}
	g, ok := t.byHash[h]
	if !ok {
		g = t.newGroup()
		if err := t.begin(g, from, v); err != nil {
			return nil, err
		}
		t.byHash[h], t.groups = g, append(t.groups, g)
	}
	t.byStored[key] = g
	return g, nil
}

func (t *totals) newGroup() *totalGroup {
	return &totalGroup{counts: make([]int64, len(t.sums)), sums: make([]exactSum, len(t.sums))}
}

// begin notes the values of a group's first row.
func (t *totals) begin(g *totalGroup, from storeRows, v *row.View) error {
	g.first = make(gms.Row, len(t.sums))
	for i := range t.sums {
		if t.sums[i].first == nil {
			continue
		}
		var err error
		if g.first[i], err = t.sums[i].first.value(from, v); err != nil {
			return err
		}
	}
	return nil
}

// value returns the column's value in a row.
func (c *totalColumn) value(from storeRows, v *row.View) (any, error) {
	b, err := from.StoredValue(v, c.at)
	if err != nil || b == nil {
		return nil, err
	}
	return c.codec.Decode(b)
}

// result returns a row for each group.
func (t *totals) result() (rows []gms.Row) {
	for _, g := range t.groups {
		out := make(gms.Row, len(t.sums))
		for i := range t.sums {
			switch x := &t.sums[i]; {
			case x.of != nil:
				out[i] = x.by.Result(g.sums[i].decimal(x.of.scale), g.counts[i])
			case x.first == nil:
				out[i] = g.counts[i]
			case g.first != nil:
				out[i] = g.first[i]
			}
		}
		rows = append(rows, out)
	}
	return rows
}
