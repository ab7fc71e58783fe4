package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// A Change describes how an UPDATE or DELETE changes the statement's rows, which may come from a join.
type Change struct {
	// Tables are the tables that it changes, in the order of the FROM clause.
	Tables []ChangedTable
	// Deletes is set for a DELETE.
	Deletes bool
	// tables are those of Tables.
	tables []*store.TableInfo
}

// A ChangedTable is a table whose rows a statement changes, each of them once.
type ChangedTable struct {
	Table *store.TableInfo
	// At is the position of the table's columns in the rows of the statement.
	At int
	// first is the number of the table's first column among the columns of all tables.
	first int
	// Set has the assignments; empty for a DELETE.
	Set []Setter
	// Touched has the assignments of ON UPDATE CURRENT_TIMESTAMP, for rows that those of Set change.
	Touched []Setter
	// Sparse are the columns whose values the rows of the statement have; nil for all.
	Sparse []int
}

// A Setter assigns a new value to a column: the value of a parameter or, if Expr is set, of that
// expression of the statement's row.
type Setter struct {
	Column *expression.GetField
	Value  Operand
	Expr   gms.Expression
}

// Of returns the table's part of a row of the statement.
func (t *ChangedTable) Of(row gms.Row) gms.Row { return row[t.At : t.At+len(t.Table.Columns)] }

// String returns the change as plans show it.
func (c *Change) String() string {
	var s []string
	for i := range c.Tables {
		t := &c.Tables[i]
		for _, set := range t.Set {
			value := set.Value.String()
			if set.Expr != nil {
				value = set.Expr.String()
			}
			s = append(s, t.name(c)+set.Column.Name()+" to "+value)
		}
		for _, set := range t.Touched {
			s = append(s, set.Column.Name()+" to the time of the change")
		}
		if c.Deletes && len(c.Tables) > 1 {
			s = append(s, fmt.Sprintf("#%d", t.first))
		}
	}
	if c.Deletes {
		return strings.TrimSpace("delete " + strings.Join(s, ", "))
	}
	return "update " + strings.Join(s, ", ")
}

// name returns the prefix of a table's column names in plans; empty if the table is the only one.
func (t *ChangedTable) name(c *Change) string {
	if len(c.Tables) == 1 {
		return ""
	}
	return fmt.Sprintf("#%d.", t.first)
}

// changedRows returns the node that gives the rows of a statement.
func changedRows(root gms.Node) (gms.Node, error) {
	switch n := root.(type) {
	case *gmsplan.Update:
		source, ok := n.Child.(*gmsplan.UpdateSource)
		if !ok || n.Ignore || source.Ignore {
			return nil, refused("the form of an UPDATE")
		}
		return source.Child, nil
	case *gmsplan.DeleteFrom:
		return n.Child, nil
	}
	return root, nil
}

// change returns the Change of a statement; nil for a SELECT. rows are the rows of changedRows, and s is their scope.
func (b *builder) change(root gms.Node, rows Node, s scope) (*Change, error) {
	c := &Change{}
	var err error
	switch n := root.(type) {
	case *gmsplan.Update:
		err = b.update(c, n.Child.(*gmsplan.UpdateSource), rows, s)
	case *gmsplan.DeleteFrom:
		c.Deletes = true
		err = b.delete(c, n, rows, s)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return c, c.noteTables()
}

// update reads the assignments of an UPDATE.
func (b *builder) update(c *Change, n *gmsplan.UpdateSource, rows Node, s scope) error {
	var all []Setter // with column numbers of the statement's rows
	for _, e := range n.UpdateExprs.ExplicitUpdateExprs() {
		set, err := b.setter(e, s, all)
		if err != nil {
			return err
		}
		all = append(all, set)
	}
	for _, t := range changeableTables(rows) {
		for _, set := range all {
			if at := set.Column.Index() - t.first; at >= 0 && at < len(t.Table.Columns) {
				set.Column = set.Column.WithIndex(at).(*expression.GetField)
				t.Set = append(t.Set, set)
			}
		}
		if len(t.Set) > 0 {
			c.Tables = append(c.Tables, t)
		}
	}
	return c.touch(n.UpdateExprs.DerivedUpdateExprs(), rows, s)
}

// touch reads the assignments of ON UPDATE CURRENT_TIMESTAMP to columns of an UPDATE's only table.
func (c *Change) touch(all []gms.Expression, rows Node, s scope) error {
	for _, e := range all {
		set, ok := e.(*expression.SetField)
		if !ok || len(c.Tables) != 1 || hasJoin(rows) {
			return refused("a column that changes with others")
		}
		f, isField := set.LeftChild.(*expression.GetField)
		value, isDefault := set.RightChild.(*gms.ColumnDefaultValue)
		if !isField || !isDefault || s.place(f) < 0 {
			return refused("a column that changes by %s", set)
		}
		now, ok := value.Expr.(*function.Now)
		if !ok {
			return refused("a column that changes by %s", value)
		}
		c.Tables[0].Touched = append(c.Tables[0].Touched, Setter{Column: f.WithIndex(s.place(f)).(*expression.GetField), Expr: now})
	}
	return nil
}

// delete reads the tables of a DELETE.
func (b *builder) delete(c *Change, n *gmsplan.DeleteFrom, rows Node, s scope) error {
	all := changeableTables(rows)
	if !n.HasExplicitTargets() { // DELETE FROM t, where t is the only table
		c.Tables = all[:min(1, len(all))]
		return nil
	}
	targets := make(map[int]bool) // the numbers of their first columns
	for _, target := range n.GetDeleteTargets() {
		t, ok := target.(gmsplan.TableIdNode)
		if !ok {
			return refused("DELETE from %T", target)
		}
		first, ok := t.Columns().Next(1)
		if !ok {
			return refused("DELETE from a table without columns")
		}
		targets[s.placeOf(first)] = true
	}
	for _, t := range all {
		if targets[t.first] {
			c.Tables = append(c.Tables, t)
		}
	}
	if len(c.Tables) != len(n.GetDeleteTargets()) {
		return refused("DELETE from a table that is not read")
	}
	return nil
}

// changeableTables returns the tables of rows that a statement can change, in the order of their columns.
func changeableTables(n Node) (all []ChangedTable) {
	switch n := n.(type) {
	case *Scan:
		return []ChangedTable{{Table: n.Table}}
	case *Join:
		for i := range n.Tables {
			if n.Tables[i].Kind.Adds() && n.Tables[i].Source == nil {
				all = append(all, ChangedTable{Table: n.Tables[i].Table, first: n.Tables[i].First})
			}
		}
		return all
	case *Sort:
		return changeableTables(n.Child)
	case *Limit:
		return changeableTables(n.Child)
	}
	return nil
}

// noteTables sets tables. It returns an error if there are none, or if two names of one table could change the same row.
// It also returns an error for a table without a key, whose changed rows could not be recognized.
func (c *Change) noteTables() error {
	if len(c.Tables) == 0 {
		return refused("a change of no table")
	}
	for i := range c.Tables {
		t := c.Tables[i].Table
		if slices.Contains(c.tables, t) || t.IsKeyless() {
			return refused("a change of a table without a key, or by several names")
		}
		c.tables = append(c.tables, t)
	}
	return nil
}

// setter returns an assignment to a column of the rows, which no assignment in earlier sets. Its expression must not read
// the columns that these set, nor add an interval if it has parameters.
func (b *builder) setter(e gms.Expression, s scope, earlier []Setter) (Setter, error) {
	set, ok := e.(*expression.SetField)
	if !ok {
		return Setter{}, refused("assignment %T", e)
	}
	f, ok := set.LeftChild.(*expression.GetField)
	if !ok || s.place(f) < 0 {
		return Setter{}, refused("assignment to %s", set.LeftChild)
	}
	out := Setter{Column: f.WithIndex(s.place(f)).(*expression.GetField)}
	for _, x := range earlier {
		if x.Column.Index() == out.Column.Index() {
			return out, refused("two assignments to %s", f)
		}
	}
	if out.Value, ok = b.operand(set.RightChild); ok {
		return out, nil
	}
	var err error
	if out.Expr, err = b.expression(set.RightChild, s); err != nil {
		return out, err
	}
	hasParameters := len(parametersOf(b.ctx, out.Expr)) > 0
	gms.Inspect(b.ctx, out.Expr, func(_ *gms.Context, e gms.Expression) bool {
		if _, ok := e.(*expression.Interval); ok && hasParameters {
			err = refused("a sum of a time, whose text depends on that of the time")
		}
		f, ok := e.(*expression.GetField)
		for _, x := range earlier {
			if ok && x.Column.Index() == f.Index() {
				err = refused("a column that is read and set")
			}
		}
		return err == nil
	})
	return out, err
}

// prune makes the tables that a statement reads, but does not change, read only the columns that
// are used, and a single table only those that the change needs. It refuses a join below a Sort or Limit.
func (c *Change) prune(ctx *gms.Context, rows Node) error {
	j, ok := rows.(*Join)
	if !ok {
		if len(c.Tables) != 1 || c.Tables[0].first != 0 || hasJoin(rows) {
			return refused("a change of a join in an order")
		}
		return c.Tables[0].thin(ctx, rows, c.Deletes)
	}
	used := make(map[int]bool)
	for i := range c.Tables {
		t := &c.Tables[i]
		for at := range t.Table.Columns {
			used[t.first+at] = true
		}
		if err := t.eachExpr(noting(ctx, used)); err != nil {
			return err
		}
	}
	if err := j.keep(ctx, used); err != nil {
		return err
	}
	for i := range c.Tables {
		t := &c.Tables[i]
		t.At = j.Place(t.first)
		if err := t.eachExpr(placing(ctx, j.Place)); err != nil {
			return err
		}
	}
	return nil
}

// thin makes the rows of the statement's only table have only the values that the statement uses. Rows that are sorted are
// changed by all their values, not by their addresses, so they keep all.
func (t *ChangedTable) thin(ctx *gms.Context, rows Node, deletes bool) error {
	if l, ok := rows.(*Limit); ok {
		rows = l.Child
	}
	s, ok := rows.(*Scan)
	if !ok || !t.isPlain(deletes) {
		return nil
	}
	used, err := columnsOf(ctx, s.Where)
	if err != nil {
		return err
	}
	if err := t.eachExpr(noting(ctx, used)); err != nil {
		return err
	}
	var set []int
	for _, s := range slices.Concat(t.Set, t.Touched) {
		set = append(set, s.Column.Index())
	}
	for _, at := range t.Table.ChangeNeeds(set) {
		used[at] = true
	}
	s.Sparse = slices.Sorted(maps.Keys(used))
	t.Sparse = s.Sparse
	return nil
}

// hasJoin reports whether the rows of a node come from a join.
func hasJoin(n Node) bool {
	if _, ok := n.(*Join); ok {
		return true
	}
	for _, child := range childrenOf(n) {
		if hasJoin(child) {
			return true
		}
	}
	return false
}

// eachExpr replaces the expressions of the table's assignments by the results of f.
func (t *ChangedTable) eachExpr(f func(gms.Expression) (gms.Expression, error)) (err error) {
	for i := range t.Set {
		if e := t.Set[i].Expr; e != nil {
			if t.Set[i].Expr, err = f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// IsPlain reports whether changing the rows has no further effects: there are no CHECKs, computed
// columns, or foreign keys to check. Triggers do not count, because they do not belong to the
// tables.
func (c *Change) IsPlain() bool {
	for i := range c.Tables {
		if !c.Tables[i].isPlain(c.Deletes) {
			return false
		}
	}
	return true
}

func (t *ChangedTable) isPlain(deletes bool) bool {
	for i, col := range t.Table.Columns {
		if (!deletes && col.OnUpdate != "" && !t.sets(i)) || col.Generated != "" || col.Virtual || col.Hidden || col.HiddenSystem {
			return false
		}
	}
	if len(t.Table.Checks) > 0 || (deletes && len(t.Table.ReferencedBy) > 0) {
		return false
	}
	return !slices.ContainsFunc(slices.Concat(t.Set, t.Touched), func(s Setter) bool { return t.Table.InReference(s.Column.Index()) })
}

// sets reports whether the statement sets a column, or touches it.
func (t *ChangedTable) sets(column int) bool {
	isOf := func(s Setter) bool { return s.Column.Index() == column }
	return slices.ContainsFunc(t.Set, isOf) || slices.ContainsFunc(t.Touched, isOf)
}
