package fast

import (
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/store"
)

// A joinShape is the part of a SELECT that a shape cannot express: several tables,
// or an aliased one, joined by equal columns, and conditions beyond a key.
type joinShape struct {
	tables []joinTable
	// where has the comparisons of columns with literals; pairs has the columns that are compared
	// by =.
	where []comparison
	pairs [][2]columnRef
}

// A joinTable is a table in FROM. Its name is its alias or, if it has none, the table's own name.
type joinTable struct {
	db, table, name string
	auth            sqlparser.AuthInformation
}

// auths returns the privileges that a statement needs.
func (s *shape) auths() []sqlparser.AuthInformation {
	if s.simple {
		return []sqlparser.AuthInformation{s.auth}
	}
	var auths []sqlparser.AuthInformation
	for _, t := range s.join.tables {
		auths = append(auths, t.auth)
	}
	return auths
}

// A columnRef is a column as a statement names it. If table is empty, the column may be of any
// table.
type columnRef struct{ table, column string }

// A comparison is column = literal, or one of <, <=, > and >=.
type comparison struct {
	column columnRef
	op     string
	value  operand
}

// flipped maps a comparison to the one with its sides exchanged.
var flipped = map[string]string{
	sqlparser.EqualStr: sqlparser.EqualStr, sqlparser.LessThanStr: sqlparser.GreaterThanStr, sqlparser.GreaterThanStr: sqlparser.LessThanStr,
	sqlparser.LessEqualStr: sqlparser.GreaterEqualStr, sqlparser.GreaterEqualStr: sqlparser.LessEqualStr,
}

// addJoin adds any number of tables, and their conditions, to the shape; false if the shape
// cannot express one of them.
func (s *shape) addJoin(from sqlparser.TableExprs, where *sqlparser.Where) bool {
	s.join = &joinShape{}
	for _, t := range from {
		if !s.joinFrom(t) {
			return false
		}
	}
	return where != nil && s.joinCondition(where.Expr)
}

// joinFrom adds a table, or a join of tables and its conditions, to the shape; false if the shape
// cannot express it, or has a table of that name already.
func (s *shape) joinFrom(e sqlparser.TableExpr) bool {
	if j, ok := e.(*sqlparser.JoinTableExpr); ok {
		if j.Join != sqlparser.JoinStr || len(j.Condition.Using) > 0 || !s.joinFrom(j.LeftExpr) || !s.joinFrom(j.RightExpr) {
			return false
		}
		return j.Condition.On == nil || s.joinCondition(j.Condition.On)
	}
	t, ok := e.(*sqlparser.AliasedTableExpr)
	if !ok || t.Hints != nil || t.AsOf != nil || len(t.Partitions) > 0 || t.Lateral {
		return false
	}
	name, ok := t.Expr.(sqlparser.TableName)
	if !ok || !name.SchemaQualifier.IsEmpty() {
		return false
	}
	table := joinTable{db: name.DbQualifier.String(), table: name.Name.String(), name: t.As.String(), auth: t.Auth}
	if t.As.IsEmpty() {
		table.name = table.table
	}
	for _, other := range s.join.tables {
		if store.SameName(other.name, table.name) {
			return false
		}
	}
	s.join.tables = append(s.join.tables, table)
	return true
}

// joinCondition adds a condition, and those within AND and parentheses, to the shape; false if the
// shape cannot express one.
func (s *shape) joinCondition(e sqlparser.Expr) bool {
	switch e := e.(type) {
	case *sqlparser.AndExpr:
		return s.joinCondition(e.Left) && s.joinCondition(e.Right)
	case *sqlparser.ParenExpr:
		return s.joinCondition(e.Expr)
	case *sqlparser.ComparisonExpr:
		return e.Escape == nil && s.joinComparison(e)
	case *sqlparser.RangeCond:
		return e.Operator == sqlparser.BetweenStr && s.compares(e.Left, sqlparser.GreaterEqualStr, e.From) && s.compares(e.Left, sqlparser.LessEqualStr, e.To)
	}
	return false
}

// joinComparison adds a comparison of two columns, or of a column with a literal, to the shape;
// false if the shape cannot express it.
func (s *shape) joinComparison(e *sqlparser.ComparisonExpr) bool {
	flippedOp, known := flipped[e.Operator]
	if !known {
		return false
	}
	left, isLeft := joinColumn(e.Left)
	right, isRight := joinColumn(e.Right)
	switch {
	case isLeft && isRight:
		s.join.pairs = append(s.join.pairs, [2]columnRef{left, right})
		return e.Operator == sqlparser.EqualStr
	case isLeft:
		return s.compares(e.Left, e.Operator, e.Right)
	}
	return s.compares(e.Right, flippedOp, e.Left)
}

// compares adds the comparison of a column with a literal to the shape; false if it is not one.
func (s *shape) compares(column sqlparser.Expr, op string, literal sqlparser.Expr) bool {
	c, ok := joinColumn(column)
	if !ok {
		return false
	}
	v, ok := s.literal(literal)
	s.join.where = append(s.join.where, comparison{c, op, v})
	return ok
}

// joinColumn returns the column that an expression names; false if it is not a column, or is
// qualified by a database.
func joinColumn(e sqlparser.Expr) (columnRef, bool) {
	c, ok := e.(*sqlparser.ColName)
	if !ok || !c.Qualifier.DbQualifier.IsEmpty() || !c.Qualifier.SchemaQualifier.IsEmpty() {
		return columnRef{}, false
	}
	return columnRef{table: c.Qualifier.Name.String(), column: c.Name.String()}, true
}
