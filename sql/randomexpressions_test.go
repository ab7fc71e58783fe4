package sql

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// computed makes up an expression of literals, mostly one of the kind of a column.
func (r randomSQL) computed(column string) string {
	times := []string{"DATE('2024-01-02 10:00:00')", "DATE('2024-01-01')", "('2024-01-01' + INTERVAL 1 DAY)", "DATE_SUB('2024-01-02', INTERVAL 1 DAY)", "(DATE('2024-01-02') + INTERVAL 10 HOUR)",
		"(DATE('2024-01-01') - INTERVAL 2 MONTH)", "CONCAT('2024-01-0', 1)", "COALESCE(NULL, '2024-01-02')", "DATE(20240102)", "DATE('x')", "DATE(NULL)"}
	numbers := []string{"YEAR('2024-01-02')", "DATEDIFF('2024-01-02', '2024-01-01')", "(1 + 1)", "(2 * 1.5)", "(5 - 7)", "(4 / 2)", "(5 DIV 2)", "ABS(-1)", "GREATEST(1, 2)", "IF(1, 2, 3)", "NULLIF(1, 1)",
		"(200 - 199)", "(1e0 + 1)", "(0.5 + 1)", "(3 % 2)", "LENGTH('ab')", "LEAST(2, 1.5)", "(1 + '1')"}
	texts := []string{"LOWER('AB')", "CONCAT('a', 'b')", "UPPER('a')", "TRIM(' a')", "LEFT('azure', 1)", "COALESCE(NULL, 'a')", "UNHEX('61')", "IF(1, 'a', 'b')", "IFNULL('b', 1)", "RIGHT('ab', 1)", "CONCAT('', 1)", "CONCAT(X'61', 'b')"}
	switch {
	case r.IntN(6) == 0 && column != "dt":
		return r.one(slices.Concat(times, numbers, texts)...)
	case column == "dt": // go-mysql-server compares a DATE and a day's hours by their days
		return strings.Replace(r.one(times...), "HOUR", "DAY", 1)
	case column == "ts":
		return r.one(times...)
	case slices.Contains([]string{"s", "b", "vb", "e", "k", "t", "r"}, column):
		return r.one(texts...)
	}
	return r.one(numbers...)
}

var patterns = []string{"'a%'", "'A%'", "'%'", "''", "'a_'", "'_'", "'%b'", "'ab'", "'ä%'", "'日%'", "'a\\\\%'", "'b\\\\_%'", "'azure%'", "'a%e'", "'%%'", "'я%'", "' %'", "'_z%'"}

// computes makes up a condition with literals in expressions.
func (r randomSQL) computes(table string) string {
	c := r.column(table)
	not := r.one("", "", "", "NOT ")
	switch r.IntN(8) {
	case 0:
		return not + c.name + " BETWEEN " + r.computed(c.name) + " AND " + r.one(r.computed(c.name), r.one(c.values...))
	case 1:
		// go-mysql-server makes a whole number of a decimal in a list.
		first := strings.NewReplacer("/", "+", "* 1.5", "* 1", "0.5 +", "5 +", ", 1.5", ", 1").Replace(r.computed(c.name))
		return c.name + " " + not + "IN (" + first + ", " + r.one(c.values...) + r.one("", ", NULL") + ")"
	case 2, 3:
		if texts := slices.DeleteFunc(slices.Clone(randomColumns[table]), func(c randomColumn) bool { return !strings.Contains("s b k t r", c.name) }); r.IntN(8) > 0 {
			c = texts[r.IntN(len(texts))]
		}
		return c.name + " " + not + "LIKE " + r.one(patterns...)
	case 4:
		// go-mysql-server compares CAST(s AS CHAR) and a call by the call's collation.
		return not + strings.NewReplacer("CAST", "COALESCE", " AS CHAR", ", 'x'", " AS SIGNED", ", 1").Replace(r.expression(table)) + r.one(" = ", " < ", " >= ") + r.one(r.computed(c.name), r.one(c.values...))
	case 5:
		return not + r.computed(c.name) + r.one(" = ", " < ", " >= ") + c.name
	}
	return not + c.name + r.one(" = ", " = ", " < ", " <= ", " > ", " >= ", " != ") + r.computed(c.name)
}

// repatterned is redrawn for patterns, too.
func (r randomSQL) repatterned(query string) string {
	for _, p := range patterns {
		if strings.Contains(query, "LIKE "+p) && r.IntN(2) == 0 {
			query = strings.Replace(query, "LIKE "+p, "LIKE "+r.one(patterns...), 1)
		}
	}
	if r.IntN(2) == 0 {
		return query
	}
	return r.redrawn(query)
}

// Random conditions with literals in expressions return the same by our plans as by go-mysql-server's,
// also for other literals, and the same rows are changed.
func TestEngineRandomExpressions(t *testing.T) {
	testRandom(t, 120, 4, func(r randomSQL, p *pair) {
		table := r.one("a", "a", "a", "b", "c")
		where := " WHERE " + r.computes(table)
		switch r.IntN(4) {
		case 0:
			where += " AND " + r.computes(table)
		case 1:
			where += " OR " + r.condition(table, 0)
		case 2:
			where += " AND " + r.condition(table, 1)
		}
		query := "SELECT " + r.one("*", r.column(table).name) + " FROM " + table + where + strings.Replace(r.order(table), " LIMIT 0", "", 1)
		if r.IntN(5) == 0 {
			query = "SELECT COUNT(*), COUNT(DISTINCT " + r.column(table).name + ") FROM " + table + where
		}
		if c := r.column(table); table != "c" && c.name != "v" && r.IntN(6) == 0 {
			query = "UPDATE " + table + " SET " + c.name + " = " + r.one(r.computed(c.name), "CONCAT("+c.name+", 'a')", c.name+" + 2", c.name+" * 1.5", "COALESCE("+c.name+", 1)", "LEFT("+c.name+", 1)", "IF("+c.name+" > 1, 1, 2)") + where
		}
		p.both(query, true)
		p.both(query, true)
		for range 3 {
			p.both(strings.ReplaceAll(r.repatterned(query), " LIMIT 0", " LIMIT 1"), true)
		}
		if strings.HasPrefix(query, "UPDATE") {
			p.both("SELECT * FROM "+table, false)
		}
	})
}

// What is computed once has a plan for all values of a class; what go-mysql-server decides by the value,
// or reports, has none.
func TestComputedPlans(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, at DATETIME, day DATE, s VARCHAR(20), v VARBINARY(9), n INT, d DECIMAL(8,2), doc JSON, KEY (at), KEY (day), KEY (s), KEY (v), KEY (n))")
	for i := range 20 {
		p.run(fmt.Sprintf("INSERT INTO t (at, day, s, v, n, d, doc) VALUES ('2024-01-%02d 10:00:00', '2024-01-%02d', 'Ab%d', 'b%d', %d, %d.5, '{}')", i+1, i+1, i, i, i, i))
	}
	for query, is := range map[string]bool{
		"SELECT id FROM t WHERE at >= DATE('2024-01-%02d 12:13:14') AND at < DATE('2024-01-05 01:02:03') + INTERVAL 1 DAY":                 true,
		"SELECT id FROM t WHERE at BETWEEN '2024-01-02 00:00:00' - INTERVAL 1 HOUR AND DATE('2024-01-%02d') + INTERVAL 1 HOUR ORDER BY id": true,
		"SELECT id FROM t WHERE day IN (DATE('2024-01-%02d'), DATE('2024-01-07'))":                                                         true,
		"SELECT id FROM t WHERE at > NOW() - INTERVAL %d DAY":                                                                              true,
		"SELECT id FROM t WHERE day > DATE('2024-13-%02d')":                                                                                false, // a warning
		"SELECT id FROM t WHERE s LIKE 'ab1%d%%' ORDER BY s":                                                                               true,
		"SELECT id FROM t WHERE s LIKE CONCAT('aB', '%d')":                                                                                 true,
		"SELECT id FROM t WHERE n LIKE '1%d'":                                                                                              false, // the pattern of a number is kept
		"SELECT id FROM t WHERE v = UNHEX('623%d')":                                                                                        true,
		"SELECT id FROM t WHERE s = UNHEX('41623%d')":                                                                                      false, // bytes, or a text
		"SELECT id FROM t WHERE LOWER(s) = 'ab%d'":                                                                                         true,
		"SELECT id FROM t WHERE n = %d + 2 AND d > 1.5 * 2":                                                                                true,
		"SELECT id FROM t WHERE DATE(at) = '2024-01-%02d'":                                                                                 true,
		"SELECT id FROM t WHERE DATE(at) = 2024010%d":                                                                                      false, // a number that is a time
		"UPDATE t SET doc = JSON_SET(doc, '$.n', %d), n = n + %[1]d WHERE id = 3":                                                          true,
		"UPDATE t SET s = DATE_ADD('2024-01-%02d', INTERVAL 1 DAY) WHERE id = 3":                                                           false, // a text as it was written
		"SELECT COUNT(DISTINCT s), COUNT(DISTINCT n) FROM t WHERE id > %d":                                                                 true,
		"SELECT id FROM t WHERE at >= MAKETIME(%d, 0, 0)":                                                                                  false, // a time of day is one of no day
		"SELECT id FROM t WHERE doc BETWEEN 'A' AND '%d'":                                                                                  false,
		"SELECT id FROM t WHERE at > SIGN(0) OR id = %d":                                                                                   false, // a number that is a time
		"SELECT id FROM t WHERE doc IN ('A', '%d')":                                                                                        false,
	} {
		var got bool
		for i := range 4 {
			got = p.byPlan(fmt.Sprintf(query, i+1))
		}
		if got != is {
			t.Errorf("%s: by a plan: %v", query, got)
		}
	}
	p.both("SELECT * FROM t", false)
}
