package plan

import (
	"fmt"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/store"
)

// This file finds the orders in which the tables of a join are read.

// An equal is the condition that a column of a table equals a column of the joined rows that
// belongs to an earlier table.
type equal struct{ Column, Outer int }

// String returns the condition as plans show it.
func (e equal) String() string { return fmt.Sprintf("(= #%d outer #%d)", e.Column, e.Outer) }

// findOrders finds the orders in which a join may be read. Each table of an inner join may be the outermost if all
// others can then be looked up; only if no order is found, tables may also be kept (JoinStep.IsKept). An
// outermost table may have several accesses. If a table has at most one row, findOrders keeps only an order that begins
// with it. The error is an ErrRefused if there is no order.
func findOrders(ctx *gms.Context, j *Join) error {
	j.Orders = nil                        // findOrders is called again when the wanted order is known
	tables := make([][]int, len(j.Where)) // the tables that each condition uses
	for i, c := range j.Where {
		var err error
		if tables[i], err = j.tablesOf(ctx, c); err != nil {
			return err
		}
	}
	for t := range j.Tables {
		if j.Tables[t].Source != nil {
			continue
		}
		scan := j.Tables[t].Scan
		scan.Access = accesses(scan.Table, scan.Where)
		if by, ok := j.orderOf(t, nil); ok && j.Tables[t].Kind == Inner {
			scan.Access = order(scan.Table, scan.Access, scan.Where, by)
		}
	}
	if j.findOrdersOf(tables, false); len(j.Orders) == 0 {
		j.findOrdersOf(tables, true)
	}
	if len(j.Orders) == 0 {
		return refused("a join without an index")
	}
	return nil
}

// findOrdersOf finds the orders for each outermost table; tables are those that each condition uses. If keeps is set,
// tables that no index can be used for may be kept.
func (j *Join) findOrdersOf(tables [][]int, keeps bool) {
	var single []JoinOrder
	for t := range j.Tables {
		if j.Tables[t].Kind != Inner {
			continue
		}
		for access := range max(1, len(j.Tables[t].Access)) {
			f := newOrderFinder(j, tables, keeps)
			o, ok := f.find(t, access)
			switch {
			case !ok:
			case f.isSingle[t]:
				single = append(single, o)
			default:
				j.Orders = append(j.Orders, o)
			}
		}
	}
	if len(single) > 0 {
		j.Orders = single[:1]
	}
}

// orderOf returns the wanted order as an order of one table's rows. It returns false if there is none, or if it uses
// expressions, or columns of other tables. Those for which isSingle is set may be used, because they have a single row;
// a nil isSingle marks none.
func (j *Join) orderOf(table int, isSingle []bool) ([]Order, bool) {
	by := []Order{}
	for _, o := range j.Order {
		if o.Column < 0 {
			return nil, false
		}
		switch t := j.tableOf(o.Column); {
		case t == table:
			o.Column -= j.Tables[t].First
			by = append(by, o)
		case isSingle == nil || !isSingle[t]:
			return nil, false
		}
	}
	return by, len(j.Order) > 0
}

// An orderFinder builds an order table by table.
type orderFinder struct {
	*Join
	tables    [][]int // the tables that each condition uses
	isDecided []bool
	isRead    []bool
	isSingle  []bool // whether a table has one row at most
	keeps     bool   // whether tables that no index can be used for may be kept
}

func newOrderFinder(j *Join, tables [][]int, keeps bool) *orderFinder {
	return &orderFinder{
		Join: j, tables: tables, keeps: keeps, isDecided: make([]bool, len(j.Where)),
		isRead: make([]bool, len(j.Tables)), isSingle: make([]bool, len(j.Tables)),
	}
}

// find returns the order that begins with the table outer, read by one of its accesses. It returns false if some
// other table cannot be looked up. It also returns false if outer is a table without an access, and an order
// that begins with the rows of a subquery might be better.
func (f *orderFinder) find(outer, access int) (JoinOrder, bool) {
	o := JoinOrder{Outer: outer, Access: access}
	scan := f.Tables[outer].Scan
	if len(scan.Access) == 0 && f.Tables[outer].Source == nil && slices.ContainsFunc(f.Tables, isSelective) {
		return o, false
	}
	// The first table that may have several rows decides whether the joined rows are ordered. isOne is set until then:
	// the tables so far have one row at most.
	isOne := false
	if len(scan.Access) > 0 {
		a := &scan.Access[access]
		isOne = len(a.Branches) == 1 && isSingle(scan.Table, &a.Branches[0])
		o.Ordered = a.Ordered && !isOne
	}
	f.isRead[outer], f.isSingle[outer] = true, isOne
	o.Where = f.decide()
	for range len(f.Tables) - 1 {
		step, ok := f.next(isOne)
		if !ok {
			return o, false
		}
		f.isRead[step.Table] = true
		if isOne && f.Tables[step.Table].Kind.Adds() {
			if isOne = f.isOneOf(&step); !isOne {
				o.Ordered, step.Reverse = f.isOrdered(&step)
			}
			f.isSingle[step.Table] = isOne
		}
		step.Where = f.decide()
		o.Steps = append(o.Steps, step)
	}
	o.Ordered = (o.Ordered || isOne) && len(f.Order) > 0
	return o, true
}

// isSelective reports whether a table is that of a semi-join, and few of its rows may meet the conditions of its subquery.
func isSelective(t JoinTable) bool {
	return t.Kind == Semi && (t.isIn || len(t.Access) > 0)
}

// isOneOf reports whether a step reads one row at most.
func (f *orderFinder) isOneOf(s *JoinStep) bool {
	if s.IsKept {
		return f.IsUnique(s)
	}
	return isSingle(f.Tables[s.Table].Table, &s.Lookup)
}

// isSingle reports whether a branch reads one row at most.
func isSingle(table *store.TableInfo, b *Branch) bool {
	return b.IsUnique(table) && !slices.ContainsFunc(b.Parts, func(p Part) bool { return !p.isSingle() })
}

// isOrdered reports whether the rows of a step come in the wanted order, perhaps backwards.
func (f *orderFinder) isOrdered(s *JoinStep) (ok, reverse bool) {
	by, ok := f.orderOf(s.Table, f.isSingle)
	if !ok || s.IsKept {
		return false, false
	}
	return ordered(f.Tables[s.Table].Table, &s.Lookup, by)
}

// decide returns the conditions that the tables read so far decide, and that fewer tables did not.
func (f *orderFinder) decide() (where []int) {
	for i, tables := range f.tables {
		if f.isDecided[i] || slices.ContainsFunc(tables, func(t int) bool { return !f.isRead[t] }) {
			continue
		}
		f.isDecided[i] = true
		where = append(where, i)
	}
	return where
}

// next returns the best step to a further table: by a unique key if possible, otherwise by the most
// columns. isOne is set if the tables so far have one row at most. Tables that are not joined by
// inner joins come after all others, in their order, because their conditions refer to earlier
// tables.
func (f *orderFinder) next(isOne bool) (best JoinStep, ok bool) {
	for _, t := range f.candidates() {
		for _, step := range f.steps(t, isOne) {
			if !ok || f.isBetter(&step, &best) {
				best, ok = step, true
			}
		}
	}
	return best, ok
}

// steps returns the ways to read the rows of table t that belong to a row of the tables read so
// far. Rows of a Source are read once and kept in memory. Rows of a table are so only if no index can be used and f.keeps is set.
func (f *orderFinder) steps(t int, isOne bool) (all []JoinStep) {
	if f.Tables[t].Source == nil {
		for _, b := range f.lookups(t, isOne) {
			all = append(all, JoinStep{Table: t, Lookup: b})
		}
	}
	if len(all) > 0 || (f.Tables[t].Source == nil && !f.keeps) {
		return all
	}
	step := JoinStep{Table: t, IsKept: true}
	for _, e := range f.equals(t) {
		if f.Tables[t].Codec(e.Column) != nil {
			step.Keys = append(step.Keys, KeptKey(e))
		}
	}
	if len(step.Keys) == 0 && f.Tables[t].Source == nil {
		return nil // without a key it would be a cross join
	}
	return []JoinStep{step}
}

// candidates returns the tables that may be read next: all that are left of the inner joins or, if none is, the first of
// the others.
func (f *orderFinder) candidates() (inner []int) {
	others := []int{}
	for t := range f.Tables {
		switch {
		case f.isRead[t]:
		case f.Tables[t].Kind != Inner:
			others = append(others, t)
		default:
			inner = append(inner, t)
		}
	}
	if len(inner) == 0 {
		return others[:1]
	}
	return inner
}

// isBetter reports whether step a reads fewer rows than step b, as far as is known, or as many but in the wanted order.
func (f *orderFinder) isBetter(a, b *JoinStep) bool {
	isUnique, isOtherUnique := f.IsUnique(a), f.IsUnique(b)
	isSet, isOtherSet := f.Tables[a.Table].IsSet, f.Tables[b.Table].IsSet
	switch n, m := len(a.Lookup.Parts)+len(a.Keys), len(b.Lookup.Parts)+len(b.Keys); {
	case isUnique != isOtherUnique:
		return isUnique
	case isSet != isOtherSet && isUnique:
		return isSet // most rows are in no set
	case n != m:
		return n > m
	}
	isOrdered, _ := f.isOrdered(a)
	isOtherOrdered, _ := f.isOrdered(b)
	return isOrdered && !isOtherOrdered
}

// IsUnique reports whether a step finds one row at most for each row of the earlier tables.
func (j *Join) IsUnique(s *JoinStep) bool {
	if s.IsKept {
		return j.Tables[s.Table].IsSet && len(s.Keys) > 0
	}
	return s.Lookup.IsUnique(j.Tables[s.Table].Table)
}

// lookups returns the ways to look up the rows of table t that belong to a row of the tables read
// so far, each by a single key for each row. A lookup that uses no column of these tables must be by a unique key, unless isOne is
// set.
func (f *orderFinder) lookups(t int, isOne bool) (list []Branch) {
	table := &f.Tables[t]
	all := slices.Clone(conjuncts(table.Where))
	for _, e := range f.equals(t) {
		all = append(all, e)
	}
	for _, b := range branches(table.Table, all) {
		n := slices.IndexFunc(b.Parts, func(p Part) bool { return !p.isSingle() })
		if n < 0 {
			n = len(b.Parts)
		}
		b.Parts = b.Parts[:min(n, len(b.Index.Columns))]
		hasOuter := slices.ContainsFunc(b.Parts, func(p Part) bool { return p.Outer != nil })
		if len(b.Parts) > 0 && (hasOuter || isOne || b.IsUnique(table.Table)) {
			list = append(list, b)
		}
	}
	return list
}

// equals returns the conditions that a column of a table equals a column of a table that has been read.
func (f *orderFinder) equals(t int) (all []equal) {
	where := f.Where
	if f.Tables[t].Kind != Inner {
		where = f.Tables[t].On // a WHERE is decided later
	}
	for _, c := range where {
		if same, ok := c.(Same); ok {
			all = f.appendEqual(all, t, same.Left, same.Right)
			all = f.appendEqual(all, t, same.Right, same.Left)
		}
	}
	return all
}

// appendEqual appends the condition that the column own of table t equals the column outer, if the
// table of outer has been read.
func (f *orderFinder) appendEqual(all []equal, t, own, outer int) []equal {
	if f.tableOf(own) != t || !f.isRead[f.tableOf(outer)] {
		return all
	}
	return append(all, equal{own - f.Tables[t].First, outer})
}
