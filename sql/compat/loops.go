package compat

import "github.com/dolthub/vitess/go/vt/sqlparser"

// go-mysql-server runs the bodies of triggers, and checks for cancellation only where it
// runs a statement or a condition. A LOOP that begins with ITERATE runs neither, and would
// never end.

// endLoops puts a statement at the beginning of each LOOP in a trigger's body that might iterate for
// ever without a check for cancellation.
func endLoops(stmt sqlparser.Statement) {
	ddl, ok := stmt.(*sqlparser.DDL)
	if !ok || ddl.TriggerSpec == nil {
		return
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if l, ok := n.(*sqlparser.Loop); ok && isUnchecked(l) {
			l.Statements = append(sqlparser.Statements{emptyIf()}, l.Statements...)
		}
		return true, nil
	}, ddl.TriggerSpec.Body)
}

// isUnchecked reports whether a loop may iterate for ever without a check for cancellation: it is empty,
// or begins with ITERATE, or with a block or loop that may begin so.
func isUnchecked(l *sqlparser.Loop) bool {
	if len(l.Statements) == 0 {
		return true
	}
	switch l.Statements[0].(type) {
	case *sqlparser.Iterate, *sqlparser.BeginEndBlock, *sqlparser.Loop:
		return true
	}
	return false
}

// emptyIf returns IF 0 THEN END IF. It does nothing, but go-mysql-server checks for cancellation when
// it evaluates the condition.
func emptyIf() sqlparser.Statement {
	return &sqlparser.IfStatement{Conditions: []sqlparser.IfStatementCondition{{Expr: sqlparser.NewIntVal([]byte("0"))}}}
}
