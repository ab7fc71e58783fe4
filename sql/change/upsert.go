package change

import (
	"reflect"
	"strconv"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// INSERT ... SELECT ... ON DUPLICATE KEY UPDATE may name columns of the tables of the SELECT, and
// a trigger's INSERT may name those of NEW and OLD. go-mysql-server resolves only the columns of
// the table and the inserted values; after a SELECT, only the columns of the table. So the
// statement is rewritten before it is planned:
//
//	INSERT INTO t (a, b) SELECT s.x, s.y FROM s ON DUPLICATE KEY UPDATE b = VALUES(b) + s.z
//
// becomes
//
//	INSERT INTO t (a, b) SELECT c0, carry(c1, c2) FROM (SELECT s.x, s.y, s.z FROM s) AS source (c0, c1, c2)
//	ON DUPLICATE KEY UPDATE b = inserted(t.b) + carried(0)
//
// carry returns its first argument, and keeps the others for carried until the next row. That
// works because an INSERT takes one row at a time; if it must read all rows before it changes
// any, it reads them below carry. Subqueries are carried, too: evaluated with the rows that are
// updated, they would look for their columns in wrong places.

// sourceName is the alias of the SELECT; no client can write it.
const sourceName = "farmsql.source"

// An amendment records the changes that were made to an INSERT before it was planned. They are
// undone before the statement is planned again.
type amendment struct {
	insert  *sqlparser.Insert
	trigger bool // the INSERT is in a trigger's body
	undo    []func()
}

// takeBack restores the statement that the client has written.
func (a *amendment) takeBack() {
	for len(a.undo) > 0 {
		last := len(a.undo) - 1
		a.undo[last]()
		a.undo = a.undo[:last]
	}
}

// set changes a part of the statement, until takeBack.
func set[T any](a *amendment, part *T, value T) {
	was := *part
	a.undo = append(a.undo, func() { *part = was })
	*part = value
}

// TakeBack undoes the amendment of a statement, if it has one, because the statement may be kept
// and planned again.
func TakeBack(s sqlparser.Statement) {
	if n, ok := s.(*sqlparser.Insert); ok {
		if a, ok := n.Auth.Extra.(*amendment); ok {
			a.takeBack()
		}
	}
}

// An upsert is an INSERT ... ON DUPLICATE KEY UPDATE that is being amended.
type upsert struct {
	*amendment
	into     *store.TableInfo
	from     []fromTable
	isSelect bool
	// ofSource and ofOutside are the carried expressions: columns of the SELECT's tables, and
	// expressions that name none of them.
	ofSource, ofOutside []sqlparser.Expr
}

// amendUpsert amends an INSERT ... ON DUPLICATE KEY UPDATE.
func (m amender) amendUpsert(ctx *gms.Context, a *amendment) {
	n := a.insert
	if len(n.OnDup) == 0 {
		return
	}
	into := m.insertedTable(ctx, n)
	if into == nil {
		return
	}
	if s := statementOf(ctx); s != nil {
		s.load = &load{}
	}
	u := &upsert{amendment: a, into: into}
	rows, isSelect := n.Rows.(sqlparser.SelectStatement)
	if isSelect {
		for p, ok := rows.(*sqlparser.ParenSelect); ok; p, ok = rows.(*sqlparser.ParenSelect) {
			rows = p.Select
		}
		u.isSelect, u.from = true, m.visibleTables(ctx, n, rows)
	}
	for _, x := range n.OnDup {
		u.amendExprs(reflect.ValueOf(x).Elem().FieldByName("Expr"))
	}
	if isSelect {
		u.carryOfSelect(rows)
	} else if len(u.ofOutside) > 0 {
		u.carryOfValues()
	}
}

// amendExprs amends the expressions in a value of ON DUPLICATE KEY UPDATE.
func (u *upsert) amendExprs(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return
		}
		if x, ok := v.Interface().(sqlparser.Expr); ok && v.CanSet() {
			if to := u.amended(x); to != nil {
				was := v.Elem()
				u.undo = append(u.undo, func() { v.Set(was) })
				v.Set(reflect.ValueOf(to))
				return
			}
		}
		u.amendExprs(v.Elem())
	case reflect.Pointer:
		if !v.IsNil() {
			u.amendExprs(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				u.amendExprs(f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			u.amendExprs(v.Index(i))
		}
	}
}

// amended returns the replacement of an expression; nil: keep it.
func (u *upsert) amended(x sqlparser.Expr) sqlparser.Expr {
	switch x := x.(type) {
	case *sqlparser.ValuesFuncExpr:
		if u.isSelect {
			return u.insertedColumn(x.Name)
		}
	case *sqlparser.ColName:
		return u.column(x)
	case *sqlparser.FuncExpr:
		if x.IsAggregate() && x.Over == nil {
			return compat.Refusal(myerr.InvalidGroupFunction.New())
		}
	case *sqlparser.Subquery, *sqlparser.ExistsExpr:
		return u.subquery(x)
	case *sqlparser.ComparisonExpr:
		if _, ok := x.Right.(*sqlparser.Subquery); ok && strings.HasSuffix(x.Operator, "in") {
			return u.subquery(x)
		}
	}
	return nil
}

// subquery carries a subquery, or refuses it if it depends on the updated or the inserted row.
func (u *upsert) subquery(x sqlparser.Expr) sqlparser.Expr {
	if u.isOfRow(x) {
		return compat.Refusal(myerr.NotSupported("subqueries of ON DUPLICATE KEY UPDATE that depend on the row"))
	}
	return u.carried(&u.ofOutside, x)
}

// isOfRow reports whether an expression that has a subquery names the updated or the inserted row.
func (u *upsert) isOfRow(x sqlparser.Expr) bool {
	hasValues, hasOwn, readsTable := false, false, false
	into := u.insert.Table.Name.String()
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.ValuesFuncExpr:
			hasValues = true
		case *sqlparser.ColName:
			hasOwn = hasOwn || strings.EqualFold(n.Qualifier.Name.String(), into)
		case *sqlparser.AliasedTableExpr:
			name, _ := n.Expr.(sqlparser.TableName)
			readsTable = readsTable || strings.EqualFold(n.As.String(), into) || strings.EqualFold(name.Name.String(), into)
		case *sqlparser.ComparisonExpr:
			if n == x { // column IN (subquery)
				_, isName := n.Left.(*sqlparser.ColName)
				hasOwn = hasOwn || isName
			}
		}
		return true, nil
	}, x)
	return hasValues || (hasOwn && !readsTable) // if the subquery reads the table, a qualified column is its own
}

// insertedColumn returns the replacement of VALUES(column).
func (u *upsert) insertedColumn(c *sqlparser.ColName) sqlparser.Expr {
	if u.into.Column(c.Name.String()) < 0 {
		return unknownColumn(c)
	}
	return ourCall(insertedName, u.own(c.Name))
}

// own returns a column of the table that is inserted into.
func (u *upsert) own(name sqlparser.ColIdent) *sqlparser.ColName {
	return &sqlparser.ColName{Name: name, Qualifier: sqlparser.TableName{Name: u.insert.Table.Name}}
}

// column returns the replacement of a column's name, or nil to keep the name. The column may
// belong to the table that is inserted into, to a table of the SELECT or, in a trigger, to NEW or
// OLD.
func (u *upsert) column(c *sqlparser.ColName) sqlparser.Expr {
	table := c.Qualifier.Name.String()
	isOwn := u.into.Column(c.Name.String()) >= 0 && (table == "" || strings.EqualFold(table, u.insert.Table.Name.String()))
	known, possible := false, false
	for _, t := range u.from {
		isKnown, isPossible := t.has(table, c.Name.String())
		known, possible = known || isKnown, possible || isPossible
	}
	switch {
	case isOwn && known:
		return compat.Refusal(myerr.AmbiguousColumn.New(c.Name.String()))
	case isOwn && u.isSelect:
		return u.own(c.Name)
	case isOwn:
		return nil
	case known || possible:
		return u.carried(&u.ofSource, c)
	case u.trigger && (strings.EqualFold(table, "new") || strings.EqualFold(table, "old")):
		return u.carried(&u.ofOutside, c)
	case u.isSelect && table != "":
		return unknownColumn(c)
	}
	return nil
}

// carried adds x to the carried expressions and returns the call that reads it. ofOutside is
// numbered from the end.
func (u *upsert) carried(all *[]sqlparser.Expr, x sqlparser.Expr) sqlparser.Expr {
	*all = append(*all, x)
	at := len(*all) - 1
	if all == &u.ofOutside {
		at = -len(*all)
	}
	return ourCall(carriedName, sqlparser.NewIntVal([]byte(strconv.Itoa(at))))
}

// carryOfSelect makes a SELECT carry the expressions: it becomes the source of an outer SELECT
// that calls carry.
func (u *upsert) carryOfSelect(rows sqlparser.SelectStatement) {
	n := u.insert
	count := len(inserted(u.into, n.Columns))
	source := &sqlparser.Subquery{Select: rows}
	inner, isPlain := rows.(*sqlparser.Select)
	if isPlain {
		inner = u.extended(inner)
		source.Select = inner
	}
	if isPlain && !hasStar(inner.SelectExprs) && len(inner.SelectExprs) != count+len(u.ofSource) {
		set(u.amendment, &n.OnDup[0].Expr, compat.Refusal(myerr.ValueCount.New()))
		return
	}
	outer := &sqlparser.Select{From: sqlparser.TableExprs{&sqlparser.AliasedTableExpr{
		Auth: sqlparser.AuthInformation{AuthType: sqlparser.AuthType_IGNORE}, Expr: source, As: sqlparser.NewTableIdent(sourceName),
	}}}
	defer func() { set[sqlparser.InsertRows](u.amendment, &n.Rows, outer) }()
	if len(u.ofSource)+len(u.ofOutside) == 0 && (!isPlain || hasStar(inner.SelectExprs)) {
		outer.SelectExprs = sqlparser.SelectExprs{&sqlparser.StarExpr{}}
		return
	}
	// carry is called with the last inserted column, so that it runs once for each row.
	for i := range count + len(u.ofSource) {
		source.Columns = append(source.Columns, sourceColumn(i).Name)
	}
	for i := range count - 1 {
		outer.SelectExprs = append(outer.SelectExprs, &sqlparser.AliasedExpr{Expr: sourceColumn(i)})
	}
	args := []sqlparser.Expr{sourceColumn(count - 1)}
	for i := range u.ofSource {
		args = append(args, sourceColumn(count+i))
	}
	outer.SelectExprs = append(outer.SelectExprs, &sqlparser.AliasedExpr{Expr: ourCall(carryName, u.withOutside(args)...)})
}

// sourceColumn returns a column of the rewritten SELECT.
func sourceColumn(at int) *sqlparser.ColName {
	return &sqlparser.ColName{
		Name: sqlparser.NewColIdent(sourceName + strconv.Itoa(at)), Qualifier: sqlparser.TableName{Name: sqlparser.NewTableIdent(sourceName)},
	}
}

// extended returns a SELECT with the carried expressions as further columns. All columns get new
// names, except those with an alias, which ORDER BY may use.
func (u *upsert) extended(s *sqlparser.Select) *sqlparser.Select {
	s = new(*s)
	columns := u.withoutStars(s)
	for i, x := range columns {
		if a, ok := x.(*sqlparser.AliasedExpr); ok && a.As.IsEmpty() {
			columns[i] = &sqlparser.AliasedExpr{Expr: a.Expr, As: sourceColumn(i).Name}
		}
	}
	for _, c := range u.ofSource {
		columns = append(columns, &sqlparser.AliasedExpr{Expr: c, As: sourceColumn(len(columns)).Name})
	}
	s.SelectExprs = columns
	return s
}

// carryOfValues makes each row of VALUES carry the expressions, beside its first value that is
// not DEFAULT.
func (u *upsert) carryOfValues() {
	values, ok := u.insert.Rows.(*sqlparser.AliasedValues)
	if !ok {
		return
	}
	for _, row := range values.Values {
		for i := range row {
			if _, isDefault := row[i].(*sqlparser.Default); !isDefault {
				set[sqlparser.Expr](u.amendment, &row[i], ourCall(carryName, u.withOutside([]sqlparser.Expr{row[i]})...))
				break
			}
		}
	}
}

// withOutside appends the expressions of ofOutside, the last first.
func (u *upsert) withOutside(args []sqlparser.Expr) []sqlparser.Expr {
	for i := len(u.ofOutside) - 1; i >= 0; i-- {
		args = append(args, u.ofOutside[i])
	}
	return args
}

// ourCall returns a call of one of our functions.
func ourCall(name string, args ...sqlparser.Expr) *sqlparser.FuncExpr {
	f := &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(name)}
	for _, a := range args {
		f.Exprs = append(f.Exprs, &sqlparser.AliasedExpr{Expr: a})
	}
	return f
}

func unknownColumn(c *sqlparser.ColName) sqlparser.Expr {
	name := c.Name.String()
	if !c.Qualifier.Name.IsEmpty() {
		name = c.Qualifier.Name.String() + "." + name
	}
	return compat.Refusal(myerr.UnknownColumn.New(name))
}
