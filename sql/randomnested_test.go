package sql

import (
	"strings"
	"testing"
)

// nested makes up a SELECT from a derived table, a WITH or a UNION, and reports whether its rows have an
// order.
func (r randomSQL) nested() (text string, isOrdered bool) {
	table := r.one("a", "a", "b", "c")
	inner := "SELECT " + r.one("*", "DISTINCT *", r.columnsOf(table)) + " FROM " + table + r.where(table) + r.one("", "", r.order(table))
	c := r.exact(table)
	switch r.IntN(10) {
	case 0, 1:
		return "SELECT COUNT(*), MIN(" + c + ") FROM (" + inner + ") d" + r.where(table), true
	case 2:
		return "SELECT " + c + ", COUNT(*) FROM (" + inner + ") AS d" + r.where(table) + " GROUP BY " + c, false
	case 3:
		return "WITH d AS (" + inner + ") SELECT * FROM d" + r.where(table) + strings.Replace(r.order(table), " LIMIT 0", "", 1), true
	case 4:
		return "WITH d AS (" + inner + "), e AS (SELECT " + c + " AS f FROM d" + r.where(table) + ") SELECT f, COUNT(*) FROM e GROUP BY f", false
	case 5, 6:
		return r.union(table, c), false
	case 7:
		return r.union(table, c) + " ORDER BY " + r.one(c, "1") + r.one("", " DESC") + r.one("", " LIMIT 2", " LIMIT 3 OFFSET 1"), true
	case 8:
		return "SELECT COUNT(*), " + r.one("MIN", "MAX") + "(u) FROM (" + strings.Replace(r.union(table, c), c, c+" AS u", 1) + ") d", true
	}
	return "SELECT " + c + ", " + r.expression(table) + " FROM (" + inner + ") d" + r.where(table), false
}

// union unites the values of a column.
func (r randomSQL) union(table, column string) string {
	side := func() string { return "SELECT " + column + " FROM " + table + r.where(table) }
	text := side()
	for range 1 + r.IntN(2) {
		text += r.one(" UNION ", " UNION ALL ", " UNION ALL ") + side()
	}
	return text
}

// columnsOf lists all columns of a table.
func (r randomSQL) columnsOf(table string) string {
	var names []string
	for _, c := range randomColumns[table] {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

// Random SELECTs within SELECTs return the same by our plans as by go-mysql-server's.
func TestEngineRandomNested(t *testing.T) {
	testRandom(t, 100, 4, func(r randomSQL, p *pair) {
		query, isOrdered := r.nested()
		p.both(query, isOrdered)
		p.both(query, isOrdered)
		p.both(r.redrawn(query), isOrdered)
	})
}
