package plan

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// Literals says what becomes of the literals of a statement: its parameters may have any value, and
// the others, whose values are part of the statement's meaning or of its result's names, are fixed.
type Literals struct {
	isParameter []bool
	// isTyped has the parameters that are part of expressions: a plan is for one class of their values.
	isTyped []bool
	// Tables are the statement's tables.
	Tables []TableName
	// Inserts is set for INSERT and REPLACE, and IsSource if their rows are those of a SELECT.
	Inserts, IsSource bool
	// Auths are what the statement needs privileges for.
	Auths []sqlparser.AuthInformation
	// hasDerived is set if tables are those of a query within the statement, hasSubquery if there is one in an
	// expression, locks if rows are locked.
	hasDerived, hasSubquery, locks bool
	// with are the names that WITH gives to SELECTs.
	with map[string]bool
	// named has the literals in columns without an alias: the column's name is then the text of its
	// expression.
	named map[int]bool
	// names are the columns whose names have parameters in them, in their order.
	names []columnName
	// isOutermost is set if the next SELECT gives the result, and keeps while all literals are fixed.
	isOutermost, keeps bool
}

// A TableName names a table; DB is empty if it is of the current database.
type TableName struct{ DB, Table string }

// LiteralsOf returns what becomes of n literals, for which the statement has parameters; false if the
// statement is not one that this package plans.
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
		return l, len(l.Tables) <= 1 && !l.hasDerived && !l.hasSubquery || !l.locks
	case *sqlparser.Update:
		if s.Ignore != "" || s.With != nil || len(s.Comments) > 0 || len(s.Returning) > 0 {
			return nil, false
		}
		for _, a := range s.Exprs {
			l.assigned(a.Expr)
		}
		return l, l.changed(s.TableExprs, s.Where, s.OrderBy, s.Limit)
	case *sqlparser.Delete:
		if s.With != nil || len(s.Partitions) > 0 || len(s.Comments) > 0 || len(s.Returning) > 0 {
			return nil, false
		}
		return l, l.changed(s.TableExprs, s.Where, s.OrderBy, s.Limit)
	case *sqlparser.Insert:
		return l, l.insert(s)
	}
	return nil, false
}

// changed takes the literals and the tables of an UPDATE or DELETE; false as from. Rows of several tables have no
// order and no limit, and those of a single table have a condition.
func (l *Literals) changed(from sqlparser.TableExprs, where *sqlparser.Where, by sqlparser.OrderBy, limit *sqlparser.Limit) bool {
	if !l.clauses(from, where, limit) || l.hasDerived {
		return false
	}
	if len(l.Tables) <= 1 {
		return where != nil
	}
	return len(by) == 0 && limit == nil
}

// insert takes the literals of an INSERT, and the privileges for its table; false if the INSERT has
// clauses that this package does not know.
func (l *Literals) insert(s *sqlparser.Insert) bool {
	if s.With != nil || len(s.Comments) > 0 || len(s.Partitions) > 0 || len(s.Returning) > 0 {
		return false
	}
	auth := s.Auth
	auth.Extra = nil // what rewrites the INSERT when it is planned (see sql/change)
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

// values takes the literals of VALUES and of ON DUPLICATE KEY UPDATE.
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

// source takes the literals and tables of the SELECT whose rows are inserted; false as rowsOf.
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

// rowsOf takes the literals and tables of a SELECT, or of a UNION; false if it has clauses that this
// package does not know.
func (l *Literals) rowsOf(stmt sqlparser.SelectStatement) bool {
	switch s := stmt.(type) {
	case *sqlparser.ParenSelect:
		return l.rowsOf(s.Select)
	case *sqlparser.SetOp:
		if s.Into != nil || s.With != nil || s.Lock != nil && s.Lock.Type != "" {
			return false
		}
		l.hasDerived = true
		l.limit(s.Limit)
		return l.rowsOf(s.Left) && l.rowsOf(s.Right)
	case *sqlparser.Select:
		o := s.QueryOpts
		if s.Into != nil || len(s.Window) > 0 || len(s.Comments) > 0 ||
			o.All || len(o.DistinctOn) > 0 || o.StraightJoinHint || o.SQLCalcFoundRows || o.SQLCache || o.SQLNoCache {
			return false
		}
		l.locks = l.locks || s.Lock != nil && s.Lock.Type != ""
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

// listed takes the literals in the list of a SELECT: in columns that have an alias or, if all is set, in others, too,
// whose names nobody sees. go-mysql-server refuses parameters beside aggregates in an expression, and those in
// subqueries are taken with these.
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

// hasAlias reports whether a column has an alias that compat has not given it.
func hasAlias(a *sqlparser.AliasedExpr) bool {
	return !a.As.IsEmpty() && a.As.String() != a.InputExpression
}

// withs takes the literals and tables of the SELECTs of a WITH, and their names.
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

// names returns the literals in columns without an alias, or with one that compat gave them.
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

// from takes the tables of a statement, and the privileges for them; false if there are clauses that
// this package does not know.
func (l *Literals) from(tables sqlparser.TableExprs) bool {
	for _, t := range tables {
		if !l.table(t) {
			return false
		}
	}
	return true
}

// table is from for one table, or a join.
func (l *Literals) table(e sqlparser.TableExpr) bool {
	switch e := e.(type) {
	case *sqlparser.ParenTableExpr:
		return l.from(e.Exprs)
	case *sqlparser.JoinTableExpr:
		switch e.Join {
		case sqlparser.JoinStr, sqlparser.LeftJoinStr, sqlparser.RightJoinStr:
		default:
			return false
		}
		if len(e.Condition.Using) > 0 {
			return false
		}
		l.condition(e.Condition.On)
		return l.table(e.LeftExpr) && l.table(e.RightExpr)
	}
	t, ok := e.(*sqlparser.AliasedTableExpr)
	if !ok || t.Hints != nil || t.AsOf != nil || len(t.Partitions) > 0 || t.Lateral {
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
	if !ok || strings.EqualFold(name.Name.String(), "dual") {
		return ok && name.DbQualifier.IsEmpty()
	}
	l.Auths = append(l.Auths, t.Auth)
	l.Tables = append(l.Tables, TableName{name.DbQualifier.String(), name.Name.String()})
	return name.SchemaQualifier.IsEmpty()
}

// clauses takes the literals of WHERE and LIMIT, and the tables; false as from.
func (l *Literals) clauses(from sqlparser.TableExprs, where *sqlparser.Where, limit *sqlparser.Limit) bool {
	if where != nil {
		l.condition(where.Expr)
	}
	l.limit(limit)
	return l.from(from)
}

func (l *Literals) limit(limit *sqlparser.Limit) {
	if limit != nil {
		l.operand(limit.Rowcount)
		l.operand(limit.Offset)
	}
}

// condition takes the literals that are compared with columns.
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
		if e.Escape == nil && isColumn(e.Left) { // other patterns are kept as they were first
			l.operand(e.Right)
		}
	}
}

// compared takes the literals that are compared with an expression.
func (l *Literals) compared(e sqlparser.Expr, with ...sqlparser.Expr) {
	isExpression := func(e sqlparser.Expr) bool { return !isOperand(e) }
	if isColumn(e) && !slices.ContainsFunc(with, isExpression) {
		for _, v := range with {
			l.operand(v)
		}
		return
	}
	l.typed(e)
	for _, v := range with {
		l.typed(v)
	}
}

// rows takes the literals of (a, b) IN ((1, 2), (3, 4)), or of (a, b) > (1, 2), if they are all of it.
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

// operand makes a parameter of an expression that is a literal, or the negative of one.
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

// Key appends the fixed literals among the values of a statement to dst, and the classes of those that
// are parts of expressions.
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

// NamesDiffer reports whether a column's name is not the text of its expression with the fixed literals
// as Fixed writes them: the statement writes one otherwise, or has a parameter in its place.
func (l *Literals) NamesDiffer(values []Value) bool {
	for i := range values {
		if l.named[i] && (values[i].IsRespelled || values[i].IsBound && !l.isParameter[i]) {
			return true
		}
	}
	return false
}

// spelled returns a literal as statements write it that need no escapes.
func spelled(v Value) string {
	if v.IsNumber || v.IsNull || v.Form != Plain || strings.ContainsAny(v.Text, `'\`) {
		return sqlparser.String(v.Expr())
	}
	return "'" + v.Text + "'"
}

// Fixed returns a statement's text, in which question marks stand for the literals, with the fixed
// ones put back, and the numbers of the parameters, from 0, in the order of the remaining marks.
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

// replaced returns a text with others in place of its question marks.
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
