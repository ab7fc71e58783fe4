package change

import (
	"reflect"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
)

// A fromTable is a table of a SELECT.
type fromTable struct {
	name string
	// columns are the names of its known columns. If open is set, it may have others.
	columns []string
	open    bool
}

// has reports whether a table is known to have a column, and whether it may have it: before the SELECT is
// planned, not all columns are known. table is the name that qualifies the column, empty if there
// is none.
func (t fromTable) has(table, column string) (isKnown, isPossible bool) {
	if table != "" && !strings.EqualFold(table, t.name) {
		return false, false
	}
	isKnown = slices.ContainsFunc(t.columns, func(c string) bool { return strings.EqualFold(c, column) })
	return isKnown, isKnown || t.open
}

// visibleTables returns the tables of a SELECT whose columns ON DUPLICATE KEY UPDATE may name.
// As in MySQL, a SELECT that groups rows, and a UNION, have none.
func (m amender) visibleTables(ctx *gms.Context, n *sqlparser.Insert, rows sqlparser.SelectStatement) []fromTable {
	s, ok := rows.(*sqlparser.Select)
	if !ok || len(s.GroupBy) > 0 || aggregates(s.SelectExprs) || aggregates(s.Having) {
		return nil
	}
	ctes := make(map[string]bool)
	for _, w := range []*sqlparser.With{n.With, s.With} {
		if w == nil {
			continue
		}
		for _, c := range w.Ctes {
			ctes[strings.ToLower(c.As.String())] = true
		}
	}
	var all []fromTable
	for _, t := range s.From {
		all = append(all, m.fromTables(ctx, t, ctes)...)
	}
	return all
}

// fromTables returns the tables in one part of FROM.
func (m amender) fromTables(ctx *gms.Context, t sqlparser.TableExpr, ctes map[string]bool) []fromTable {
	switch t := t.(type) {
	case *sqlparser.JoinTableExpr:
		return append(m.fromTables(ctx, t.LeftExpr, ctes), m.fromTables(ctx, t.RightExpr, ctes)...)
	case *sqlparser.ParenTableExpr:
		var all []fromTable
		for _, t := range t.Exprs {
			all = append(all, m.fromTables(ctx, t, ctes)...)
		}
		return all
	case *sqlparser.AliasedTableExpr:
		if one, ok := m.fromTable(ctx, t, ctes); ok {
			return []fromTable{one}
		}
	case *sqlparser.JSONTableExpr:
		return []fromTable{{name: t.Alias.String(), open: true}}
	}
	return nil
}

// fromTable returns a table, view or subquery in FROM; false for DUAL. ctes are the names of WITH,
// in lower case.
func (m amender) fromTable(ctx *gms.Context, t *sqlparser.AliasedTableExpr, ctes map[string]bool) (fromTable, bool) {
	f := fromTable{name: t.As.String()}
	switch x := t.Expr.(type) {
	case sqlparser.TableName:
		name := x.Name.String()
		if f.name == "" {
			f.name = name
		}
		if strings.EqualFold(name, "dual") && x.DbQualifier.IsEmpty() {
			return f, false
		}
		f.columns, f.open = m.columnNames(ctx, x)
		f.open = f.open || (ctes[strings.ToLower(name)] && x.DbQualifier.IsEmpty())
	case *sqlparser.Subquery:
		f.columns, f.open = derivedNames(x)
	default:
		f.open = true
	}
	return f, true
}

// columnNames returns the columns of a table of the catalog; open is true if the catalog has no
// such table.
func (m amender) columnNames(ctx *gms.Context, name sqlparser.TableName) (names []string, open bool) {
	db := name.DbQualifier.String()
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	t, _, err := m.tables.Table(ctx, db, name.Name.String())
	if err != nil {
		return nil, true // a view, or a table that does not exist: planning reports the error
	}
	for _, c := range t.Schema(ctx) {
		if !c.HiddenSystem {
			names = append(names, c.Name)
		}
	}
	return names, false
}

// derivedNames returns the column names of a derived table; open is true if it may have more.
func derivedNames(q *sqlparser.Subquery) (names []string, open bool) {
	if len(q.Columns) > 0 {
		for _, c := range q.Columns {
			names = append(names, c.String())
		}
		return names, false
	}
	s, ok := q.Select.(*sqlparser.Select)
	if !ok {
		return nil, true
	}
	for _, x := range s.SelectExprs {
		a, ok := x.(*sqlparser.AliasedExpr)
		if !ok {
			open = true
			continue
		}
		name := a.As.String()
		if c, ok := a.Expr.(*sqlparser.ColName); ok && name == "" {
			name = c.Name.String()
		}
		names = append(names, name)
	}
	return names, open
}

// aggregates reports whether a part of a SELECT has aggregates of its own.
func aggregates(n sqlparser.SQLNode) (does bool) {
	if v := reflect.ValueOf(n); v.Kind() == reflect.Pointer && v.IsNil() {
		return false
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Subquery:
			return false, nil
		case *sqlparser.FuncExpr:
			isAggregate := n.IsAggregate() || n.Name.Lowered() == compat.ExactSumName || n.Name.Lowered() == compat.ExactAvgName
			does = does || (isAggregate && n.Over == nil)
		case *sqlparser.GroupConcatExpr:
			does = true
		}
		return !does, nil
	}, n)
	return does
}

// withoutStars returns the columns of a SELECT, with stars expanded where their columns are
// known.
func (u *upsert) withoutStars(s *sqlparser.Select) sqlparser.SelectExprs {
	var all sqlparser.SelectExprs
	for _, x := range s.SelectExprs {
		star, ok := x.(*sqlparser.StarExpr)
		if !ok {
			all = append(all, x)
			continue
		}
		columns := u.starColumns(star, s.From)
		if columns == nil {
			columns = sqlparser.SelectExprs{x}
		}
		all = append(all, columns...)
	}
	return all
}

// starColumns are the columns that a star stands for, nil if they are not known.
func (u *upsert) starColumns(star *sqlparser.StarExpr, from sqlparser.TableExprs) (all sqlparser.SelectExprs) {
	table := star.TableName.Name.String()
	if table == "" && mergesColumns(from) {
		return nil
	}
	for _, t := range u.from {
		if table != "" && !strings.EqualFold(t.name, table) {
			continue
		}
		if t.open {
			return nil
		}
		for _, c := range t.columns {
			all = append(all, &sqlparser.AliasedExpr{Expr: &sqlparser.ColName{
				Name: sqlparser.NewColIdent(c), Qualifier: sqlparser.TableName{Name: sqlparser.NewTableIdent(t.name)},
			}})
		}
	}
	return all
}

// mergesColumns reports whether FROM has a join (NATURAL or USING) whose common columns a star
// shows once.
func mergesColumns(from sqlparser.TableExprs) (does bool) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if j, ok := n.(*sqlparser.JoinTableExpr); ok {
			does = does || len(j.Condition.Using) > 0 || strings.Contains(strings.ToLower(j.Join), "natural")
		}
		return !does, nil
	}, from)
	return does
}

func hasStar(columns sqlparser.SelectExprs) bool {
	return slices.ContainsFunc(columns, func(c sqlparser.SelectExpr) bool {
		_, ok := c.(*sqlparser.StarExpr)
		return ok
	})
}
