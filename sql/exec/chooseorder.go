package exec

import (
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
)

// This file estimates what the orders cost in which the tables of a join may be read.

const (
	// manyRows is about how many rows a lookup is taken to find whose number of different keys is not known.
	manyRows = 10
	// inSet is about the part of rows that are taken to be in a set, to meet a condition, or to begin a group.
	inSet = 0.25
	// ofEquality, ofRange and ofPattern are about the parts of rows that are taken to meet such conditions,
	// where no index counts them.
	ofEquality, ofRange, ofPattern = 0.1, 0.33, 0.1
	// perScanned is what a row that a scan passes over costs, in lookups of a row.
	perScanned = 0.2
	// perKept is what it costs to find a row in a hash table.
	perKept = 0.1
)

// cheapestOrder returns the order that costs the least for the values of this execution: each row of the
// outermost table that is read, and each that meets the table's condition, with the lookups for it. An
// order whose rows need not be sorted ends when a LIMIT has its rows.
func (r *run) cheapestOrder(ctx *gms.Context, n *plan.Join) int {
	read, passed := make([]float64, len(n.Orders)), make([]float64, len(n.Orders))
	least := make(map[int]float64) // rows of an outermost table that meet its condition
	for i := range n.Orders {
		read[i], passed[i] = r.outerRows(ctx, n, &n.Orders[i])
		if before, ok := least[n.Orders[i].Outer]; !ok || passed[i] < before {
			least[n.Orders[i].Outer] = passed[i]
		}
	}
	best, cost := 0, math.Inf(1)
	for i := range n.Orders {
		o := &n.Orders[i]
		rows, pass := read[i], min(passed[i], least[o.Outer])
		if o.Ordered || len(n.Order) == 0 {
			ended := r.untilWanted(n.Wants, rows, pass)
			rows, pass = ended, pass*ended/max(rows, 1)
		}
		_, lookups := r.stepsOf(ctx, n, o, pass)
		if c := rows*perScanned + pass + lookups; c < cost {
			best, cost = i, c
		}
	}
	return best
}

// outerRows returns about how many rows of its outermost table an order reads, and how many of them meet the
// table's condition.
func (r *run) outerRows(ctx *gms.Context, n *plan.Join, o *plan.JoinOrder) (read, passed float64) {
	t := &n.Tables[o.Outer]
	total := r.rowsOfTable(ctx, t)
	read = total
	if t.Scan.Table != nil {
		read = min(total*throughIndex, r.count(ctx, t.Scan, accessOf(t.Scan, o.Access), total))
	}
	return read, min(read, max(1, total*partOf(t.Where)))
}

// stepsOf returns about how many rows an order returns for each row of the outermost table, and what it costs to find the
// rows of the other tables for all of outer rows. A semi-join or anti-join counts as if it kept all rows.
func (r *run) stepsOf(ctx *gms.Context, n *plan.Join, o *plan.JoinOrder, outer float64) (rows, lookups float64) {
	rows = 1
	for i := range o.Steps {
		s := &o.Steps[i]
		t := &n.Tables[s.Table]
		found := r.found(ctx, n, s)
		lookups += r.costOf(ctx, t, s, outer*rows, found)
		switch {
		case t.IsSet:
			rows *= inSet
		case t.Kind == plan.Inner:
			rows *= found * partOf(t.Where) * math.Pow(ofEquality, float64(equalitiesBeyond(n, s)))
		case t.Kind.Adds():
			rows *= max(1, found)
		}
	}
	return rows, lookups
}

// costOf returns what it costs to find the rows of a step for some rows of the tables before: it looks up all of them, or so many
// that it then reads the whole table.
func (r *run) costOf(ctx *gms.Context, t *plan.JoinTable, s *plan.JoinStep, rows, found float64) float64 {
	lookups := rows * max(1, found)
	if t.Source != nil || s.IsKept {
		return lookups
	}
	total := r.rowsOf(ctx, t.Scan)
	if before := max(spareLooksMin, total/spareRows); total <= spareRowsMax && before < rows {
		return min(lookups, (before+rows*perKept)*max(1, found)+total*perScanned)
	}
	return lookups
}

// found returns about how many rows a step finds for each row of the tables before.
func (r *run) found(ctx *gms.Context, n *plan.Join, s *plan.JoinStep) float64 {
	t := &n.Tables[s.Table]
	switch {
	case n.IsUnique(s) || !t.Kind.Adds():
		return 1
	case s.IsKept && len(s.Keys) == 0:
		return r.rowsOfTable(ctx, t)
	case t.Source != nil:
		return 1
	case s.IsKept:
		return manyRows
	}
	keys := 1.0
	for _, p := range s.Lookup.Parts {
		different, ok := r.differentOf(ctx, n, t.First+p.Column)
		if !ok {
			return manyRows
		}
		keys *= different
	}
	return max(1, r.rowsOf(ctx, t.Scan)/max(1, keys))
}

// differentOf returns about how many values a column of a join has at most: as many as the smallest table has rows whose
// primary key equals the column; false if there is no such table.
func (r *run) differentOf(ctx *gms.Context, n *plan.Join, column int) (least float64, ok bool) {
	for _, c := range n.EqualColumns(column) {
		if t := n.TableOf(c); t.IsKey(c - t.First) {
			if rows := r.rowsOf(ctx, t.Scan); !ok || rows < least {
				least, ok = rows, true
			}
		}
	}
	return least, ok
}

// equalitiesBeyond returns how many equalities of columns a step decides beyond those that it looks up by.
func equalitiesBeyond(n *plan.Join, s *plan.JoinStep) int {
	sum := 0
	for _, i := range s.Where {
		if _, ok := n.Where[i].(plan.Same); ok {
			sum++
		}
	}
	for _, p := range s.Lookup.Parts {
		if p.Outer != nil {
			sum--
		}
	}
	return max(0, sum-len(s.Keys))
}

// partOf returns about which part of a table's rows meets a condition, nil for none.
func partOf(c plan.Condition) float64 {
	switch c := c.(type) {
	case nil:
		return 1
	case plan.And:
		part := 1.0
		for _, x := range c {
			part *= partOf(x)
		}
		return part
	case plan.Or:
		part := 0.0
		for _, x := range c {
			part += partOf(x)
		}
		return min(1, part)
	case plan.Not:
		return 1 - partOf(c.Condition)
	case plan.Compare:
		return partOfComparison(c.Op)
	case plan.In:
		if c.Not {
			return 1
		}
		return inSet
	case plan.Like:
		return ofPattern
	case plan.IsNull:
		if c.Not {
			return 1
		}
		return ofEquality
	}
	return ofRange
}

// partOfComparison is partOf for a comparison.
func partOfComparison(op plan.Op) float64 {
	switch op {
	case plan.Equal:
		return ofEquality
	case plan.NotEqual:
		return 1 - ofEquality
	}
	return ofRange
}
