package sql

import "github.com/dolthub/vitess/go/vt/sqlparser"

// prepareBody rewrites the body of a procedure so that go-mysql-server accepts it and this
// package can run it. go-mysql-server knows no SET of several variables, and of handlers'
// conditions only NOT FOUND and SQLEXCEPTION.
func prepareBody(query string, s sqlparser.Statement) sqlparser.Statement {
	switch s := s.(type) {
	case *sqlparser.BeginEndBlock:
		s.Statements = prepareBodies(query, s.Statements)
	case *sqlparser.Declare:
		prepareDeclare(query, s)
	case *sqlparser.IfStatement:
		for i := range s.Conditions {
			s.Conditions[i].Statements = prepareBodies(query, s.Conditions[i].Statements)
		}
		s.Else = prepareBodies(query, s.Else)
	case *sqlparser.CaseStatement:
		for i := range s.Cases {
			s.Cases[i].Statements = prepareBodies(query, s.Cases[i].Statements)
		}
		s.Else = prepareBodies(query, s.Else)
	case *sqlparser.While:
		s.Statements = prepareBodies(query, s.Statements)
	case *sqlparser.Repeat:
		s.Statements = prepareBodies(query, s.Statements)
	case *sqlparser.Loop:
		s.Statements = prepareBodies(query, s.Statements)
	case *sqlparser.Set:
		if all := eachSet(s); len(all) > 1 {
			return &sqlparser.BeginEndBlock{Statements: all}
		}
	default:
		useOurs(query, s)
	}
	return s
}

func prepareBodies(query string, all sqlparser.Statements) sqlparser.Statements {
	var prepared sqlparser.Statements
	for _, s := range all {
		if set, ok := s.(*sqlparser.Set); ok {
			prepared = append(prepared, eachSet(set)...)
			continue
		}
		prepared = append(prepared, prepareBody(query, s))
	}
	return prepared
}

// eachSet splits a SET into one SET for each variable.
func eachSet(s *sqlparser.Set) (all sqlparser.Statements) {
	for _, e := range s.Exprs {
		all = append(all, &sqlparser.Set{Exprs: sqlparser.SetVarExprs{e}})
	}
	return all
}

// anyError is put before a handler's own conditions: go-mysql-server looks at the first
// only.
var anyError = sqlparser.DeclareHandlerCondition{ValueType: sqlparser.DeclareHandlerCondition_SqlException}

func prepareDeclare(query string, d *sqlparser.Declare) {
	switch {
	case d.Handler != nil:
		d.Handler.ConditionValues = append([]sqlparser.DeclareHandlerCondition{anyError}, d.Handler.ConditionValues...)
		d.Handler.Statement = prepareBody(query, d.Handler.Statement)
	case d.Condition != nil && d.Condition.MysqlErrorCode != nil:
		d.Condition.SqlStateValue = "HY000" // go-mysql-server requires one; nothing reads it
	case d.Cursor != nil:
		useOurs(query, d.Cursor.SelectStmt)
	}
}

// handled returns the conditions that a handler has been declared for, without anyError.
func handled(h *sqlparser.DeclareHandler) []sqlparser.DeclareHandlerCondition {
	return h.ConditionValues[1:]
}
