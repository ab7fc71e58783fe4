package plan

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// A Change is what an UPDATE or DELETE does to each of its rows.
type Change struct {
	// Set is empty for a DELETE.
	Set []Setter
}

// A Setter gives a column of a row a new value: a parameter or, if Expr is set, that expression of
// the row.
type Setter struct {
	Column *expression.GetField
	Value  Operand
	Expr   gms.Expression
}

// String returns the change as plans show it.
func (c *Change) String() string {
	if len(c.Set) == 0 {
		return "delete"
	}
	var s []string
	for _, set := range c.Set {
		value := set.Value.String()
		if set.Expr != nil {
			value = set.Expr.String()
		}
		s = append(s, set.Column.Name()+" to "+value)
	}
	return "update " + strings.Join(s, ", ")
}

// update takes what an UPDATE sets, and returns the node that gives its rows.
func (b *builder) update(n *gmsplan.Update, q *Query) (gms.Node, error) {
	source, ok := n.Child.(*gmsplan.UpdateSource)
	if !ok || n.IsJoin || n.Ignore || source.Ignore {
		return nil, refused("the form of an UPDATE")
	}
	_, s, err := b.node(source.Child)
	if err != nil {
		return nil, err
	}
	q.Change = &Change{}
	for _, e := range source.UpdateExprs.AllExpressions() {
		set, err := b.setter(e, s, q.Change.Set)
		if err != nil {
			return nil, err
		}
		q.Change.Set = append(q.Change.Set, set)
	}
	return source.Child, nil
}

// setter returns an assignment; before are those before it, which its expression must not read.
func (b *builder) setter(e gms.Expression, s scope, before []Setter) (Setter, error) {
	set, ok := e.(*expression.SetField)
	if !ok {
		return Setter{}, refused("assignment %T", e)
	}
	f, ok := set.LeftChild.(*expression.GetField)
	if !ok || s.place(f) < 0 {
		return Setter{}, refused("assignment to %s", set.LeftChild)
	}
	out := Setter{Column: f.WithIndex(s.place(f)).(*expression.GetField)}
	for _, x := range before {
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
	given := len(parametersOf(b.ctx, out.Expr)) > 0
	gms.Inspect(b.ctx, out.Expr, func(_ *gms.Context, e gms.Expression) bool {
		if _, ok := e.(*expression.Interval); ok && given {
			err = refused("a sum of a time, whose text depends on that of the time")
		}
		f, ok := e.(*expression.GetField)
		for _, x := range before {
			if ok && x.Column.Index() == f.Index() {
				err = refused("a column that is read and set")
			}
		}
		return err == nil
	})
	return out, err
}

// CanChange reports whether changing rows of a table has no effect beyond the rows: no CHECKs,
// computed columns, or foreign keys that have to be checked. Triggers are not part of the table.
func (c *Change) CanChange(table *store.TableInfo) bool {
	for _, col := range table.Columns {
		if col.OnUpdate != "" || col.Generated != "" || col.Virtual || col.Hidden || col.HiddenSystem {
			return false
		}
	}
	if len(table.Table.Checks) > 0 || len(c.Set) == 0 && len(table.ReferencedBy) > 0 {
		return false
	}
	for i := range c.Set {
		if table.InReference(c.Set[i].Column.Index()) {
			return false
		}
	}
	return true
}
