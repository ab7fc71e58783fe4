package compat

import "github.com/dolthub/vitess/go/vt/sqlparser"

// go-mysql-server runs the bodies of triggers, and checks for cancellation only where it
// runs a statement or a condition. A LOOP that begins with ITERATE runs neither, and would
// never end.

// endLoops puts a statement in front of each LOOP body of a trigger that might iterate without
// running any statement.
func endLoops(stmt sqlparser.Statement) {
	ddl, ok := stmt.(*sqlparser.DDL)
	if !ok || ddl.TriggerSpec == nil {
		return
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if l, ok := n.(*sqlparser.Loop); ok && mayTurnIdly(l) {
			l.Statements = append(sqlparser.Statements{idle()}, l.Statements...)
		}
		return true, nil
	}, ddl.TriggerSpec.Body)
}

// mayTurnIdly reports whether a loop may begin with something that is not a statement.
func mayTurnIdly(l *sqlparser.Loop) bool {
	if len(l.Statements) == 0 {
		return true
	}
	switch l.Statements[0].(type) {
	case *sqlparser.Iterate, *sqlparser.BeginEndBlock, *sqlparser.Loop:
		return true
	}
	return false
}

// idle returns IF 0 THEN END IF. It does nothing, but go-mysql-server evaluates its condition, and
// looks for cancellation then.
func idle() sqlparser.Statement {
	return &sqlparser.IfStatement{Conditions: []sqlparser.IfStatementCondition{{Expr: sqlparser.NewIntVal([]byte("0"))}}}
}
