package trigger

import (
	"context"
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// applyTriggersRule is the name of the rule that adds triggers to statements.
const applyTriggersRule = "applyTriggers"

// The rules of the whole process are changed, not those of an engine: go-mysql-server plans
// simple statements without the rules of their engine.
func init() {
	for i := range analyzer.OnceAfterAll {
		if r := &analyzer.OnceAfterAll[i]; r.Id.String() == applyTriggersRule {
			r.Apply = withTriggers(r.Apply)
		}
	}
}

// withTriggers makes each INSERT, UPDATE and DELETE in a statement run the triggers of its own
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

// inDatabaseOf makes a rule look for triggers in the database of the changed table: by itself it
// looks in the current database, even if there is none.
func inDatabaseOf(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if t, ok := resolvedIn(changed(n)).(*plan.ResolvedTable); ok && t.SqlDatabase != nil {
			current := ctx.GetCurrentDatabase()
			ctx.SetCurrentDatabase(t.SqlDatabase.Name())
			defer ctx.SetCurrentDatabase(current)
		}
		if tables := tablesIn(ctx, n); len(tables) > 0 {
			ctx = ctx.WithContext(context.WithValue(ctx.Context, wantedKey{}, &wanted{tables}))
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}

// A wanted is what a context says about the next look for triggers: the tables whose triggers
// matter. The rule asks for those of a database, once, and picks out those of the tables that the
// statement changes.
type wanted struct{ tables []string }

type wantedKey struct{}

// TakeTables returns the tables that the rule picks the triggers of, when it asks for all triggers of a
// database; nil if someone else asks. The rule then plans the triggers' bodies with the same context, so
// that TakeTables returns the tables only once.
func TakeTables(ctx *gms.Context) []string {
	w, ok := ctx.Value(wantedKey{}).(*wanted)
	if !ok {
		return nil
	}
	tables := w.tables
	w.tables = nil
	return tables
}

// tablesIn returns the names of all tables within a statement. The tables that it changes are among
// them.
func tablesIn(ctx *gms.Context, n gms.Node) (names []string) {
	note := func(_ *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.ResolvedTable:
			names = append(names, n.Name())
		case *plan.UnresolvedTable:
			names = append(names, n.Name())
		case *plan.IndexedTableAccess:
			names = append(names, n.Name())
		}
		return true
	}
	transform.InspectWithOpaque(ctx, n, func(ctx *gms.Context, n gms.Node) bool {
		switch n := n.(type) {
		case *plan.Update:
			if join, ok := n.Child.(*plan.UpdateJoin); ok {
				for _, target := range join.UpdateTargets { // any order: the names are sorted
					transform.InspectWithOpaque(ctx, target, note)
				}
			}
		case *plan.DeleteFrom:
			for _, target := range n.GetDeleteTargets() {
				transform.InspectWithOpaque(ctx, target, note)
			}
		}
		return note(ctx, n)
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// changed returns the table that a statement changes or, if it changes several, the first.
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
			return join.UpdateTargets[slices.Min(slices.Collect(maps.Keys(join.UpdateTargets)))]
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

// updateTriggers adds the triggers of an UPDATE's table to the UPDATE, by calling apply, which is
// go-mysql-server's rule. The generated columns are computed again after the BEFORE triggers.
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

// insertTriggers adds the triggers of an INSERT; apply, go-mysql-server's rule, adds those of the
// statement that it is given. REPLACE and ON DUPLICATE KEY UPDATE also run the DELETE or UPDATE
// triggers of the existing rows that they change. So insertTriggers plans such a DELETE or UPDATE
// only to find its triggers, and makes a firingTable with them the target of the INSERT.
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
	table.before, _ = executors(node.Children()[0]) // BEFORE triggers are around the source of rows
	if len(table.inserted)+len(table.deleted)+len(table.updated)+len(table.before) == 0 {
		return insert, same, nil
	}
	insert.HasAfterTrigger = false
	insert, err = table.into(ctx, insert)
	return insert, transform.NewTree, err
}

// deleteTriggers adds to a DELETE from a join the triggers of the tables that it deletes from;
// go-mysql-server refuses such statements.
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

// around puts triggers around a node, the last one outermost: it reverses what executors does.
func around(ctx *gms.Context, n gms.Node, all []*plan.TriggerExecutor) (gms.Node, error) {
	for _, x := range all {
		var err error
		if n, err = x.WithChildren(ctx, n, x.Right()); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// applied adds the triggers of a statement by calling apply. It returns the triggers that run after
// the statement, and the statement together with those that run before it.
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

// Source returns the node whose rows the triggers around it run for; n itself if there are none.
func Source(n gms.Node) gms.Node {
	for {
		switch x := n.(type) {
		case *plan.TriggerExecutor:
			n = x.Left()
		case *regenerated:
			n = x.Child
		default:
			return n
		}
	}
}

// resolvedIn returns the first table within a node, nil if there is none.
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
