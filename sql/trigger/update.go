package trigger

import (
	"cmp"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/store"
)

var (
	_ gms.Node            = (*updates)(nil)
	_ gms.ExecBuilderNode = (*updates)(nil)
	_ gms.UpdatableTable  = (*updates)(nil)
)

// An updates is between an UPDATE and its rows, if the UPDATE is of a join or has triggers. It is both a node and a
// table. The node returns each row of each table once, with its change, and runs the BEFORE triggers; it also runs the
// AFTER triggers of a row that stays as it is, because nobody updates that row. The table's updater makes the changes
// in a row of the join, and runs the AFTER triggers.
type updates struct {
	plan.UnaryNode
	// triggers are those of the tables, by the name that a table has in the join.
	triggers map[string]*fired
	isJoin   bool
}

// An updated is a table that an UPDATE changes.
type updated struct {
	section
	*fired
	name         tableName
	into         gms.UpdatableTable
	regenerators []regenerator
	// assigned are the columns that the UPDATE of a join itself assigns values to.
	assigned []int
	checks   *store.Checks // of a join; go-mysql-server checks other rows
}

// updateTriggers adds the triggers of the tables of an UPDATE.
func (p *planner) updateTriggers(ctx *gms.Context, n *plan.Update) (gms.Node, transform.TreeIdentity, error) {
	source := sourceOf(n.Child)
	if source == nil {
		return n, transform.SameTree, nil
	}
	_, isUpdateJoin := n.Child.(*plan.UpdateJoin)
	u := &updates{UnaryNode: plan.UnaryNode{Child: n.Child}, triggers: make(map[string]*fired), isJoin: n.IsJoin && isUpdateJoin}
	isFiring := u.isJoin
	for _, name := range assignedTables(source) {
		all, err := p.firedBy(ctx, tableOf(ctx, source.Child, name), plan.UpdateTrigger)
		if err != nil {
			return n, transform.SameTree, err
		}
		u.triggers[name] = all
		isFiring = isFiring || all.any()
	}
	if !isFiring {
		return n, transform.SameTree, nil
	}
	out, err := n.WithChildren(ctx, u)
	if err == nil && u.isJoin {
		out = out.(*plan.Update).WithChecks(nil)
	}
	return out, transform.NewTree, err
}

// tables returns the tables, in the order of the FROM clause.
func (u *updates) tables(ctx *gms.Context) (all []updated, err error) {
	source := sourceOf(u.Child)
	columns, err := source.GetChildSchema(ctx)
	if err != nil {
		return nil, err
	}
	join, isUpdateJoin := u.Child.(*plan.UpdateJoin)
	for name, triggers := range u.triggers { // any order: they are sorted
		t, node := updated{fired: triggers}, u.Child
		if isUpdateJoin {
			node = join.UpdateTargets[name]
		} else {
			name = "" // the columns are the whole row
		}
		if t.section, err = sectionOf(ctx, columns, name, resolvedIn(node)); err != nil {
			return nil, err
		}
		if t.into, err = plan.GetUpdatable(node); err != nil {
			return nil, err
		}
		t.assigned = assignedColumns(source, name, t.columns)
		if err := t.prepare(ctx, node, u.isJoin); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b updated) int { return cmp.Compare(a.section.table, b.section.table) })
	return all, nil
}

// prepare makes the regenerators and the checks that each row of the table needs.
func (t *updated) prepare(ctx *gms.Context, node gms.Node, isJoin bool) (err error) {
	if len(t.before) > 0 {
		if t.regenerators, err = ready(ctx, regenerators(t.columns, node)); err != nil {
			return err
		}
	}
	t.name = nameOf(resolvedIn(node))
	if info := infoOf(node); isJoin && info != nil {
		t.checks, err = store.NewChecks(ctx, info)
	}
	return err
}

// assignedColumns returns the columns of one table that the SET clause of an UPDATE of a join names, as indexes of
// columns. The table is the one that is called name in the join, and columns are its columns. Columns that change only as
// a consequence, such as generated ones, are left out.
func assignedColumns(source *plan.UpdateSource, name string, columns gms.Schema) (all []int) {
	for _, e := range source.UpdateExprs.ExplicitUpdateExprs() {
		set, ok := e.(*expression.SetField)
		if !ok {
			continue
		}
		if column, ok := set.LeftChild.(*expression.GetField); ok && strings.EqualFold(column.Table(), name) {
			all = append(all, slices.IndexFunc(columns, func(c *gms.Column) bool { return strings.EqualFold(c.Name, column.Name()) }))
		}
	}
	return all
}

// withAssigned returns changed, a row of a join after the UPDATE. It returns old if all columns to which the
// UPDATE assigns values are the same: then the other columns, such as the time of the last change, stay as well.
func (t *updated) withAssigned(ctx *gms.Context, old, changed gms.Row) (gms.Row, error) {
	for _, at := range t.assigned {
		differs, err := t.columns[at].Type.Compare(ctx, old[at], changed[at])
		if err != nil || differs != 0 {
			return changed, err
		}
	}
	return old, nil
}

// WithChildren implements gms.Node.
func (u *updates) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(u, len(children), 1)
	}
	v := *u
	v.Child = children[0]
	return &v, nil
}

// String implements gms.Node.
func (u *updates) String() string { return u.Child.String() }

// IsReadOnly implements gms.Node.
func (*updates) IsReadOnly() bool { return false }

// Schema implements gms.Node: the columns of a row, before or after the change.
func (u *updates) Schema(ctx *gms.Context) gms.Schema {
	columns, err := sourceOf(u.Child).GetChildSchema(ctx)
	if err != nil {
		return sourceOf(u.Child).Child.Schema(ctx)
	}
	return columns
}

// Name implements gms.Table.
func (*updates) Name() string { return "" }

// Collation implements gms.Table.
func (*updates) Collation() gms.CollationID { return gms.Collation_Default }

// Partitions implements gms.Table.
func (*updates) Partitions(*gms.Context) (gms.PartitionIter, error) {
	return gms.PartitionsToPartitionIter(), nil
}

// PartitionRows implements gms.Table.
func (*updates) PartitionRows(*gms.Context, gms.Partition) (gms.RowIter, error) {
	return gms.RowsToRowIter(), nil
}

// Updater implements gms.UpdatableTable.
func (u *updates) Updater(ctx *gms.Context) gms.RowUpdater {
	tables, err := u.tables(ctx)
	if err != nil {
		return &updatesUpdater{err: err}
	}
	out := &updatesUpdater{tables: tables}
	for _, t := range tables {
		out.into = append(out.into, t.into.Updater(ctx))
	}
	return out
}

// An updatesUpdater updates rows of the tables of a join.
type updatesUpdater struct {
	tables []updated
	into   []gms.RowUpdater // by table
	err    error
}

// StatementBegin implements gms.TableEditor.
func (u *updatesUpdater) StatementBegin(ctx *gms.Context) {
	for _, t := range u.into {
		t.StatementBegin(ctx)
	}
}

// DiscardChanges implements gms.TableEditor.
func (u *updatesUpdater) DiscardChanges(ctx *gms.Context, cause error) error {
	return u.each(func(t gms.RowUpdater) error { return t.DiscardChanges(ctx, cause) })
}

// StatementComplete implements gms.TableEditor.
func (u *updatesUpdater) StatementComplete(ctx *gms.Context) error {
	return u.each(func(t gms.RowUpdater) error { return t.StatementComplete(ctx) })
}

// Close implements gms.Closer.
func (u *updatesUpdater) Close(ctx *gms.Context) error {
	return u.each(func(t gms.RowUpdater) error { return t.Close(ctx) })
}

// each calls f for all tables, and returns the first error.
func (u *updatesUpdater) each(f func(gms.RowUpdater) error) error {
	err := u.err
	for _, t := range u.into {
		err = cmp.Or(err, f(t))
	}
	return err
}

// Update implements gms.RowUpdater. It updates the tables whose part of the row has changed.
func (u *updatesUpdater) Update(ctx *gms.Context, old, row gms.Row) error {
	if u.err != nil {
		return u.err
	}
	for i := range u.tables {
		t := &u.tables[i]
		before, after := t.of(old), t.of(row)
		if isSame, err := before.Equals(ctx, after, t.columns); err != nil || isSame {
			if err != nil {
				return err
			}
			continue
		}
		if err := t.checks.Check(ctx, after); err != nil {
			return err
		}
		if err := u.into[i].Update(ctx, before, after); err != nil {
			return err
		}
		if _, err := t.fire(ctx, t.after, append(before[:len(before):len(before)], after...)); err != nil {
			return err
		}
	}
	return nil
}
