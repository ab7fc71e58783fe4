package trigger

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/planbuilder"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// A Database knows the triggers of its tables.
type Database interface {
	// TableTriggers returns the triggers of a table in the order of their creation.
	TableTriggers(ctx *gms.Context, table string) ([]gms.TriggerDefinition, error)
}

// A planner plans the triggers that a statement runs.
type planner struct {
	a         *analyzer.Analyzer
	scope     *plan.Scope
	flags     *gms.QueryFlags
	statement gms.Node
}

// fired are the triggers of a table for an event, in the order in which they run.
type fired struct {
	a             *analyzer.Analyzer
	before, after []*plan.TriggerExecutor
}

// any reports whether there are triggers.
func (f *fired) any() bool { return len(f.before)+len(f.after) > 0 }

// firedBy plans the triggers that an event on a table fires; none for a nil table. Names in them that have no database are
// those of the table's database.
func (p *planner) firedBy(ctx *gms.Context, table *plan.ResolvedTable, event plan.TriggerEvent) (*fired, error) {
	out := &fired{a: p.a}
	if table == nil || table.SqlDatabase == nil {
		return out, nil
	}
	current := ctx.GetCurrentDatabase()
	ctx.SetCurrentDatabase(table.SqlDatabase.Name())
	defer ctx.SetCurrentDatabase(current)
	all, err := p.find(ctx, table, event)
	if err != nil || len(all) == 0 {
		return out, err
	}
	p.flags.Set(gms.QFlagTrigger)
	p.flags.Set(gms.QFlagRelSubquery)
	before, after := plan.OrderTriggers(all)
	if out.before, err = p.planAll(ctx, before); err != nil {
		return nil, err
	}
	out.after, err = p.planAll(ctx, after)
	return out, err
}

// find returns the triggers of a table for an event. A trigger whose text cannot be understood any more belongs to no
// table.
func (p *planner) find(ctx *gms.Context, table *plan.ResolvedTable, event plan.TriggerEvent) (all []*plan.CreateTrigger, err error) {
	db, err := p.a.Catalog.Database(ctx, table.SqlDatabase.Name())
	if err != nil {
		return nil, err
	}
	if outer, ok := db.(interface{ Unwrap() gms.Database }); ok { // checks privileges, and hides TableTriggers
		db = outer.Unwrap()
	}
	known, ok := db.(Database)
	if !ok {
		return nil, nil
	}
	defs, err := known.TableTriggers(ctx, table.Name())
	if err != nil {
		return nil, err
	}
	for _, d := range defs {
		t, err := p.parse(ctx, d, true) // the head, which says whether the trigger is one of them
		if err != nil || !isOf(t, table, event) {
			continue
		}
		if t, err = p.parse(ctx, d, false); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// isOf reports whether a trigger is one of a table for an event.
func isOf(t *plan.CreateTrigger, table *plan.ResolvedTable, event plan.TriggerEvent) bool {
	own, ok := t.Table.(*plan.ResolvedTable)
	return ok && strings.EqualFold(own.Name(), table.Name()) && strings.EqualFold(t.TriggerEvent, string(event))
}

// parse returns a trigger as its text defines it, without its body if only its head is asked for:
// the body of a trigger for another event may name tables that are gone.
func (p *planner) parse(ctx *gms.Context, d gms.TriggerDefinition, head bool) (*plan.CreateTrigger, error) {
	b := planbuilder.New(ctx, p.a.Catalog, nil)
	b.DisableAuth()
	b.SetParserOptions(gms.NewSqlModeFromString(d.SqlMode).ParserOptions())
	b.TriggerCtx().LoadOnly, b.TriggerCtx().Call = head, !head
	n, _, _, _, err := b.Parse(d.CreateStatement, nil, false)
	if err != nil {
		return nil, err
	}
	t, ok := n.(*plan.CreateTrigger)
	if !ok {
		return nil, gms.ErrTriggerCreateStatementInvalid.New(d.CreateStatement)
	}
	if block, ok := t.Body.(*plan.BeginEndBlock); ok {
		t.Body = plan.NewTriggerBeginEndBlock(block)
	}
	return t, nil
}

// planAll plans the bodies of triggers.
func (p *planner) planAll(ctx *gms.Context, all []*plan.CreateTrigger) (out []*plan.TriggerExecutor, err error) {
	for _, t := range all {
		if err := p.refuse(ctx, t); err != nil {
			return nil, err
		}
		body, err := p.body(ctx, t)
		if err != nil {
			return nil, err
		}
		definition := gms.TriggerDefinition{Name: t.TriggerName, CreateStatement: t.CreateTriggerString}
		out = append(out, plan.NewTriggerExecutor(t.Table, body, plan.TriggerEvent(t.TriggerEvent), plan.TriggerTime(t.TriggerTime), definition))
	}
	return out, nil
}

// body plans the body of a trigger, which sees a row of the table, or the old and the new one, as
// the row of an outer query. The statements that run it are noted, for the triggers that the body
// itself runs.
func (p *planner) body(ctx *gms.Context, t *plan.CreateTrigger) (gms.Node, error) {
	var row gms.Node
	switch plan.TriggerEvent(t.TriggerEvent) {
	case plan.InsertTrigger:
		row = plan.NewTableAlias("new", t.Table)
	case plan.DeleteTrigger:
		row = plan.NewTableAlias("old", t.Table)
	default:
		row = plan.NewCrossJoin(plan.NewTableAlias("old", t.Table), plan.NewTableAlias("new", t.Table))
	}
	var scope *plan.Scope
	scope = scope.NewScope(plan.NewProject([]gms.Expression{expression.NewStar()}, row))
	scope = scope.WithMemos(p.scope.Memo(p.statement).MemoNodes()).WithProcedureCache(p.scope.ProcedureCache())
	body, err := p.a.Analyze(ctx, t.Body, scope, nil)
	if err != nil {
		return nil, err
	}
	if _, isBlock := body.(*plan.TriggerBeginEndBlock); isBlock {
		return declared(ctx, body)
	}
	return body, nil
}

// refuse returns an error if a trigger cannot run: it changes a table that is used by a statement which
// runs the trigger, or it calls a procedure that cannot be planned.
func (p *planner) refuse(ctx *gms.Context, t *plan.CreateTrigger) (err error) {
	used := make(map[tableName]bool)
	for _, n := range append([]gms.Node{p.statement}, p.scope.MemoNodes()...) {
		noteTables(ctx, n, used)
	}
	transform.InspectWithOpaque(ctx, t.Body, func(ctx *gms.Context, n gms.Node) bool {
		if call, ok := n.(*plan.Call); ok && err == nil && call.Procedure != nil {
			err = call.Procedure.ValidationError
		}
		for _, table := range changed(ctx, n) {
			if err == nil && used[nameOf(table)] {
				err = gms.ErrTriggerTableInUse.New("'" + table.Name() + "'")
			}
		}
		return err == nil
	})
	return err
}

// declared makes the variables that a body declares, and the uses of them, share their values.
func declared(ctx *gms.Context, body gms.Node) (gms.Node, error) {
	values := expression.NewProcedureReference()
	expressions := func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		if _, ok := n.(gms.Expressioner); !ok {
			return n, transform.SameTree, nil
		}
		return transform.OneNodeExpressions(ctx, n, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
			if v, ok := e.(*expression.ProcedureParam); ok {
				return v.WithParamReference(values), transform.NewTree, nil
			}
			return e, transform.SameTree, nil
		})
	}
	out, _, err := transform.NodeWithOpaque(ctx, body, func(ctx *gms.Context, n gms.Node) (gms.Node, transform.TreeIdentity, error) {
		switch n := n.(type) {
		case *plan.InsertInto:
			source, same, err := transform.NodeWithOpaque(ctx, n.Source, expressions)
			if err != nil || bool(same) {
				return n, transform.SameTree, err
			}
			return n.WithSource(source), transform.NewTree, nil
		case expression.ProcedureReferencable:
			n1, _, err := transform.NodeWithOpaque(ctx, n.WithParamReference(values), expressions)
			return n1, transform.NewTree, err
		}
		return expressions(ctx, n)
	})
	return out, err
}
