package compat

import (
	"strconv"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// nameOrdinals turns SELECT DISTINCT a + 1 ... ORDER BY 1 into ORDER BY a + 1. go-mysql-server
// looks the numbered column up among the columns below DISTINCT.
func nameOrdinals(stmt sqlparser.Statement) {
	if stmt == nil {
		return
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		s, ok := n.(*sqlparser.Select)
		if !ok || !s.QueryOpts.Distinct {
			return true, nil
		}
		for _, o := range s.OrderBy {
			if e := numbered(s, o.Expr); e != nil {
				o.Expr = e
			}
		}
		return true, nil
	}, stmt)
}

// numbered returns the column that a number in ORDER BY refers to; nil if the text does not
// show it.
func numbered(s *sqlparser.Select, e sqlparser.Expr) sqlparser.Expr {
	v, ok := e.(*sqlparser.SQLVal)
	if !ok || v.Type != sqlparser.IntVal {
		return nil
	}
	at, err := strconv.Atoi(string(v.Val))
	if err != nil || at < 1 || at > len(s.SelectExprs) {
		return nil
	}
	for _, x := range s.SelectExprs[:at] {
		if _, isStar := x.(*sqlparser.StarExpr); isStar {
			return nil
		}
	}
	column, ok := s.SelectExprs[at-1].(*sqlparser.AliasedExpr)
	switch {
	case !ok:
		return nil
	case !column.As.IsEmpty():
		return &sqlparser.ColName{Name: column.As}
	}
	return column.Expr
}

// nameConstants gives expressions without columns, in the first SELECT of a UNION with ORDER BY, an
// alias: the name that they have in the result. Without it, go-mysql-server would sort the rows of
// SELECT 1 UNION SELECT 2 ORDER BY 1 by the constant, and not by the union's column.
func nameConstants(stmt sqlparser.Statement) {
	if stmt == nil {
		return
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		u, ok := n.(*sqlparser.SetOp)
		if !ok || len(u.OrderBy) == 0 {
			return true, nil
		}
		if s := firstSelect(u); s != nil {
			for _, e := range s.SelectExprs {
				a, ok := e.(*sqlparser.AliasedExpr)
				if ok && a.As.IsEmpty() && a.InputExpression != "" && !hasColumn(a.Expr) {
					a.As = sqlparser.NewColIdent(a.InputExpression)
				}
			}
		}
		return true, nil
	}, stmt)
}

// firstSelect returns the first SELECT of a UNION; nil if it begins with something else.
func firstSelect(s sqlparser.SelectStatement) *sqlparser.Select {
	for {
		switch first := s.(type) {
		case *sqlparser.Select:
			return first
		case *sqlparser.SetOp:
			s = first.Left
		case *sqlparser.ParenSelect:
			s = first.Select
		default:
			return nil
		}
	}
}

// hasColumn reports whether an expression names a column.
func hasColumn(e sqlparser.Expr) bool {
	found := false
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		_, isColumn := n.(*sqlparser.ColName)
		found = found || isColumn
		return !found, nil
	}, e)
	return found
}
