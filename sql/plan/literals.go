package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Literals divides the literals of a statement into parameters and fixed literals. A parameter may
// have any value. A fixed literal is part of the statement's meaning, or of the names in its
// result.
type Literals struct {
	isParameter []bool
	// isTyped marks the parameters that are parts of expressions: a plan is valid only for one class of their values.
	isTyped []bool
	// Tables are the statement's tables.
	Tables []TableName
	// Inserts is set for INSERT and REPLACE; IsSource is set if their rows come from a SELECT.
	Inserts, IsSource bool
	// Auths are the privileges that the statement needs.
	Auths []sqlparser.AuthInformation
	// hasDerived is set if the statement has a derived table, a WITH or a UNION, hasSubquery if an expression
	// has a subquery, and locks if rows are locked.
	hasDerived, hasSubquery, locks bool
	// with has the names that WITH defines.
	with map[string]bool
	// named marks the literals in columns without an alias: the text of the expression is then the column's name.
	named map[int]bool
	// names are the columns whose names contain parameters, in order.
	names []columnName
	// isOutermost is set while the next SELECT is the one that gives the result. keeps is set while all literals are fixed.
	isOutermost, keeps bool
}

// A TableName names a table; DB is empty for the current database.
type TableName struct{ DB, Table string }

// LiteralsOf divides the n literals of a statement, in which parameters have replaced them. It
// returns false if this package does not plan the statement.
func LiteralsOf(stmt sqlparser.Statement, n int) (*Literals, bool) {
	l := &Literals{isParameter: make([]bool, n), isTyped: make([]bool, n)}
	switch s := stmt.(type) {
	case *sqlparser.Select, *sqlparser.SetOp, *sqlparser.ParenSelect:
		l.named = make(map[int]bool)
		_, l.isOutermost = s.(*sqlparser.Select)
		if !l.rowsOf(s.(sqlparser.SelectStatement)) {
			return nil, false
		}
		l.names = slices.DeleteFunc(l.names, func(n columnName) bool { return !l.hasParameter(n) })
		isOfOneTable := len(l.Tables) <= 1 && !l.hasDerived && !l.hasSubquery
		return l, isOfOneTable || !l.locks
	case *sqlparser.Update:
		if s.Ignore != "" || s.With != nil || len(s.Returning) > 0 {
			return nil, false
		}
		for _, a := range s.Exprs {
			l.assigned(a.Expr)
		}
		return l, l.changed(s.TableExprs, s.Where, s.OrderBy, s.Limit)
	case *sqlparser.Delete:
		if s.With != nil || len(s.Partitions) > 0 || len(s.Returning) > 0 {
			return nil, false
		}
		return l, l.changed(s.TableExprs, s.Where, s.OrderBy, s.Limit)
	case *sqlparser.Insert:
		return l, l.insert(s)
	}
	return nil, false
}

// changed collects the literals and the tables of an UPDATE or DELETE. It returns false where fromClause
// does, and for a derived table. It also does so if a change of several tables has an order or a limit, or a change of
// a single table has no condition.
func (l *Literals) changed(tables sqlparser.TableExprs, where *sqlparser.Where, order sqlparser.OrderBy, limit *sqlparser.Limit) bool {
	if !l.clauses(tables, where, limit) || l.hasDerived {
		return false
	}
	if len(l.Tables) <= 1 {
		return where != nil
	}
	return len(order) == 0 && limit == nil
}

// insert collects the literals of an INSERT, and the privileges for its table; false if the INSERT
// has clauses that this package does not know.
func (l *Literals) insert(s *sqlparser.Insert) bool {
	if s.With != nil || len(s.Partitions) > 0 || len(s.Returning) > 0 {
		return false
	}
	auth := s.Auth
	auth.Extra = nil // Extra rewrites the INSERT when it is planned (see sql/change)
	l.Auths = append(l.Auths, auth)
	l.Tables, l.Inserts = append(l.Tables, TableName{s.Table.DbQualifier.String(), s.Table.Name.String()}), true
	switch rows := s.Rows.(type) {
	case *sqlparser.AliasedValues:
		if !rows.As.IsEmpty() {
			return false
		}
		l.values(rows.Values, s.OnDup)
	case sqlparser.SelectStatement:
		if len(s.OnDup) > 0 || !l.source(rows) {
			return false
		}
	default:
		return false
	}
	return s.Table.SchemaQualifier.IsEmpty()
}

// values collects the literals of VALUES and of ON DUPLICATE KEY UPDATE.
func (l *Literals) values(rows sqlparser.Values, onDuplicate sqlparser.OnDup) {
	for _, r := range rows {
		for _, v := range r {
			l.operand(v)
		}
	}
	for _, a := range onDuplicate {
		l.operand(a.Expr)
	}
}

// source collects the literals and tables of a SELECT whose rows are inserted; false where rowsOf returns false.
func (l *Literals) source(rows sqlparser.SelectStatement) bool {
	l.named = make(map[int]bool)
	if !l.rowsOf(rows) || l.locks {
		return false
	}
	if s, ok := rows.(*sqlparser.Select); ok {
		l.listed(s.SelectExprs, true)
	}
	l.IsSource, l.named = true, nil
	return true
}

// rowsOf collects the literals and tables of a SELECT or UNION; false if it has clauses that this
// package does not know.
func (l *Literals) rowsOf(stmt sqlparser.SelectStatement) bool {
	switch s := stmt.(type) {
	case *sqlparser.ParenSelect:
		return l.rowsOf(s.Select)
	case *sqlparser.SetOp:
		if s.Into != nil || s.With != nil || (s.Lock != nil && s.Lock.Type != "") {
			return false
		}
		l.hasDerived = true
		l.limit(s.Limit)
		return l.rowsOf(s.Left) && l.rowsOf(s.Right)
	case *sqlparser.Select:
		o := s.QueryOpts
		if s.Into != nil || len(s.Window) > 0 ||
			len(o.DistinctOn) > 0 || o.SQLCalcFoundRows {
			return false
		}
		l.locks = l.locks || (s.Lock != nil && s.Lock.Type != "")
		maps.Copy(l.named, names(s.SelectExprs))
		if !l.withs(s.With) {
			return false
		}
		isOutermost := l.isOutermost
		l.isOutermost = false
		l.columns(s.SelectExprs, isOutermost)
		if l.Inserts {
			l.listed(s.SelectExprs, false)
		}
		return l.clauses(s.From, s.Where, s.Limit)
	}
	return false
}

// listed collects the literals in the columns of a SELECT: in columns with an alias or, if all is
// set, in all columns, because nobody sees their names. It skips expressions with aggregates, where
// go-mysql-server refuses parameters, and with subqueries.
func (l *Literals) listed(list sqlparser.SelectExprs, all bool) {
	for _, e := range list {
		if a, ok := e.(*sqlparser.AliasedExpr); ok && (all || hasAlias(a)) && !hasAggregateOrSubquery(a.Expr) {
			l.typed(a.Expr)
		}
	}
}

func hasAggregateOrSubquery(e sqlparser.Expr) (found bool) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Subquery:
			found = true
		case *sqlparser.FuncExpr:
			found = found || n.IsAggregate()
		}
		return !found, nil
	}, e)
	return found
}

// hasAlias reports whether the statement gives a column an alias; one that compat has added does not count.
func hasAlias(a *sqlparser.AliasedExpr) bool {
	return !a.As.IsEmpty() && a.As.String() != a.InputExpression
}

// withs collects the literals, tables and names of the SELECTs of a WITH.
func (l *Literals) withs(w *sqlparser.With) bool {
	if w == nil {
		return true
	}
	if w.Recursive {
		return false
	}
	for _, c := range w.Ctes {
		q, ok := c.Expr.(*sqlparser.Subquery)
		if !ok || !l.rowsOf(q.Select) {
			return false
		}
		if l.with == nil {
			l.with = make(map[string]bool)
		}
		l.with[strings.ToLower(c.As.String())] = true
		l.hasDerived = true
	}
	return true
}

// names returns the literals in columns for which hasAlias is false.
func names(list sqlparser.SelectExprs) map[int]bool {
	named := make(map[int]bool)
	for _, e := range list {
		a, ok := e.(*sqlparser.AliasedExpr)
		if !ok || hasAlias(a) {
			continue
		}
		for _, at := range numbersIn(a) {
			named[at] = true
		}
	}
	return named
}

// numbersIn returns the numbers of the literals in an expression.
func numbersIn(n sqlparser.SQLNode) (all []int) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if v, ok := n.(*sqlparser.SQLVal); ok {
			if at, ok := numberOf(v); ok {
				all = append(all, at)
			}
		}
		return true, nil
	}, n)
	return all
}

// fromClause collects the tables of a statement, and the privileges for them; false if there are clauses
// that this package does not know.
func (l *Literals) fromClause(tables sqlparser.TableExprs) bool {
	for _, t := range tables {
		if !l.table(t) {
			return false
		}
	}
	return true
}

// table does the same as fromClause for one table, or a join.
func (l *Literals) table(e sqlparser.TableExpr) bool {
	switch e := e.(type) {
	case *sqlparser.ParenTableExpr:
		return l.fromClause(e.Exprs)
	case *sqlparser.JoinTableExpr:
		switch e.Join {
		case sqlparser.JoinStr, sqlparser.StraightJoinStr, sqlparser.LeftJoinStr, sqlparser.RightJoinStr,
			sqlparser.NaturalJoinStr, sqlparser.NaturalLeftJoinStr, sqlparser.NaturalRightJoinStr:
		default:
			return false
		}
		l.condition(e.Condition.On)
		return l.table(e.LeftExpr) && l.table(e.RightExpr)
	}
	t, ok := e.(*sqlparser.AliasedTableExpr)
	if !ok || t.AsOf != nil || len(t.Partitions) > 0 || t.Lateral {
		return false
	}
	if q, ok := t.Expr.(*sqlparser.Subquery); ok {
		l.hasDerived = true
		return l.rowsOf(q.Select)
	}
	name, ok := t.Expr.(sqlparser.TableName)
	if ok && name.DbQualifier.IsEmpty() && l.with[strings.ToLower(name.Name.String())] {
		return true
	}
	if !ok || strings.EqualFold(name.Name.String(), "dual") { // DUAL is no table
		return ok && name.DbQualifier.IsEmpty()
	}
	l.Auths = append(l.Auths, t.Auth)
	l.Tables = append(l.Tables, TableName{name.DbQualifier.String(), name.Name.String()})
	return name.SchemaQualifier.IsEmpty()
}

// clauses collects the tables, and the literals of WHERE and LIMIT; false where fromClause returns
// false.
func (l *Literals) clauses(tables sqlparser.TableExprs, where *sqlparser.Where, limit *sqlparser.Limit) bool {
	if where != nil {
		l.condition(where.Expr)
	}
	l.limit(limit)
	return l.fromClause(tables)
}

func (l *Literals) limit(limit *sqlparser.Limit) {
	if limit != nil {
		l.operand(limit.Rowcount)
		l.operand(limit.Offset)
	}
}

// condition collects the literals that are compared with columns, and the typed literals of other operands.
func (l *Literals) condition(e sqlparser.Expr) {
	switch e := e.(type) {
	case *sqlparser.AndExpr:
		l.condition(e.Left)
		l.condition(e.Right)
	case *sqlparser.OrExpr:
		l.condition(e.Left)
		l.condition(e.Right)
	case *sqlparser.NotExpr:
		l.condition(e.Expr)
	case *sqlparser.ParenExpr:
		l.condition(e.Expr)
	case *sqlparser.RangeCond:
		l.compared(e.Left, e.From, e.To)
	case *sqlparser.ComparisonExpr:
		if q, ok := e.Right.(*sqlparser.Subquery); ok && (e.Operator == sqlparser.InStr || e.Operator == sqlparser.NotInStr) {
			l.typed(e.Left)
			l.subquery(q)
			return
		}
		l.comparison(e)
	case *sqlparser.ExistsExpr:
		l.subquery(e.Subquery)
	case *sqlparser.IsExpr:
		l.typed(e.Expr)
	case nil:
	default:
		l.subqueries(e)
	}
}

// comparison is condition for a comparison, IN or LIKE.
func (l *Literals) comparison(e *sqlparser.ComparisonExpr) {
	columns, isRow := e.Left.(sqlparser.ValTuple)
	switch e.Operator {
	case sqlparser.EqualStr, sqlparser.NotEqualStr, sqlparser.LessThanStr, sqlparser.LessEqualStr, sqlparser.GreaterThanStr, sqlparser.GreaterEqualStr:
		switch {
		case isRow && e.Operator != sqlparser.EqualStr && e.Operator != sqlparser.NotEqualStr: // see compat.ComparedRows
			l.rows(columns, sqlparser.ValTuple{e.Right})
		case isColumn(e.Right):
			l.compared(e.Right, e.Left)
		default:
			l.compared(e.Left, e.Right)
		}
	case sqlparser.InStr, sqlparser.NotInStr:
		values, ok := e.Right.(sqlparser.ValTuple)
		if ok && isRow {
			l.rows(columns, values)
			return
		}
		if ok {
			l.compared(e.Left, values...)
		}
	case sqlparser.LikeStr, sqlparser.NotLikeStr:
		if e.Escape == nil && isColumn(e.Left) { // go-mysql-server keeps the first value of any other pattern
			l.operand(e.Right)
		}
	}
}

// compared collects the literals of an expression and of those that it is compared with. If a column is compared with
// literals alone, these may have any value; otherwise they are typed.
func (l *Literals) compared(e sqlparser.Expr, others ...sqlparser.Expr) {
	isExpression := func(e sqlparser.Expr) bool { return !isOperand(e) }
	if isColumn(e) && !slices.ContainsFunc(others, isExpression) {
		for _, v := range others {
			l.operand(v)
		}
		return
	}
	l.typed(e)
	for _, v := range others {
		l.typed(v)
	}
}

// rows collects the literals of (a, b) IN ((1, 2), (3, 4)) or (a, b) > (1, 2), if all elements are literals.
func (l *Literals) rows(columns, rows sqlparser.ValTuple) {
	isOther := func(e sqlparser.Expr) bool { return !isOperand(e) }
	for _, c := range columns {
		if !isColumn(c) {
			return
		}
	}
	for _, r := range rows {
		values, ok := r.(sqlparser.ValTuple)
		if !ok || len(values) != len(columns) || slices.ContainsFunc(values, isOther) {
			return
		}
	}
	for _, r := range rows {
		for _, v := range r.(sqlparser.ValTuple) {
			l.operand(v)
		}
	}
}

func isColumn(e sqlparser.Expr) bool {
	_, ok := e.(*sqlparser.ColName)
	return ok
}

func isOperand(e sqlparser.Expr) bool {
	_, ok := numberOf(e)
	return ok
}

// operand makes a literal, or the negative of one, a parameter.
func (l *Literals) operand(e sqlparser.Expr) {
	if n, ok := numberOf(e); ok && n < len(l.isParameter) && !l.keeps {
		l.isParameter[n] = true
	}
}

// numberOf returns the number, from 0, of the parameter that stands for a literal or its negative.
func numberOf(e sqlparser.Expr) (int, bool) {
	if u, ok := e.(*sqlparser.UnaryExpr); ok && u.Operator == sqlparser.UMinusStr {
		e = u.Expr
	}
	v, ok := e.(*sqlparser.SQLVal)
	if !ok || v.Type != sqlparser.ValArg {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimPrefix(string(v.Val), ":v"))
	return n - 1, err == nil && n > 0
}

// Key appends the fixed literals of a statement to dst, and the classes of the parameters that are
// parts of expressions.
func (l *Literals) Key(dst []byte, values []Value) []byte {
	for i, v := range values {
		switch {
		case l.isTyped[i]:
			dst = v.class(dst)
		case l.isParameter[i]:
		case v.IsNull:
			dst = append(dst, 'n')
		case v.IsNumber:
			dst = append(strconv.AppendInt(append(dst, 'i'), v.Number, 10), 0)
		default:
			dst = append(strconv.AppendInt(append(dst, "sdfby"[v.Form]), int64(len(v.Text)), 10), ':')
			dst = append(dst, v.Text...)
		}
	}
	return dst
}

// NamesDiffer reports whether a column's name differs from the text of its expression in Fixed: the
// statement spells a fixed literal differently, or has a bound parameter in its place.
func (l *Literals) NamesDiffer(values []Value) bool {
	for i := range values {
		if l.named[i] && (values[i].IsRespelled || (values[i].IsBound && !l.isParameter[i])) {
			return true
		}
	}
	return false
}

// spelled returns the usual spelling of a literal. IsRespelled marks the literals that statements spell differently.
func spelled(v Value) string {
	if v.IsNumber || v.IsNull || v.Form != Plain || strings.ContainsAny(v.Text, `'\`) {
		return sqlparser.String(v.Expr())
	}
	return "'" + v.Text + "'"
}

// Fixed returns the statement's text with the fixed literals. Question marks stand for the
// parameters. It also returns the numbers of the parameters, from 0, in the order of their question
// marks.
func (l *Literals) Fixed(text string, values []Value) (string, []int) {
	var parameters []int
	n := -1
	text = replaced(text, func() string {
		if n++; l.isParameter[n] {
			parameters = append(parameters, n)
			return "?"
		}
		return spelled(values[n])
	})
	return text, parameters
}

// replaced replaces each question mark of a text by a result of next, except those in names in backquotes.
func replaced(text string, next func() string) string {
	var b strings.Builder
	quoted := false
	for i := range len(text) {
		switch {
		case text[i] == '`':
			quoted = !quoted
		case text[i] == '?' && !quoted:
			b.WriteString(next())
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
