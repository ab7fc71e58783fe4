package trigger

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// The names of go-mysql-server's rules that add triggers to statements, and that find the tables which
// an UPDATE of a join changes.
const (
	applyTriggersRule = "applyTriggers"
	updateJoinRule    = "modifyUpdateExprsForJoin"
)

// The rules of the whole process are changed, not those of an engine: go-mysql-server plans
// simple statements without the rules of their engine.
func init() {
	for i := range analyzer.OnceAfterAll {
		if r := &analyzer.OnceAfterAll[i]; r.Id.String() == applyTriggersRule {
			r.Apply = addTriggers
		}
	}
	for i := range analyzer.OnceAfterDefault {
		if r := &analyzer.OnceAfterDefault[i]; r.Id.String() == updateJoinRule {
			r.Apply = ofOwnTables(r.Apply)
		}
	}
}

// addTriggers makes each INSERT, UPDATE and DELETE in a statement run the triggers of the tables that
// it changes.
func addTriggers(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, _ analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	_, isInsert := n.(*plan.InsertInto) // LOAD DATA has no flag
	if !isInsert && !flags.DmlIsSet() {
		return n, transform.SameTree, nil
	}
	switch n.(type) {
	case *plan.CreateTrigger, *plan.CreateProcedure, *plan.CreateEvent:
		return n, transform.SameTree, nil
	}
	return transform.NodeWithCtx(ctx, n, outsideOfTriggers, func(ctx *gms.Context, c transform.Context) (gms.Node, transform.TreeIdentity, error) {
		p := &planner{a, scope, flags, c.Node}
		switch n := c.Node.(type) {
		case *plan.Update:
			return p.updateTriggers(ctx, n)
		case *plan.DeleteFrom:
			return p.deleteTriggers(ctx, n)
		case *plan.InsertInto:
			return p.insertTriggers(ctx, n)
		}
		return c.Node, transform.SameTree, nil
	})
}

// ofOwnTables makes the UPDATE of a join change the tables that it names. go-mysql-server takes the
// last table with a name, which may be in another database or in a subquery.
func ofOwnTables(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		n, same, err := apply(ctx, a, n, scope, sel, flags)
		update, ok := n.(*plan.Update)
		if err != nil || !ok {
			return n, same, err
		}
		if join, ok := update.Child.(*plan.UpdateJoin); ok {
			for name := range join.UpdateTargets {
				if t := tableOf(ctx, sourceOf(join).Child, name); t != nil {
					join.UpdateTargets[name] = t
				}
			}
		}
		return n, same, nil
	}
}

// outsideOfTriggers says whether a node is outside of the bodies of triggers, which have been
// planned on their own.
func outsideOfTriggers(_ *gms.Context, c transform.Context) bool {
	_, isInTrigger := c.Parent.(*plan.TriggerExecutor)
	return !isInTrigger || c.ChildNum == 0 // child 0 gives the rows, child 1 is the body
}

// insertTriggers adds the triggers of an INSERT. REPLACE and ON DUPLICATE KEY UPDATE also run the
// DELETE or UPDATE triggers of the existing rows that they change: these statements get a firingTable
// as their target.
func (p *planner) insertTriggers(ctx *gms.Context, n *plan.InsertInto) (gms.Node, transform.TreeIdentity, error) {
	target := resolvedIn(n.Destination)
	all, err := p.firedBy(ctx, target, plan.InsertTrigger)
	if err != nil {
		return n, transform.SameTree, err
	}
	insert := *n
	if len(all.before) > 0 {
		if insert.Source, err = around(ctx, n.Source, all.before); err != nil {
			return n, transform.SameTree, err
		}
	}
	out := regenerateInserted(ctx, &insert)
	if n.IsReplace || n.OnDupExprs.HasUpdates() {
		return p.existingTriggers(ctx, out, target, all)
	}
	out.HasAfterTrigger = out.HasAfterTrigger || len(all.after) > 0
	node, err := around(ctx, out, all.after)
	return node, transform.TreeIdentity(!all.any()), err
}

// existingTriggers adds two kinds of triggers to a REPLACE, or an INSERT with ON DUPLICATE KEY UPDATE: those that run
// if a row exists already, and the AFTER INSERT triggers, which run if it does not.
func (p *planner) existingTriggers(ctx *gms.Context, n *plan.InsertInto, target *plan.ResolvedTable, inserted *fired) (gms.Node, transform.TreeIdentity, error) {
	event := plan.UpdateTrigger
	if n.IsReplace {
		event = plan.DeleteTrigger
	}
	existing, err := p.firedBy(ctx, target, event)
	if err != nil {
		return n, transform.SameTree, err
	}
	if !inserted.any() && !existing.any() {
		return n, transform.SameTree, nil
	}
	table := &firingTable{a: p.a, inserted: inserted.after, before: existing.before}
	if n.IsReplace {
		table.deleted = existing.after
	} else {
		table.updated = existing.after
	}
	n, err = table.into(ctx, n)
	return n, transform.NewTree, err
}

// around puts triggers around a node, the last one outermost.
func around(ctx *gms.Context, n gms.Node, all []*plan.TriggerExecutor) (gms.Node, error) {
	for _, x := range all {
		var err error
		if n, err = x.WithChildren(ctx, n, x.Right()); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Source returns the node that produces a statement's rows, below triggers and the nodes of this package. It returns n
// if n is none of these.
func Source(n gms.Node) gms.Node {
	for {
		switch x := n.(type) {
		case *plan.TriggerExecutor:
			n = x.Left()
		case *regenerated:
			n = x.Child
		case *separated:
			n = x.Child
		default:
			return n
		}
	}
}
