package sql

import (
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/analyzer"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/executor"
)

// Numbers of our rules, above go-mysql-server's own.
const (
	plainFiltersRule  analyzer.RuleId = 1003
	movedRule         analyzer.RuleId = 1004
	framesRule        analyzer.RuleId = 1005
	possibleTimesRule analyzer.RuleId = 1006
	comparedRowsRule  analyzer.RuleId = 1007
	fractionsRule     analyzer.RuleId = 1008
	wideUnionsRule    analyzer.RuleId = 1009
	collationsRule    analyzer.RuleId = 1010
	wholeTimesRule    analyzer.RuleId = 1011
	recursiveRule     analyzer.RuleId = 1012
	boundedRule       analyzer.RuleId = 1013
)

// go-mysql-server has this extension point once for the whole process. Simple UPDATEs and
// DELETEs run these rules and some that cannot be changed. Simple SELECTs run them before
// all other rules, and so run plainFilters twice.
func init() {
	analyzer.AlwaysBeforeDefault = append(analyzer.AlwaysBeforeDefault,
		analyzer.Rule{Id: plainFiltersRule, Apply: plainFilters}, analyzer.Rule{Id: possibleTimesRule, Apply: compat.PossibleTimes},
		analyzer.Rule{Id: wholeTimesRule, Apply: compat.WholeTimes},
		analyzer.Rule{Id: comparedRowsRule, Apply: compat.ComparedRows}, analyzer.Rule{Id: wideUnionsRule, Apply: compat.WideUnions},
		analyzer.Rule{Id: collationsRule, Apply: compat.MixedCollations})
}

// plainFilters rewrites the conditions of statements in our sessions.
func plainFilters(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
	if _, ok := ctx.Session.(*Session); !ok {
		return n, transform.SameTree, nil
	}
	return compat.PlainFilters(ctx, a, n, scope, sel, flags)
}

// ownRules wraps rules of go-mysql-server in ours.
func ownRules(a *analyzer.Analyzer, e *Engine) {
	a.Coster = coster{a.Coster, e}
	compat.ChangeRules(a)
	for _, b := range a.Batches {
		for i := range b.Rules {
			if b.Rules[i].Id.String() == finalizeSubqueries {
				b.Rules[i].Apply = e.withMeters(b.Rules[i].Apply)
			}
			b.Rules[i].Apply = whileWanted(b.Rules[i].Apply)
			if slices.Contains(defaultTexts, b.Rules[i].Id.String()) {
				e.defaultRules = append(e.defaultRules, &b.Rules[i])
			}
		}
	}
}

// finalizeSubqueries is the name of the last rule that changes subqueries before they run.
const finalizeSubqueries = "finalizeSubqueries"

// defaultTexts are the names of the rules that change the texts of columns' defaults.
var defaultTexts = []string{"stripTableNamesFromColumnDefaults", "quoteDefaultColumnValueNames"}

// withMeters returns a rule that also meters the subqueries in expressions.
func (e *Engine) withMeters(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		out, same, err := apply(ctx, a, n, scope, sel, flags)
		if err != nil || !flags.SubqueryIsSet() {
			return out, same, err
		}
		metered, unchanged, err := executor.MeterSubqueries(ctx, e.gms.Analyzer.ExecBuilder, out)
		return metered, same && unchanged, err
	}
}

// whileWanted returns a rule that fails once the statement's context has ended.
func whileWanted(apply analyzer.RuleFunc) analyzer.RuleFunc {
	return func(ctx *gms.Context, a *analyzer.Analyzer, n gms.Node, scope *plan.Scope, sel analyzer.RuleSelector, flags *gms.QueryFlags) (gms.Node, transform.TreeIdentity, error) {
		if err := ctx.Err(); err != nil {
			return n, transform.SameTree, err
		}
		return apply(ctx, a, n, scope, sel, flags)
	}
}
