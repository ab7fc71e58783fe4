package sql

import (
	"regexp"
	"strings"
)

// joinable are columns of randomTables by which tables are joined: those of a line are compared
// without a conversion, which some pairs of the last have.
var joinable = [][]string{
	{"a.id", "a.g", "a.v", "a.w", "b.n", "b.m", "b.x", "b.y", "c.h", "c.q"},
	{"a.id", "a.g", "a.w", "b.m", "b.x", "b.y", "c.h", "c.q"},
	{"a.s", "b.k", "b.t"},
	{"a.b", "c.r"},
	{"a.d"}, {"a.dt"}, {"a.ts"},
	{"a.g", "a.d", "a.f", "b.m", "c.h"},
}

// A joinedTable is a table of a random join, and its name there.
type joinedTable struct{ table, name string }

// joinedColumns returns the columns of a line of joinable that a table has, qualified.
func (t joinedTable) joinedColumns(line []string) (all []string) {
	for _, c := range line {
		if name, ok := strings.CutPrefix(c, t.table+"."); ok {
			all = append(all, t.name+"."+name)
		}
	}
	return all
}

var identifier = regexp.MustCompile(`\b(id|dt|ts|vb|[a-z])\b`)

// qualified returns a condition on a table, or a list of its columns, with its columns qualified.
func (t joinedTable) qualified(text string) string {
	parts := strings.Split(text, "'")
	for i := 0; i < len(parts); i += 2 { // the others are quoted
		parts[i] = identifier.ReplaceAllString(parts[i], t.name+".$1")
	}
	return strings.Join(parts, "'")
}

// equality compares a column of a table with one of those before; "" if they have none alike.
func (r randomSQL) equality(t joinedTable, before []joinedTable) string {
	for range 20 {
		line := joinable[r.IntN(len(joinable))]
		own, others := t.joinedColumns(line), before[r.IntN(len(before))].joinedColumns(line)
		if len(own) > 0 && len(others) > 0 {
			pair := []string{r.one(own...), r.one(others...)}
			r.Shuffle(2, func(i, j int) { pair[i], pair[j] = pair[j], pair[i] })
			return strings.Join(pair, " = ")
		}
	}
	return "1 = 1"
}

// conditionOn makes up a condition on one of several tables, most often the last.
func (r randomSQL) conditionOn(tables []joinedTable) string {
	t := tables[len(tables)-1-r.IntN(4)/3]
	return t.qualified(r.condition(t.table, 1))
}

// join makes up a SELECT from up to three tables, and reports whether its rows have an order.
func (r randomSQL) join() (text string, isOrdered bool) {
	return r.joinOf(func(table string) string { return table })
}

// joinOf is join of what read returns for a table.
func (r randomSQL) joinOf(read func(table string) string) (text string, isOrdered bool) {
	tables := []joinedTable{{r.one("a", "a", "b", "c"), "p1"}}
	from, where, isComma := read(tables[0].table)+" p1", []string{}, r.IntN(4) == 0
	for _, name := range []string{"p2", "p3"}[:(1+r.IntN(5))/2] {
		t := joinedTable{r.one("a", "b", "c"), name}
		on := []string{r.equality(t, tables)}
		if r.IntN(3) == 0 {
			on = append(on, r.equality(t, tables))
		}
		if r.IntN(3) == 0 {
			on = append(on, r.conditionOn(append(tables, t)))
		}
		tables = append(tables, t)
		if isComma {
			from, where = from+", "+read(t.table)+" "+name, append(where, on...)
			continue
		}
		from += r.one(" JOIN ", " INNER JOIN ", " LEFT JOIN ", " LEFT JOIN ", " LEFT OUTER JOIN ", " RIGHT JOIN ") + read(t.table) + " " + name + " ON " + strings.Join(on, " AND ")
	}
	for _, t := range tables {
		switch r.IntN(6) {
		case 0, 1:
			where = append(where, t.qualified(r.condition(t.table, 1)))
		case 2:
			where = append(where, t.qualified(r.column(t.table).name)+r.one(" IS NULL", " IS NULL", " IS NOT NULL"))
		}
	}
	if len(tables) == 1 || r.IntN(3) == 0 {
		where = append(where, r.semiJoin(tables))
	}
	return r.selectFrom(tables, from, where)
}

// derivedJoin is join of tables and derived tables.
func (r randomSQL) derivedJoin() (text string, isOrdered bool) {
	return r.joinOf(func(table string) string {
		switch r.IntN(4) {
		case 0:
			return table
		case 1:
			return "(SELECT * FROM " + table + r.where(table) + r.order(table) + ")"
		case 2:
			return "(SELECT DISTINCT * FROM " + table + r.where(table) + ")"
		}
		return "(SELECT * FROM " + table + r.where(table) + ")"
	})
}

// groupedJoin makes up a join with a derived table of groups, or with a set of those of a subquery.
func (r randomSQL) groupedJoin() string {
	outer, inner := joinedTable{r.one("a", "b", "c"), "p1"}, joinedTable{r.one("a", "b", "c"), "p2"}
	left, right, _ := strings.Cut(r.equality(inner, []joinedTable{outer}), " = ")
	if strings.HasPrefix(left, "p2.") {
		left, right = right, left
	}
	column := strings.TrimPrefix(right, "p2.")
	having := r.one("", " HAVING COUNT(*) > 1", " HAVING COUNT(*) = 2")
	groups := "SELECT " + column + r.one("", " AS x") + " FROM " + inner.table + r.where(inner.table) + " GROUP BY " + column + having
	rest := r.one("", " AND "+outer.qualified(r.condition(outer.table, 1)))
	switch r.IntN(3) {
	case 0:
		return "SELECT p1.* FROM " + outer.table + " p1 WHERE " + left + " IN (" + groups + ")" + rest
	case 1:
		return "SELECT p1.*, g.n FROM " + outer.table + " p1" + r.one(" JOIN ", " LEFT JOIN ") + "(SELECT " + column + " AS x, COUNT(*) AS n FROM " + inner.table + " GROUP BY " + column + having + ") g ON " + left + " = g.x" + rest
	}
	function := r.one("MIN", "MAX")
	return "SELECT p1.*, g.* FROM " + outer.table + " p1" + r.one(" JOIN ", " LEFT JOIN ") + "(SELECT " + function + "(" + column + ") AS x, COUNT(*) AS n FROM " + inner.table + r.where(inner.table) + ") g ON " + left + " = g.x" + rest
}

// semiJoin makes up a condition that a subquery has rows.
func (r randomSQL) semiJoin(tables []joinedTable) string {
	t := joinedTable{r.one("a", "b", "c"), "q1"}
	where := []string{"1 = 1"}
	if r.IntN(2) == 0 {
		where = append(where, t.qualified(r.condition(t.table, 1)))
	}
	equality := r.equality(t, tables)
	if r.IntN(3) == 0 {
		if left, right, ok := strings.Cut(equality, " = "); ok && strings.HasPrefix(right, "q1.") {
			return left + " IN (SELECT " + right + " FROM " + t.table + " q1 WHERE " + strings.Join(where, " AND ") + ")"
		}
	}
	// One equality: go-mysql-server takes the columns that a column of a NOT EXISTS equals for equal to each
	// other, and loses rows (TestPlannedJoins).
	where = append(where, equality)
	return r.one("", "NOT ") + "EXISTS (SELECT " + r.one("1", "*") + " FROM " + t.table + " q1 WHERE " + strings.Join(where[1:], " AND ") + ")"
}

// selectFrom makes up the rest of a SELECT from tables.
func (r randomSQL) selectFrom(tables []joinedTable, from string, where []string) (text string, isOrdered bool) {
	text = " FROM " + from
	if len(where) > 0 {
		text += " WHERE " + strings.Join(where, " AND ")
	}
	one := tables[r.IntN(len(tables))]
	switch r.IntN(6) {
	case 0:
		return "SELECT COUNT(*), MIN(" + one.qualified(r.exact(one.table)) + ")" + text, true
	case 1:
		c := one.qualified(r.exact(one.table))
		return "SELECT " + c + ", COUNT(*)" + text + " GROUP BY " + c, false
	case 2:
		return "SELECT DISTINCT " + one.qualified(r.exact(one.table)) + text, false
	case 3:
		return "SELECT *" + text, false
	}
	by := []string{}
	for range r.IntN(3) {
		by = append(by, one.qualified(r.column(one.table).name)+r.one("", " DESC"))
	}
	for _, t := range tables {
		for _, c := range map[string][]string{"a": {"id"}, "b": {"k", "n"}, "c": {"h", "q", "r"}}[t.table] {
			by = append(by, t.name+"."+c+r.one("", " DESC"))
		}
	}
	return "SELECT *" + text + " ORDER BY " + strings.Join(by, ", ") + r.one("", " LIMIT 1", " LIMIT 3", " LIMIT 2 OFFSET 1", " LIMIT 100"), true
}
