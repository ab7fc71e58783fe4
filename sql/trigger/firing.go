package trigger

import (
	"cmp"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/myerr"
)

var (
	_ gms.Node             = (*firingTable)(nil)
	_ gms.ReplaceableTable = (*firingTable)(nil)
	_ gms.UpdatableTable   = (*firingTable)(nil)
	_ gms.DeletableTable   = (*firingTable)(nil)
	_ gms.TableWrapper     = (*firingTable)(nil)
	_ gms.ExecSourceRel    = (*oneRow)(nil)
)

// A firingTable is the target of an INSERT whose triggers depend on the rows that exist already,
// or of a DELETE from a join.
type firingTable struct {
	gms.InsertableTable
	a    *analyzer.Analyzer
	node gms.Node
	// isJoined is set for a DELETE from a join, whose rows may have no row of this table.
	isJoined bool
	// inserted, updated and deleted are the triggers that run after these events; before are
	// the BEFORE triggers of the UPDATE or DELETE that the statement may turn into.
	inserted, updated, deleted, before []*plan.TriggerExecutor
	// regenerators recompute the generated columns of rows that BEFORE UPDATE triggers have
	// changed.
	regenerators []regenerator
	// checks are the statement's CHECKs: they apply to a row after its triggers have run.
	checks gms.CheckConstraints
}

// into makes the table the target of an INSERT, and takes over its CHECKs.
func (t *firingTable) into(ctx *gms.Context, n *plan.InsertInto) (*plan.InsertInto, error) {
	table, err := plan.GetInsertable(n.Destination)
	if err != nil {
		return nil, err
	}
	t.InsertableTable, t.node, t.checks = table, n.Destination, n.Checks()
	if !n.IsReplace && len(t.before) > 0 {
		t.regenerators = regenerators(n.Destination.Schema(ctx), n.Destination)
	}
	n = n.WithChecks(nil).(*plan.InsertInto)
	n.Destination = t
	return n, nil
}

// Schema implements gms.Node.
func (t *firingTable) Schema(ctx *gms.Context) gms.Schema { return t.node.Schema(ctx) }

// Resolved implements gms.Node.
func (t *firingTable) Resolved() bool { return t.node.Resolved() }

// IsReadOnly implements gms.Node.
func (t *firingTable) IsReadOnly() bool { return t.node.IsReadOnly() }

// Children implements gms.Node.
func (t *firingTable) Children() []gms.Node { return []gms.Node{t.node} }

// WithChildren implements gms.Node.
func (t *firingTable) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 1 {
		return nil, gms.ErrInvalidChildrenNumber.New(t, len(children), 1)
	}
	u := *t
	u.node = children[0]
	return &u, nil
}

// Underlying implements gms.TableWrapper.
func (t *firingTable) Underlying() gms.Table { return t.InsertableTable }

// Inserter implements gms.InsertableTable.
func (t *firingTable) Inserter(ctx *gms.Context) gms.RowInserter {
	return &firingInserter{t.InsertableTable.Inserter(ctx), t}
}

// Updater implements gms.UpdatableTable.
func (t *firingTable) Updater(ctx *gms.Context) gms.RowUpdater {
	all, err := ready(ctx, t.regenerators)
	return &firingUpdater{t.InsertableTable.(gms.UpdatableTable).Updater(ctx), t, all, err}
}

// Replacer implements gms.ReplaceableTable.
func (t *firingTable) Replacer(ctx *gms.Context) gms.RowReplacer {
	return &firingReplacer{t.InsertableTable.(gms.ReplaceableTable).Replacer(ctx), t}
}

// Deleter implements gms.DeletableTable.
func (t *firingTable) Deleter(ctx *gms.Context) gms.RowDeleter {
	return &firingDeleter{t.InsertableTable.(gms.DeletableTable).Deleter(ctx), t}
}

// A firingDeleter deletes rows of a table.
type firingDeleter struct {
	gms.RowDeleter
	t *firingTable
}

// Delete implements gms.RowDeleter. If a row of a join is all NULL, it stands for a row of another table.
func (f *firingDeleter) Delete(ctx *gms.Context, row gms.Row) error {
	if f.t.isJoined && !slices.ContainsFunc(row, func(v any) bool { return v != nil }) {
		return nil
	}
	return f.t.delete(ctx, f.RowDeleter, row)
}

type firingInserter struct {
	gms.RowInserter
	t *firingTable
}

// Insert implements gms.RowInserter.
func (f *firingInserter) Insert(ctx *gms.Context, row gms.Row) error {
	return f.t.insert(ctx, f.RowInserter, row)
}

type firingUpdater struct {
	gms.RowUpdater
	t            *firingTable
	regenerators []regenerator
	err          error // error of making the regenerators
}

// Update implements gms.RowUpdater. It copies the new row, as the triggers have changed it, into
// row itself, so that the caller counts the changed row.
func (f *firingUpdater) Update(ctx *gms.Context, old, row gms.Row) error {
	if f.err != nil {
		return f.err
	}
	both, err := f.t.fire(ctx, f.t.before, old.Append(row))
	if err != nil {
		return err
	}
	if both, err = regenerate(ctx, f.regenerators, both); err != nil {
		return err
	}
	copy(row, both[len(old):])
	if err := f.t.check(ctx, row); err != nil {
		return err
	}
	if err := f.RowUpdater.Update(ctx, old, row); err != nil {
		return err
	}
	_, err = f.t.fire(ctx, f.t.updated, both)
	return err
}

type firingReplacer struct {
	gms.RowReplacer
	t *firingTable
}

// Insert implements gms.RowReplacer.
func (f *firingReplacer) Insert(ctx *gms.Context, row gms.Row) error {
	return f.t.insert(ctx, f.RowReplacer, row)
}

// Delete implements gms.RowReplacer.
func (f *firingReplacer) Delete(ctx *gms.Context, row gms.Row) error {
	return f.t.delete(ctx, f.RowReplacer, row)
}

// delete deletes a row, and runs the triggers before and after that.
func (t *firingTable) delete(ctx *gms.Context, deleter gms.RowDeleter, row gms.Row) error {
	if _, err := t.fire(ctx, t.before, row); err != nil {
		return err
	}
	if err := deleter.Delete(ctx, row); err != nil {
		return err
	}
	_, err := t.fire(ctx, t.deleted, row)
	return err
}

// insert inserts a row, and runs the triggers after that.
func (t *firingTable) insert(ctx *gms.Context, inserter gms.RowInserter, row gms.Row) error {
	if err := t.check(ctx, row); err != nil {
		return err
	}
	if err := inserter.Insert(ctx, row); err != nil {
		return err
	}
	_, err := t.fire(ctx, t.inserted, row)
	return err
}

// check returns an error if a row violates one of the statement's CHECKs.
func (t *firingTable) check(ctx *gms.Context, row gms.Row) error {
	for _, c := range t.checks {
		if !c.Enforced {
			continue
		}
		holds, err := gms.EvaluateCondition(ctx, c.Expr, row)
		if err != nil {
			return err
		}
		if gms.IsFalse(holds) {
			return gms.ErrCheckConstraintViolated.New(c.Name)
		}
	}
	return nil
}

// fire runs triggers for a row.
func (t *firingTable) fire(ctx *gms.Context, all []*plan.TriggerExecutor, row gms.Row) (gms.Row, error) {
	return fire(ctx, t.a, all, row)
}

// fire runs triggers for a row.
func (f *fired) fire(ctx *gms.Context, all []*plan.TriggerExecutor, row gms.Row) (gms.Row, error) {
	return fire(ctx, f.a, all, row)
}

// fire runs triggers for a row, and returns the row as they have changed it. A duplicate key
// in a trigger's own statement is an error that the outer statement must not handle as its
// own.
func fire(ctx *gms.Context, a *analyzer.Analyzer, all []*plan.TriggerExecutor, row gms.Row) (gms.Row, error) {
	for _, x := range all {
		n, err := x.WithChildren(ctx, &oneRow{row: row}, x.Right())
		if err != nil {
			return nil, err
		}
		rows, err := a.ExecBuilder.Build(ctx, n, nil)
		if err != nil {
			return nil, err
		}
		row, err = rows.Next(ctx)
		err = cmp.Or(err, rows.Close(ctx))
		if gms.ErrPrimaryKeyViolation.Is(err) || gms.ErrUniqueKeyViolation.Is(err) {
			err = myerr.Of(err)
		}
		if err != nil {
			return nil, err
		}
	}
	return row, nil
}

// oneRow is a node that has one row.
type oneRow struct{ row gms.Row }

// Resolved implements gms.Node.
func (*oneRow) Resolved() bool { return true }

// IsReadOnly implements gms.Node.
func (*oneRow) IsReadOnly() bool { return true }

// String implements gms.Node.
func (*oneRow) String() string { return "oneRow" }

// Schema implements gms.Node.
func (*oneRow) Schema(*gms.Context) gms.Schema { return nil }

// Children implements gms.Node.
func (*oneRow) Children() []gms.Node { return nil }

// WithChildren implements gms.Node.
func (o *oneRow) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(o, len(children), 0)
	}
	return o, nil
}

// RowIter implements gms.ExecSourceRel.
func (o *oneRow) RowIter(*gms.Context, gms.Row) (gms.RowIter, error) {
	return gms.RowsToRowIter(o.row), nil
}
