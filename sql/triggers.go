package sql

import (
	"cmp"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// This file puts right which triggers go-mysql-server runs. It has each kind of statement run
// those of one event, around the statement or its source. Which ones INSERT ... ON DUPLICATE
// KEY UPDATE and REPLACE have to run shows only when a row meets another; there the table's
// editor runs them. And of a compound statement it has each part run the triggers of all.

var (
	_ gms.Node             = (*firingTable)(nil)
	_ gms.ReplaceableTable = (*firingTable)(nil)
	_ gms.UpdatableTable   = (*firingTable)(nil)
	_ gms.DeletableTable   = (*firingTable)(nil)
	_ gms.TableWrapper     = (*firingTable)(nil)
	_ gms.ExecSourceRel    = (*oneRow)(nil)
)

// applyTriggersRule is the name of the rule that has statements run triggers.
const applyTriggersRule = "applyTriggers"

// These rules are the process's: simple statements are planned by fewer than an engine's.
func init() {
	for i := range analyzer.OnceAfterAll {
		if r := &analyzer.OnceAfterAll[i]; r.Id.String() == applyTriggersRule {
			r.Apply = withTriggers(r.Apply)
		}
	}
}

// withTriggers has each INSERT, UPDATE and DELETE in a statement run the triggers of its own
// table and events.
func withTriggers(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		switch n.(type) {
		case *plan.CreateTrigger, *plan.CreateProcedure, *plan.CreateEvent:
			return apply(ctx, a, n, scope, sel, flags)
		}
		one := func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
			return inDatabaseOf(apply)(ctx, a, n, scope, sel, flags)
		}
		return transform.NodeWithCtx(ctx, n, outsideOfTriggers, func(ctx *gms.Context, c transform.Context) (gms.Node, transform.TreeIdentity, error) {
			switch n := c.Node.(type) {
			case *plan.Update:
				return updateTriggers(ctx, n, one)
			case *plan.DeleteFrom:
				if n.HasExplicitTargets() {
					return deleteTriggers(ctx, a, n, one)
				}
				return one(ctx, n)
			case *plan.InsertInto:
				return insertTriggers(ctx, a, n, one)
			}
			return c.Node, transform.SameTree, nil
		})
	}
}

// inDatabaseOf has a rule look for triggers where the table is that a statement changes: by
// itself it looks in the current database, whether there is one or not.
func inDatabaseOf(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if t, ok := resolvedIn(changed(n)).(*plan.ResolvedTable); ok && t.SqlDatabase != nil {
			current := ctx.GetCurrentDatabase()
			ctx.SetCurrentDatabase(t.SqlDatabase.Name())
			defer ctx.SetCurrentDatabase(current)
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}

// changed is the table that a statement changes, or one of those, in what it is read from.
func changed(n gms.Node) gms.Node {
	switch n := n.(type) {
	case *plan.InsertInto:
		return n.Destination
	case *plan.DeleteFrom:
		if targets := n.GetDeleteTargets(); len(targets) > 0 {
			return targets[0]
		}
	case *plan.Update:
		if join, ok := n.Child.(*plan.UpdateJoin); ok {
			for _, target := range join.UpdateTargets {
				return target
			}
		}
	}
	return n
}

// outsideOfTriggers says whether a node is outside of the bodies of triggers, which have been
// planned on their own.
func outsideOfTriggers(_ *gms.Context, c transform.Context) bool {
	_, in := c.Parent.(*plan.TriggerExecutor)
	return !in || c.ChildNum == 0
}

// updateTriggers has an UPDATE run its triggers, given what has one statement run its own.
func updateTriggers(ctx *gms.Context, n gms.Node, apply transform.NodeFunc) (gms.Node, transform.TreeIdentity, error) {
	out, same, err := apply(ctx, n)
	if err != nil || bool(same) {
		return out, same, err
	}
	after, update := executors(out)
	if update, err = regenerateUpdated(ctx, update.(*plan.Update)); err != nil {
		return n, transform.SameTree, err
	}
	out, err = around(ctx, update, after)
	return out, transform.NewTree, err
}

// insertTriggers has an INSERT run its triggers, given what has one statement run its own.
func insertTriggers(ctx *gms.Context, a *analyzer.Analyzer, n *plan.InsertInto, apply transform.NodeFunc) (gms.Node, transform.TreeIdentity, error) {
	out, same, err := apply(ctx, n)
	if err != nil {
		return out, same, err
	}
	after, node := executors(out)
	insert := regenerateInserted(ctx, node.(*plan.InsertInto))
	if !n.IsReplace && !n.OnDupExprs.HasUpdates() {
		out, err = around(ctx, insert, after)
		return out, same, err
	}
	table := &firingTable{a: a, inserted: after}
	node = resolvedIn(n.Destination)
	if n.IsReplace {
		table.deleted, node, err = applied(ctx, plan.NewDeleteFrom(node, []gms.Node{node}, false), apply)
	} else {
		table.updated, node, err = applied(ctx, plan.NewUpdate(node, n.Ignore, &plan.UpdateExprs{}), apply)
	}
	if err != nil {
		return n, transform.SameTree, err
	}
	table.before, _ = executors(node.Children()[0])
	if len(table.inserted)+len(table.deleted)+len(table.updated)+len(table.before) == 0 {
		return insert, same, nil
	}
	insert.HasAfterTrigger = false
	insert, err = table.into(ctx, insert)
	return insert, transform.NewTree, err
}

// deleteTriggers has a DELETE from a join run the triggers of the tables that it deletes from,
// which go-mysql-server refuses.
func deleteTriggers(ctx *gms.Context, a *analyzer.Analyzer, n *plan.DeleteFrom, apply transform.NodeFunc) (gms.Node, transform.TreeIdentity, error) {
	same := transform.SameTree
	targets := slices.Clone(n.GetDeleteTargets())
	for i, target := range targets {
		table := &firingTable{a: a, node: target}
		resolved := resolvedIn(target)
		if resolved == nil {
			continue
		}
		after, one, err := applied(ctx, plan.NewDeleteFrom(resolved, []gms.Node{resolved}, false), apply)
		if err != nil {
			return n, same, err
		}
		table.deleted = after
		table.before, _ = executors(one.Children()[0])
		if len(table.deleted)+len(table.before) == 0 {
			continue
		}
		deletable, err := plan.GetDeletable(target)
		if err != nil {
			return n, same, err
		}
		insertable, ok := deletable.(gms.InsertableTable)
		if !ok {
			return n, same, plan.ErrDeleteFromNotSupported.New()
		}
		table.InsertableTable = insertable
		targets[i], same = table, transform.NewTree
	}
	return n.WithTargets(targets), same, nil
}

// around puts triggers around a node.
func around(ctx *gms.Context, n gms.Node, all []*plan.TriggerExecutor) (gms.Node, error) {
	for _, x := range all {
		var err error
		if n, err = x.WithChildren(ctx, n, x.Right()); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// applied returns the triggers that run after a statement, and the statement with those that
// run before.
func applied(ctx *gms.Context, n gms.Node, apply transform.NodeFunc) ([]*plan.TriggerExecutor, gms.Node, error) {
	n, _, err := apply(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	all, n := executors(n)
	return all, n, nil
}

// executors returns the triggers around a node in the order in which they run, and the node.
func executors(n gms.Node) (all []*plan.TriggerExecutor, inside gms.Node) {
	for {
		x, ok := n.(*plan.TriggerExecutor)
		if !ok {
			slices.Reverse(all)
			return all, n
		}
		all, n = append(all, x), x.Left()
	}
}

func resolvedIn(n gms.Node) (table gms.Node) {
	transform.Inspect(n, func(n gms.Node) bool {
		if x, ok := n.(*plan.IndexedTableAccess); ok {
			n = x.TableNode
		}
		if t, ok := n.(*plan.ResolvedTable); ok && table == nil {
			table = t
		}
		return table == nil
	})
	return table
}

// A firingTable is what an INSERT inserts into if its triggers depend on what it meets, or a
// DELETE from a join deletes from.
type firingTable struct {
	gms.InsertableTable
	a    *analyzer.Analyzer
	node gms.Node
	// inserted, updated and deleted are the triggers after these events; before are those
	// before the one of UPDATE and DELETE that the statement may come to.
	inserted, updated, deleted, before []*plan.TriggerExecutor
	// again has what triggers before UPDATE make of a row computed again.
	again []regenerator
	// checks are the statement's, which are to see what triggers have made of a row.
	checks gms.CheckConstraints
}

// into puts the table under an INSERT, whose CHECKs it takes over.
func (t *firingTable) into(ctx *gms.Context, n *plan.InsertInto) (*plan.InsertInto, error) {
	table, err := plan.GetInsertable(n.Destination)
	if err != nil {
		return nil, err
	}
	t.InsertableTable, t.node, t.checks = table, n.Destination, n.Checks()
	if !n.IsReplace && len(t.before) > 0 {
		t.again = regenerators(n.Destination.Schema(ctx), "", n.Destination)
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
	again, err := ready(ctx, t.again)
	return &firingUpdater{t.InsertableTable.(gms.UpdatableTable).Updater(ctx), t, again, err}
}

// Replacer implements gms.ReplaceableTable.
func (t *firingTable) Replacer(ctx *gms.Context) gms.RowReplacer {
	return &firingReplacer{t.InsertableTable.(gms.ReplaceableTable).Replacer(ctx), t}
}

// Deleter implements gms.DeletableTable.
func (t *firingTable) Deleter(ctx *gms.Context) gms.RowDeleter {
	columns := t.InsertableTable.Schema(ctx)
	return &firingDeleter{t.InsertableTable.(gms.DeletableTable).Deleter(ctx), t, columns, newRowSet(nil, columns), make(map[uint64]bool)}
}

// A firingDeleter deletes from one table of a join, whose rows may come several times, or be
// missing.
type firingDeleter struct {
	gms.RowDeleter
	t       *firingTable
	columns gms.Schema
	rows    *rowSet
	gone    map[uint64]bool
}

// Delete implements gms.RowDeleter.
func (f *firingDeleter) Delete(ctx *gms.Context, row gms.Row) error {
	isMissing, isKeyed := true, false
	for i, c := range f.columns {
		isMissing = isMissing && row[i] == nil
		isKeyed = isKeyed || c.PrimaryKey
	}
	if isMissing {
		return nil
	}
	if isKeyed {
		key, err := f.rows.key(ctx, row)
		if err != nil || f.gone[key] {
			return err
		}
		f.gone[key] = true
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
	t     *firingTable
	again []regenerator
	err   error // in the way of again
}

// Update implements gms.RowUpdater. What triggers make of the new row is put in its place, so
// that it is counted, too.
func (f *firingUpdater) Update(ctx *gms.Context, old, row gms.Row) error {
	if f.err != nil {
		return f.err
	}
	both, err := f.t.fire(ctx, f.t.before, old.Append(row))
	if err != nil {
		return err
	}
	if both, err = again(ctx, f.again, both); err != nil {
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

func (t *firingTable) delete(ctx *gms.Context, from gms.RowDeleter, row gms.Row) error {
	if _, err := t.fire(ctx, t.before, row); err != nil {
		return err
	}
	if err := from.Delete(ctx, row); err != nil {
		return err
	}
	_, err := t.fire(ctx, t.deleted, row)
	return err
}

func (t *firingTable) insert(ctx *gms.Context, into gms.RowInserter, row gms.Row) error {
	if err := t.check(ctx, row); err != nil {
		return err
	}
	if err := into.Insert(ctx, row); err != nil {
		return err
	}
	_, err := t.fire(ctx, t.inserted, row)
	return err
}

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

// fire runs triggers for a row, and returns what they make of it. That a trigger's own
// statement meets another row is an error, and not for the statement around it to go on from.
func (t *firingTable) fire(ctx *gms.Context, all []*plan.TriggerExecutor, row gms.Row) (gms.Row, error) {
	for _, x := range all {
		n, err := x.WithChildren(ctx, &oneRow{row: row}, x.Right())
		if err != nil {
			return nil, err
		}
		rows, err := t.a.ExecBuilder.Build(ctx, n, nil)
		if err != nil {
			return nil, err
		}
		row, err = rows.Next(ctx)
		err = cmp.Or(err, rows.Close(ctx))
		if gms.ErrPrimaryKeyViolation.Is(err) || gms.ErrUniqueKeyViolation.Is(err) {
			err = SQLError(err)
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
