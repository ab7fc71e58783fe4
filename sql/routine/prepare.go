package routine

import "github.com/dolthub/vitess/go/vt/sqlparser"

// Prepare rewrites the body of a procedure so that go-mysql-server accepts it and this package
// can run it. go-mysql-server supports only SET of a single variable, and handlers only for NOT
// FOUND and SQLEXCEPTION. Prepare calls correct for each other statement in the body, to correct
// it as if a client had sent it.
func Prepare(s sqlparser.Statement, correct func(sqlparser.Statement)) sqlparser.Statement {
	switch s := s.(type) {
	case *sqlparser.BeginEndBlock:
		s.Statements = prepareAll(s.Statements, correct)
	case *sqlparser.Declare:
		prepareDeclare(s, correct)
	case *sqlparser.IfStatement:
		for i := range s.Conditions {
			s.Conditions[i].Statements = prepareAll(s.Conditions[i].Statements, correct)
		}
		s.Else = prepareAll(s.Else, correct)
	case *sqlparser.CaseStatement:
		for i := range s.Cases {
			s.Cases[i].Statements = prepareAll(s.Cases[i].Statements, correct)
		}
		s.Else = prepareAll(s.Else, correct)
	case *sqlparser.While:
		s.Statements = prepareAll(s.Statements, correct)
	case *sqlparser.Repeat:
		s.Statements = prepareAll(s.Statements, correct)
	case *sqlparser.Loop:
		s.Statements = prepareAll(s.Statements, correct)
	case *sqlparser.Set:
		if all := eachSet(s); len(all) > 1 {
			return &sqlparser.BeginEndBlock{Statements: all}
		}
	default:
		correct(s)
	}
	return s
}

func prepareAll(all sqlparser.Statements, correct func(sqlparser.Statement)) sqlparser.Statements {
	var prepared sqlparser.Statements
	for _, s := range all {
		if set, ok := s.(*sqlparser.Set); ok {
			prepared = append(prepared, eachSet(set)...)
			continue
		}
		prepared = append(prepared, Prepare(s, correct))
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

func prepareDeclare(d *sqlparser.Declare, correct func(sqlparser.Statement)) {
	switch {
	case d.Handler != nil:
		d.Handler.ConditionValues = append([]sqlparser.DeclareHandlerCondition{anyError}, d.Handler.ConditionValues...)
		d.Handler.Statement = Prepare(d.Handler.Statement, correct)
	case d.Condition != nil && d.Condition.MysqlErrorCode != nil:
		d.Condition.SqlStateValue = "HY000" // go-mysql-server requires one; nothing reads it
	case d.Cursor != nil:
		correct(d.Cursor.SelectStmt)
	}
}

// handled returns the conditions that a handler has been declared for, without anyError.
func handled(h *sqlparser.DeclareHandler) []sqlparser.DeclareHandlerCondition {
	return h.ConditionValues[1:]
}
