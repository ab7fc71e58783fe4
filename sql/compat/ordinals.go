package compat

import (
	"strconv"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// nameOrdinals turns SELECT DISTINCT a + 1 ... ORDER BY 1 into ORDER BY a + 1:
// go-mysql-server looks for the numbered column among those below DISTINCT.
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
