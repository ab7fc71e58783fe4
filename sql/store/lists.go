package store

import (
	"bytes"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
)

// This file uses indexes to look up the values of long IN lists (sql/compat).

// LookupList implements compat.ListTable: it returns the lookup for the values of a list; false if
// there is no index for them, or if the table has fewer rows than the list has values.
func (t *Table) LookupList(ctx *gms.Context, column *expression.GetField, values expression.Tuple) (lookup gms.IndexLookup, ok bool, err error) {
	x, err := t.listIndex(ctx, column)
	if err != nil || x == nil {
		return lookup, false, err
	}
	if rows, _, err := t.RowCount(ctx); err != nil || rows < uint64(len(values)) {
		return lookup, false, err
	}
	ranges, ok := x.points(ctx, column, values)
	if !ok {
		return lookup, false, nil
	}
	return gms.NewIndexLookup(x, ranges, false, len(ranges) == 0, false, false), true, nil
}

// listIndex returns the shortest index that begins with a column, nil if there is none.
func (t *Table) listIndex(ctx *gms.Context, column *expression.GetField) (best *Index, err error) {
	all, err := t.GetIndexes(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		x, ok := i.(*Index)
		if !ok || x.Key.Spatial || x.PrefixLengths() != nil || (x.Key.Access == catalog.AccessHash && len(x.expr) > 1) {
			continue
		}
		if SameName(x.info.Columns[x.Key.Columns[0]].Name, column.Name()) && (best == nil || len(x.expr) < len(best.expr)) {
			best = x
		}
	}
	return best, nil
}

// points returns a range for each value of a list, in the order of the index. Values with equal
// keys share one range; values that the column cannot have get none. It returns false if a value is not
// a constant that the column's own order can look up.
func (x *Index) points(ctx *gms.Context, column *expression.GetField, values expression.Tuple) (gms.MySQLRangeCollection, bool) {
	columns := x.ColumnExpressionTypes(ctx)
	type point struct {
		key    []byte
		bounds gms.MySQLRangeColumnExpr
	}
	all := make([]point, 0, len(values))
	for _, v := range values {
		l, ok := v.(*expression.Literal)
		if !ok {
			return nil, false
		}
		if l.Value() == nil {
			continue // no value of the column can equal it
		}
		if !compat.Listable(ctx, column, l) {
			return nil, false
		}
		value, inRange, err := columns[0].Type.Convert(ctx, l.Value())
		if err != nil || inRange != gms.InRange {
			continue
		}
		r := gms.ClosedRangeColumnExpr(value, value, columns[0].Type)
		part, equal, none := x.Key.Codecs[0].Bounds(ctx, r)
		if none {
			continue
		}
		if !equal {
			return nil, false
		}
		all = append(all, point{part.Lo, r})
	}
	slices.SortFunc(all, func(a, b point) int { return bytes.Compare(a.key, b.key) })
	all = slices.CompactFunc(all, func(a, b point) bool { return bytes.Equal(a.key, b.key) })
	ranges := make(gms.MySQLRangeCollection, len(all))
	for i, p := range all {
		ranges[i] = gms.MySQLRange{p.bounds}
		for _, c := range columns[1:] {
			ranges[i] = append(ranges[i], gms.AllRangeColumnExpr(c.Type))
		}
	}
	return ranges, true
}
