package fast

import (
	"math"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// A shape describes a compilable statement by its text alone: one table, and conditions that give a
// key or a range of keys.
type shape struct {
	db, table string
	auth      sqlparser.AuthInformation
	where     []condition
	set       []assignment // assignments of an UPDATE
	// into has the columns that an INSERT names; nil for all. rows has their values.
	into []string
	rows [][]operand
	// onDuplicate is what an INSERT does with duplicates, and upserts are the assignments of ON DUPLICATE KEY UPDATE.
	onDuplicate onDuplicate
	upserts     []upsertion
	kind        shapeKind
	// join is the statement's form as a join of any number of tables, nil if it has none. If simple
	// is not set, the statement has only this form.
	join   *joinShape
	simple bool
	// first is the order and the limit of a SELECT; set only if it has both.
	first *firstRows
	// savepoint is the name in a statement about a savepoint.
	savepoint string
	// values counts the literals.
	values int
}

type shapeKind byte

const (
	shapeSelect shapeKind = iota
	shapeUpdate
	shapeDelete
	shapeInsert
	shapeSet
	shapeSavepoint
	shapeRollbackTo
	shapeRelease
	shapeBegin
	shapeBeginReadOnly
	shapeCommit
	shapeRollback
)

// A condition is column = lo, column BETWEEN lo AND hi or column IN list, where lo, hi and the
// elements of list are literals.
type condition struct {
	column  string
	lo, hi  operand
	isRange bool
	list    []operand
}

// An operand is a value of the statement, or its negative. It is NULL if at is nullAt.
type operand struct {
	at       int
	negative bool
}

// Values of operand.at in place of a parameter's number: NULL and, in an INSERT, the column's
// default and the time of the statement.
const (
	nullAt    = -1
	defaultAt = -2
	nowAt     = -3
)

// in returns the operand's value among the values of the statement; false if the value cannot be
// negated. The operand must not be DEFAULT or NOW().
func (l operand) in(values []Value) (Value, bool) {
	if l.at == nullAt {
		return Value{IsNull: true}, true
	}
	v := values[l.at]
	if l.negative {
		isNegatable := v.IsNumber && v.Number != math.MinInt64 // the negative of the least BIGINT is not a BIGINT
		v.Number = -v.Number
		return v, isNegatable
	}
	return v, true
}

// An assignment sets a column to a value or, if from names a column, to the sum or difference of that
// column and the value.
type assignment struct {
	column, from string
	value        operand
	minus        bool
}

// changes reports whether statements of a kind change rows.
func (k shapeKind) changes() bool {
	return k == shapeUpdate || k == shapeDelete || k == shapeInsert
}

// controls reports whether statements of a kind begin or end a transaction.
func (k shapeKind) controls() bool { return k >= shapeBegin }

// isSavepoint reports whether statements of a kind are about savepoints.
func (k shapeKind) isSavepoint() bool { return k >= shapeSavepoint && k <= shapeRelease }

// shapeOf returns the shape of a statement, whose literals have been replaced by
// parameters; nil if it cannot be compiled. The shape must account for every literal,
// because one plan serves all literals.
func shapeOf(stmt sqlparser.Statement) *shape {
	if s := controlOf(stmt); s != nil {
		return s
	}
	var s *shape
	switch n := stmt.(type) {
	case *sqlparser.Set:
		return shapeOfSet(n)
	case *sqlparser.Select:
		s = shapeOfSelect(n)
	case *sqlparser.Update:
		s = shapeOfUpdate(n)
	case *sqlparser.Delete:
		s = shapeOfDelete(n)
	case *sqlparser.Insert:
		s = shapeOfInsert(n)
	}
	if s == nil || !s.understands(stmt) {
		return nil
	}
	return s
}

// shapeOfSelect returns nil for a SELECT with a clause that no shape has, or conditions that neither form expresses.
func shapeOfSelect(n *sqlparser.Select) *shape {
	o := n.QueryOpts
	if n.Into != nil || n.With != nil || n.Having != nil || len(n.GroupBy) > 0 || len(n.Window) > 0 ||
		len(o.DistinctOn) > 0 || o.SQLCalcFoundRows {
		return nil
	}
	// s reads a single table by a key; wide may join tables and have further conditions. A
	// statement may have both shapes.
	s, wide := &shape{kind: shapeSelect}, &shape{kind: shapeSelect}
	s.simple = s.from(n.From) && s.conditions(n.Where)
	if n.Limit != nil {
		if !s.simple || !s.addOrder(n) {
			return nil
		}
		return s
	}
	joined := wide.addJoin(n.From, n.Where)
	switch {
	case s.simple && joined:
		s.join = wide.join
	case joined:
		return wide
	case !s.simple:
		return nil
	}
	return s
}

// shapeOfUpdate returns nil for an UPDATE with a clause that no shape has.
func shapeOfUpdate(n *sqlparser.Update) *shape {
	if n.Ignore != "" || n.With != nil || n.Limit != nil || len(n.OrderBy) > 0 || len(n.Returning) > 0 {
		return nil
	}
	s := shapeOfChange(shapeUpdate, n.TableExprs, n.Where)
	if s == nil || !s.assignments(n.Exprs) {
		return nil
	}
	return s
}

// shapeOfDelete returns nil for a DELETE with a clause that no shape has.
func shapeOfDelete(n *sqlparser.Delete) *shape {
	if len(n.Targets) > 0 || n.With != nil || len(n.Partitions) > 0 || n.Limit != nil || len(n.OrderBy) > 0 || len(n.Returning) > 0 {
		return nil
	}
	return shapeOfChange(shapeDelete, n.TableExprs, n.Where)
}

// shapeOfChange returns the shape of an UPDATE or DELETE, with the table and the conditions, which
// may include conditions beyond the row's key; nil if there is none.
func shapeOfChange(kind shapeKind, from sqlparser.TableExprs, where *sqlparser.Where) *shape {
	// s has only conditions on a key; wide may have further ones.
	s, wide := &shape{kind: kind, simple: true}, &shape{kind: kind, simple: true}
	joined := wide.from(from) && wide.addJoin(from, where)
	switch {
	case s.from(from) && s.conditions(where):
		if joined {
			s.join = wide.join
		}
		return s
	case joined:
		return wide
	}
	return nil
}

// shapeOfInsert returns nil for an INSERT with a clause that no shape has.
func shapeOfInsert(n *sqlparser.Insert) *shape {
	if n.With != nil || len(n.Partitions) > 0 || len(n.Returning) > 0 {
		return nil
	}
	s := &shape{kind: shapeInsert, simple: true, auth: n.Auth}
	s.auth.Extra = nil // what rewrites the INSERT when it is planned (see sql/change)
	for _, c := range n.Columns {
		s.into = append(s.into, c.String())
	}
	if !s.duplicates(n) || !s.addName(n.Table) || !s.tuples(n.Rows) {
		return nil
	}
	return s
}

// tuples adds the rows of an INSERT to the shape; false if they have other values than literals, or differ in length.
func (s *shape) tuples(rows sqlparser.InsertRows) bool {
	if a, ok := rows.(*sqlparser.AliasedValues); ok {
		if !a.As.IsEmpty() || len(a.Columns) > 0 {
			return false
		}
		rows = a.Values
	}
	values, ok := rows.(sqlparser.Values)
	if !ok || len(values) == 0 || len(values[0]) == 0 {
		return false
	}
	s.rows = make([][]operand, len(values))
	for i, tuple := range values {
		if len(tuple) != len(values[0]) {
			return false // go-mysql-server reports the error
		}
		s.rows[i] = make([]operand, len(tuple))
		for at, e := range tuple {
			if s.rows[i][at], ok = s.inserted(e); !ok {
				return false
			}
		}
	}
	return true
}

// inserted returns the operand for a value of an INSERT: a literal, NULL, DEFAULT, NOW() or CURRENT_TIMESTAMP.
func (s *shape) inserted(e sqlparser.Expr) (operand, bool) {
	switch e := e.(type) {
	case *sqlparser.Default:
		return operand{at: defaultAt}, e.ColName == ""
	case *sqlparser.FuncExpr:
		s.values += len(e.Exprs) // the digits of CURRENT_TIMESTAMP are a literal
		return operand{at: nowAt}, isNow(e)
	}
	return s.value(e)
}

// isNow reports whether a call is NOW() or a synonym of it. The parser writes CURRENT_TIMESTAMP
// with its number of fractional digits.
func isNow(f *sqlparser.FuncExpr) bool {
	if !f.Qualifier.IsEmpty() || f.Distinct || f.Over != nil {
		return false
	}
	switch f.Name.Lowered() {
	case "now":
		return len(f.Exprs) == 0
	case "current_timestamp", "localtime", "localtimestamp":
		return sqlparser.String(f.Exprs) == "0"
	}
	return false
}

// from adds the table of a statement to the shape; false if there are several tables, or the table
// has an alias or other clauses.
func (s *shape) from(tables sqlparser.TableExprs) bool {
	if len(tables) != 1 {
		return false
	}
	t, ok := tables[0].(*sqlparser.AliasedTableExpr)
	if !ok || t.Hints != nil || t.AsOf != nil || !t.As.IsEmpty() || len(t.Partitions) > 0 || t.Lateral {
		return false
	}
	s.auth = t.Auth
	name, ok := t.Expr.(sqlparser.TableName)
	return ok && s.addName(name)
}

// addName adds the name of the statement's table to the shape; false if the name is qualified by a
// schema.
func (s *shape) addName(name sqlparser.TableName) bool {
	s.db, s.table = name.DbQualifier.String(), name.Name.String()
	return name.SchemaQualifier.IsEmpty()
}

// conditions adds a WHERE to the shape; false if there is none, or the shape cannot express it.
func (s *shape) conditions(w *sqlparser.Where) bool { return w != nil && s.condition(w.Expr) }

// condition adds a condition, and those within AND and parentheses, to the shape; false if the
// shape cannot express one.
func (s *shape) condition(e sqlparser.Expr) bool {
	switch e := e.(type) {
	case *sqlparser.AndExpr:
		return s.condition(e.Left) && s.condition(e.Right)
	case *sqlparser.ParenExpr:
		return s.condition(e.Expr)
	case *sqlparser.ComparisonExpr:
		if e.Operator == sqlparser.InStr {
			return e.Escape == nil && s.listOn(e.Left, e.Right)
		}
		return e.Operator == sqlparser.EqualStr && e.Escape == nil && s.conditionOn(e.Left, e.Right, nil)
	case *sqlparser.RangeCond:
		return e.Operator == sqlparser.BetweenStr && s.conditionOn(e.Left, e.From, e.To)
	}
	return false
}

// conditionOn adds column = lo or, if hi is not nil, column BETWEEN lo AND hi to the shape; false
// if the shape cannot express it, or has a condition on that column already.
func (s *shape) conditionOn(column, lo, hi sqlparser.Expr) bool {
	c := condition{isRange: hi != nil}
	var ok bool
	if c.lo, ok = s.literal(lo); !ok {
		return false
	}
	if c.isRange {
		if c.hi, ok = s.literal(hi); !ok {
			return false
		}
	}
	return s.addCondition(c, column)
}

// listOn adds column IN list to the shape; false if the shape cannot express it, or has a condition
// on that column already.
func (s *shape) listOn(column, list sqlparser.Expr) bool {
	values, ok := list.(sqlparser.ValTuple)
	if !ok {
		return false
	}
	c := condition{list: make([]operand, len(values))}
	for i, v := range values {
		if c.list[i], ok = s.literal(v); !ok {
			return false
		}
	}
	return s.addCondition(c, column)
}

// addCondition adds a condition on a column to the shape; false if that is no column, or the shape
// has a condition on it already.
func (s *shape) addCondition(c condition, column sqlparser.Expr) (ok bool) {
	if c.column, ok = s.column(column); !ok {
		return false
	}
	for _, other := range s.where {
		if strings.EqualFold(other.column, c.column) {
			return false
		}
	}
	s.where = append(s.where, c)
	return true
}

// column returns the column that an expression names; false if it is not a column, or is qualified.
func (s *shape) column(e sqlparser.Expr) (string, bool) {
	c, ok := e.(*sqlparser.ColName)
	if !ok || !c.Qualifier.IsEmpty() {
		return "", false
	}
	return c.Name.String(), true
}

// literal returns the operand for a parameter or its negative, and counts the parameter; false for
// other expressions.
func (s *shape) literal(e sqlparser.Expr) (operand, bool) {
	if u, ok := e.(*sqlparser.UnaryExpr); ok && u.Operator == sqlparser.UMinusStr {
		l, ok := s.literal(u.Expr)
		l.negative = !l.negative
		return l, ok
	}
	v, ok := e.(*sqlparser.SQLVal)
	if !ok {
		return operand{}, false
	}
	at, ok := parameterNumber(v)
	if ok {
		s.values++
	}
	return operand{at: at}, ok
}

// value returns the operand for a literal or NULL, as literal does.
func (s *shape) value(e sqlparser.Expr) (operand, bool) {
	if _, isNull := e.(*sqlparser.NullVal); isNull {
		return operand{at: nullAt}, true
	}
	return s.literal(e)
}

// parameterNumber returns the number of a parameter, from 0.
func parameterNumber(v *sqlparser.SQLVal) (int, bool) {
	if v.Type != sqlparser.ValArg || len(v.Val) < 3 || string(v.Val[:2]) != ":v" {
		return 0, false
	}
	n := 0
	for _, c := range v.Val[2:] {
		if !isDigit(c) || n > textMax { // a text has not so many parameters, and n cannot overflow
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n - 1, n > 0
}

// assignments adds an UPDATE's assignments to the shape; false if the shape cannot express one.
func (s *shape) assignments(list sqlparser.AssignmentExprs) bool {
	for _, a := range list {
		if !s.assignment(a) {
			return false
		}
	}
	return len(s.set) > 0
}

// assignment adds an assignment of an UPDATE to the shape; false if the shape cannot express it, or
// assigns the column already.
func (s *shape) assignment(a *sqlparser.AssignmentExpr) bool {
	to, ok := s.column(a.Name)
	if !ok {
		return false
	}
	for _, other := range s.set {
		if strings.EqualFold(other.column, to) {
			return false
		}
	}
	set := assignment{column: to}
	if b, isBinary := a.Expr.(*sqlparser.BinaryExpr); isBinary {
		ok = s.sum(&set, b)
	} else {
		set.value, ok = s.value(a.Expr)
	}
	s.set = append(s.set, set)
	return ok
}

// sum adds the sum or difference of a column and a literal to an assignment; false if the
// expression is something else.
func (s *shape) sum(set *assignment, b *sqlparser.BinaryExpr) (ok bool) {
	if b.Operator != sqlparser.PlusStr && b.Operator != sqlparser.MinusStr {
		return false
	}
	set.minus = b.Operator == sqlparser.MinusStr
	if set.from, ok = s.column(b.Left); !ok {
		return false
	}
	set.value, ok = s.literal(b.Right)
	return ok
}

// understands reports whether the shape accounts for all literals of a statement.
func (s *shape) understands(stmt sqlparser.Statement) bool {
	n := 0
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		if _, ok := node.(*sqlparser.SQLVal); ok {
			n++
		}
		return true, nil
	}, stmt)
	return n == s.values
}
