package wire

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/sqltypes"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/fast"
)

// A statement is one parsed statement of a request.
type statement struct {
	text    string
	ast     sqlparser.Statement // nil if the parser refused it; the engine then reports why
	locking Locking
	// retry is set if the statement may run again after a conflict: it has no effect outside its
	// transaction.
	retry bool
	// aside is set if it runs beside the transaction that is open, and is run again after conflicts
	// in spite of it.
	aside bool
	// writes is set if it changes rows. The engine's own check for READ ONLY transactions panics
	// on these statements.
	writes bool
	// replaces is set for REPLACE, updates for UPDATE.
	replaces, updates bool
	// prepared is set for a prepared statement.
	prepared *fast.Prepared
	// command is the counter of the protocol command, which is counted besides the statement; 0 for
	// a query.
	command counted
}

func newStatement(text string, ast sqlparser.Statement) statement {
	st := statement{text: text, ast: ast, locking: lockingOf(text, ast), retry: retryable(text, ast), writes: changesRows(ast)}
	st.setKind(ast)
	return st
}

// setKind sets replaces, updates and aside. ast is the statement itself; for an EXECUTE, it is the
// prepared statement.
func (st *statement) setKind(ast sqlparser.Statement) {
	switch n := ast.(type) {
	case *sqlparser.Insert:
		st.replaces = n.Action == sqlparser.ReplaceStr
	case *sqlparser.Update:
		st.updates = true
	}
	st.aside = st.retry && showsDefinitions(ast)
}

// showsDefinitions reports whether a statement reads definitions and nothing else: SHOW and
// DESCRIBE, and SELECTs of tables that are all named with information_schema.
func showsDefinitions(ast sqlparser.Statement) bool {
	switch n := ast.(type) {
	case *sqlparser.Show:
		return !asksTables(n)
	case *sqlparser.Select:
		// The first table decides for almost all statements, at less cost than walking the tree.
		return len(n.From) > 0 && isInformation(firstTable(n.From[0])) && areInformation(n)
	}
	return false
}

// asksTables reports whether a SHOW has a subquery in its WHERE, which may read any table.
func asksTables(n *sqlparser.Show) bool {
	conditions := []sqlparser.Expr{n.ShowCollationFilterOpt, n.ShowIndexFilterOpt}
	if n.Filter != nil {
		conditions = append(conditions, n.Filter.Filter)
	}
	if n.ShowTablesOpt != nil && n.ShowTablesOpt.Filter != nil {
		conditions = append(conditions, n.ShowTablesOpt.Filter.Filter)
	}
	asks := false
	for _, c := range conditions {
		if c == nil {
			continue
		}
		// The visitor never fails, so neither does Walk.
		_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
			_, isQuery := n.(*sqlparser.Subquery)
			asks = asks || isQuery
			return !asks, nil
		}, c)
	}
	return asks
}

// firstTable returns the first table of a FROM clause; an empty name if that is no table.
func firstTable(from sqlparser.TableExpr) sqlparser.TableName {
	switch n := from.(type) {
	case *sqlparser.AliasedTableExpr:
		name, _ := n.Expr.(sqlparser.TableName)
		return name
	case *sqlparser.JoinTableExpr:
		return firstTable(n.LeftExpr)
	}
	return sqlparser.TableName{}
}

func isInformation(t sqlparser.TableName) bool {
	return strings.EqualFold(t.DbQualifier.String(), gms.InformationSchemaDatabaseName)
}

// areInformation reports whether all tables of a SELECT are named with information_schema.
func areInformation(sel *sqlparser.Select) bool {
	all := true
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.ColName, *sqlparser.StarExpr: // t.c and t.* name an alias
			return false, nil
		case sqlparser.TableName:
			all = all && (n.IsEmpty() || isInformation(n))
		}
		return all, nil
	}, sel)
	return all
}

func changesRows(ast sqlparser.Statement) bool {
	switch ast.(type) {
	case *sqlparser.Insert, *sqlparser.Update, *sqlparser.Delete, *sqlparser.Load:
		return true
	}
	return false
}

// shownOf returns what the client sees of a statement with this result.
func shownOf(st statement, res *sqltypes.Result) Shown {
	if st.writes && (res == nil || len(res.Fields) == 0) { // with RETURNING it has fields
		return ShowsSuccess
	}
	return ShowsResult
}

// insertID returns the session's last insert id.
func (s *connState) insertID() int64 {
	if s.farm == nil {
		return 0
	}
	return s.farm.GetLastQueryInfo().LastInsertId.Load()
}

// tellInserted completes the result of a statement with what the engine leaves out: the rows that a
// REPLACE has deleted, and the id that was generated, or set by LAST_INSERT_ID(n). The engine returns
// the session's last id, which may come from an earlier statement, or a trigger; before is the last id
// before this statement. res is nil if the statement has failed.
func (s *connState) tellInserted(st statement, before int64, res *sqltypes.Result) {
	if s.farm == nil {
		return
	}
	deleted, id := s.farm.Replaced()
	isSet, last := s.farm.Changing().ToldID(), s.insertID() // isSet: by LAST_INSERT_ID(n)
	if res == nil {
		return
	}
	generated, told, isInsert := s.farm.Inserted()
	switch {
	case isInsert && isSet && generated == 0, st.updates && isSet:
		res.InsertID = uint64(last)
	case isInsert:
		res.InsertID = uint64(told)
	case st.replaces && !isSet && last == before: // the id is an earlier statement's
		res.InsertID = 0
	}
	if isInsert && !isSet && generated == 0 {
		s.farm.GetLastQueryInfo().LastInsertId.Store(before) // triggers may have changed it
	}
	if !st.replaces {
		return
	}
	res.RowsAffected += deleted
	s.farm.GetLastQueryInfo().RowCount.Add(int64(deleted))
	if id != 0 {
		res.InsertID = id
	}
}

// lockingOf returns the strongest locking clause in the statement. Walking the tree costs more than
// all else in this package, so lockingOf first looks for the words in the text.
func lockingOf(text string, ast sqlparser.Statement) Locking {
	if ast == nil || (!containsFold(text, "update") && !containsFold(text, "share")) {
		return LockNone
	}
	return strongestLocking(ast)
}

// strongestLocking visits every SELECT in the tree: the clause may be at the end of a union or
// inside a derived table.
func strongestLocking(ast sqlparser.Statement) Locking {
	strongest := LockNone
	note := func(l *sqlparser.Lock) {
		if l != nil {
			strongest = max(strongest, clauseLocking(l.Type))
		}
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		switch n := node.(type) {
		case *sqlparser.Select:
			note(n.Lock)
		case *sqlparser.SetOp:
			note(n.Lock)
		}
		return true, nil
	}, ast)
	return strongest
}

func clauseLocking(clause string) Locking {
	switch {
	case containsFold(clause, "update"):
		return LockUpdate
	case containsFold(clause, "share"):
		return LockShare
	}
	return LockNone
}

// retryable reports whether a statement is known to be safe to run again. User variables,
// named locks and a file already sent by the client do not roll back, and a procedure may do
// any of these.
func retryable(text string, ast sqlparser.Statement) bool {
	switch n := ast.(type) {
	case *sqlparser.Select:
		if n.Into != nil {
			return false
		}
	case *sqlparser.SetOp, *sqlparser.ParenSelect,
		*sqlparser.Insert, *sqlparser.Update, *sqlparser.Delete,
		*sqlparser.DDL, *sqlparser.AlterTable, *sqlparser.DBDDL,
		*sqlparser.CreateUser, *sqlparser.DropUser, *sqlparser.CreateRole, *sqlparser.DropRole, *sqlparser.GrantPrivilege,
		*sqlparser.GrantRole, *sqlparser.RevokePrivilege, *sqlparser.RevokeRole, *sqlparser.RenameUser,
		*sqlparser.Show, *sqlparser.Explain, *sqlparser.Use, *sqlparser.OtherRead:
	default:
		return false
	}
	return !strings.Contains(text, ":=") && !containsFold(text, "_lock")
}

// containsFold reports whether s contains the lower-case ASCII word, in any
// case of letters. It does not allocate.
func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0]|0x20 && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
