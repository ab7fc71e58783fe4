package sql

import "github.com/dolthub/vitess/go/vt/sqlparser"

// prepareBody makes of the body of a procedure what go-mysql-server takes for one, and what
// this package can run: it knows no SET of several variables, and of the conditions of
// handlers NOT FOUND and SQLEXCEPTION only.
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

// eachSet makes a SET of each variable.
func eachSet(s *sqlparser.Set) (all sqlparser.Statements) {
	for _, e := range s.Exprs {
		all = append(all, &sqlparser.Set{Exprs: sqlparser.SetVarExprs{e}})
	}
	return all
}

// anyError is what a handler's conditions begin with: go-mysql-server looks at the first.
var anyError = sqlparser.DeclareHandlerCondition{ValueType: sqlparser.DeclareHandlerCondition_SqlException}

func prepareDeclare(query string, d *sqlparser.Declare) {
	switch {
	case d.Handler != nil:
		d.Handler.ConditionValues = append([]sqlparser.DeclareHandlerCondition{anyError}, d.Handler.ConditionValues...)
		d.Handler.Statement = prepareBody(query, d.Handler.Statement)
	case d.Condition != nil && d.Condition.MysqlErrorCode != nil:
		d.Condition.SqlStateValue = "HY000" // which go-mysql-server wants and nobody asks for
	case d.Cursor != nil:
		useOurs(query, d.Cursor.SelectStmt)
	}
}

// handled are the conditions that a handler is for.
func handled(h *sqlparser.DeclareHandler) []sqlparser.DeclareHandlerCondition {
	return h.ConditionValues[1:]
}
