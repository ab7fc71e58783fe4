package fast

import (
	"slices"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/sql/compat"
)

// setsMax bounds the combinations of literals of one SET whose plans are kept.
const setsMax = 16

// A setCache keeps go-mysql-server's plans of a SET that differ in their literals. A plan is executed by any
// number of sessions at a time: it has no state.
type setCache struct {
	lockrank.Mutex[lockrank.Leaf]
	plans map[string]*plan.Set // nil for literals that are left to go-mysql-server
}

// shapeOfSet returns nil for a SET whose plan depends on values that variables have when it is planned: DEFAULT, and CHARSET,
// which sets a variable to another one.
func shapeOfSet(n *sqlparser.Set) *shape {
	for _, e := range n.Exprs {
		if _, isDefault := e.Expr.(*sqlparser.Default); isDefault || strings.EqualFold(e.Name.String(), "charset") {
			return nil
		}
	}
	return &shape{kind: shapeSet}
}

// set executes a SET of the session's variables by the plan that go-mysql-server has made of it. It returns
// ErrPlan if there is none, or the SET fails: go-mysql-server then sets the variables again, and reports the error.
func (c *Compiled) set(ctx *gms.Context, s *Session, values []Value) (*Result, error) {
	n, err := c.setPlan(ctx, values)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tr := s.Began(ctx)
	iter, err := c.cache.gms.Analyzer.ExecBuilder.Build(ctx, n, nil)
	if err != nil {
		return nil, ErrPlan
	}
	if err := iter.Close(ctx); err != nil { // the only row says OK
		return nil, ErrPlan
	}
	last := s.GetLastQueryInfo()
	last.RowCount.Store(-1)
	last.FoundRows.Store(1)
	return &Result{OK: types.NewOkResult(0)}, s.autocommitted(ctx, tr)
}

// setPlan returns the plan for the running statement, by its literals.
func (c *Compiled) setPlan(ctx *gms.Context, values []Value) (*plan.Set, error) {
	var room [128]byte
	key := room[:0]
	for _, v := range values {
		if v.IsBound {
			return nil, ErrPlan
		}
		key = strconv.AppendInt(append(key, byte(v.Form), 0), v.Number, 10)
		key = append(append(key, 0), v.Text...)
		key = append(key, 0)
	}
	c.sets.Lock()
	n, known := c.sets.plans[string(key)]
	full := len(c.sets.plans) >= setsMax
	c.sets.Unlock()
	if known || full {
		if n == nil {
			return nil, ErrPlan
		}
		return n, nil
	}
	n, err := c.planSet(ctx)
	if err != nil {
		return nil, err
	}
	c.sets.Lock()
	defer c.sets.Unlock()
	if c.sets.plans == nil {
		c.sets.plans = make(map[string]*plan.Set)
	}
	if c.sets.plans[string(key)] = n; n == nil {
		return nil, ErrPlan
	}
	return n, nil
}

// planSet has go-mysql-server plan the running SET. It returns nil if the plan sets something else than variables of the session,
// or to values that depend on something else than such variables, and ErrPlan if go-mysql-server reports an error.
func (c *Compiled) planSet(ctx *gms.Context) (*plan.Set, error) {
	engine, query := c.cache.gms, ctx.Query()
	ast, _, _, err := engine.Parser.ParseWithOptions(ctx, query, ';', false, gms.LoadSqlMode(ctx).ParserOptions())
	if err != nil {
		return nil, ErrPlan
	}
	tx := ctx.GetTransaction()
	root, err := engine.BoundQueryPlan(ctx, query, ast, nil)
	if ctx.GetTransaction() == nil {
		ctx.SetTransaction(tx) // planning the statement again reports the error
	}
	if err != nil {
		return nil, ErrPlan
	}
	n, ok := root.(*plan.Set)
	if !ok || slices.ContainsFunc(n.Exprs, func(e gms.Expression) bool { return !setsSession(ctx, e) }) {
		return nil, nil
	}
	return n, nil
}

// setsSession reports whether an expression sets a variable of the session to a value that only constants and such
// variables decide.
func setsSession(ctx *gms.Context, e gms.Expression) bool {
	f, ok := e.(*expression.SetField)
	if !ok {
		return false
	}
	switch v := f.LeftChild.(type) {
	case *expression.UserVar:
	case *expression.SystemVar:
		if !isOfSession(v) {
			return false
		}
	default:
		return false
	}
	isOther := func(_ *gms.Context, e gms.Expression) bool {
		switch e := e.(type) {
		case *expression.Literal:
			return false
		case *expression.SystemVar:
			return !isOfSession(e)
		case gms.FunctionExpression:
			return e.FunctionName() != "concat"
		}
		return !compat.IsAsText(e)
	}
	return !transform.InspectExpr(ctx, f.RightChild, isOther)
}

func isOfSession(v *expression.SystemVar) bool {
	scope, ok := v.Scope.(*gms.MysqlScope)
	return ok && scope.Type == gms.SystemVariableScope_Session
}
