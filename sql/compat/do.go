package compat

import (
	"context"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// A do is the statement DO, which evaluates expressions for their side effects and returns no
// rows. go-mysql-server's parser does not know it.
type do struct{ expressions []gms.Expression }

var (
	_ sqlparser.Injectable = do{}
	_ gms.ExecSourceRel    = do{}
	_ gms.Expressioner     = do{}
)

// doExpressions turns a DO into a SELECT, for the parser.
func doExpressions(s *Tokens) []Edit {
	s.Next()
	if !isDo(s) {
		return nil
	}
	return []Edit{{s.before, s.end, "SELECT"}}
}

func isDo(s *Tokens) bool { return strings.EqualFold(string(s.value), "do") }

// AsDo turns the SELECT that doExpressions has made of a DO into a DO again. It returns nil if the
// statement has more than expressions: a UNION, for example, or a FROM. It returns other statements unchanged.
func AsDo(query string, stmt sqlparser.Statement, o sqlparser.ParserOptions) sqlparser.Statement {
	first := NewTokens(query, o)
	if first.Next(); !isDo(first) {
		return stmt
	}
	s, ok := stmt.(*sqlparser.Select)
	if !ok {
		return nil
	}
	in := sqlparser.InjectedStatement{Statement: do{}, Auth: sqlparser.AuthInformation{AuthType: sqlparser.AuthType_IGNORE}}
	for _, e := range s.SelectExprs {
		if a, ok := e.(*sqlparser.AliasedExpr); ok {
			in.Children = append(in.Children, a.Expr)
		}
	}
	if sqlparser.String(s) != sqlparser.String(&sqlparser.Select{SelectExprs: s.SelectExprs}) || len(in.Children) < len(s.SelectExprs) {
		return nil // it has a FROM or other clauses, or *
	}
	return in
}

// WithResolvedChildren implements sqlparser.Injectable.
func (do) WithResolvedChildren(_ context.Context, children []any) (any, error) {
	d := do{}
	for _, c := range children {
		d.expressions = append(d.expressions, c.(gms.Expression))
	}
	return d, nil
}

// RowIter implements gms.ExecSourceRel.
func (d do) RowIter(ctx *gms.Context, row gms.Row) (gms.RowIter, error) {
	for _, e := range d.expressions {
		if _, err := e.Eval(ctx, row); err != nil {
			return nil, err
		}
	}
	return gms.RowsToRowIter(gms.NewRow(types.NewOkResult(0))), nil
}

// Expressions implements gms.Expressioner.
func (d do) Expressions() []gms.Expression { return d.expressions }

// WithExpressions implements gms.Expressioner.
func (d do) WithExpressions(_ *gms.Context, e ...gms.Expression) (gms.Node, error) {
	if len(e) != len(d.expressions) {
		return nil, gms.ErrInvalidChildrenNumber.New(d, len(e), len(d.expressions))
	}
	return do{e}, nil
}

// Resolved implements gms.Node.
func (d do) Resolved() bool { return expression.ExpressionsResolved(d.expressions...) }

// Schema implements gms.Node.
func (do) Schema(*gms.Context) gms.Schema { return types.OkResultSchema }

// Children implements gms.Node.
func (do) Children() []gms.Node { return nil }

// WithChildren implements gms.Node.
func (d do) WithChildren(_ *gms.Context, c ...gms.Node) (gms.Node, error) {
	if len(c) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(d, len(c), 0)
	}
	return d, nil
}

// IsReadOnly implements gms.Node.
func (do) IsReadOnly() bool { return true }

func (do) String() string { return "DO" }
