package sql

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// randomTables are the tables of random statements. Their columns have NULLs, several collations,
// signed and unsigned numbers, and indexes of several columns.
var randomTables = []string{
	`CREATE TABLE a (id INT PRIMARY KEY AUTO_INCREMENT, g INT, v BIGINT UNSIGNED, w TINYINT NOT NULL, s VARCHAR(10), b VARCHAR(10) COLLATE utf8mb4_bin,
		d DECIMAL(8,2), dt DATE, ts DATETIME, e ENUM('x','y','z'), f DOUBLE, vb VARBINARY(8),
		KEY (g, w), KEY (s), KEY (v), KEY (b, g), KEY (d), KEY (dt, id), KEY (ts), KEY (e, ts), KEY (g, s, dt), KEY (vb))`,
	`CREATE TABLE b (k VARCHAR(8), n INT UNSIGNED, m SMALLINT, x INT, y INT, t TEXT, PRIMARY KEY (k, n), UNIQUE KEY (x), UNIQUE KEY (y, m), KEY (t(2)), KEY (m))`,
	`CREATE TABLE p (x INT PRIMARY KEY)`, `INSERT INTO p VALUES (1), (2), (3)`,
	`CREATE TABLE d (id INT PRIMARY KEY AUTO_INCREMENT, x INT, w TINYINT NOT NULL DEFAULT 3, s VARCHAR(3) NOT NULL, v INT AS (w * 2) STORED, y DATETIME DEFAULT '2024-01-01 00:00:00', z DOUBLE DEFAULT (1 + 1),
		UNIQUE KEY (w, s), CHECK (w < 90), FOREIGN KEY (x) REFERENCES p (x))`,
	`CREATE TABLE c (h INT, q INT, r CHAR(5) COLLATE utf8mb4_bin, KEY (q), KEY (r, q))`,
}

// A randomColumn is a column with values that are written as literals.
type randomColumn struct {
	name   string
	values []string
}

// randomColumns are the columns of randomTables.
var randomColumns = map[string][]randomColumn{
	"a": {
		{"id", numbersTo(45)}, {"g", numbersTo(6)}, {"v", []string{"0", "1", "2", "9223372036854775806", "-1"}}, {"w", []string{"-1", "0", "1", "127", "128"}},
		{"s", words}, {"b", words}, {"d", []string{"0", "1", "-2", "100", "'1.50'", "1.5", "1.50", "-2.00", "1.505", "1e2", "123456789.5", "'1.500'", "'x'"}}, {"dt", []string{"'2024-01-01'", "20240102", "'2024-01-02'", "'2024-01-02 10:00:00'", "'0000-00-00'"}},
		{"ts", []string{"'2024-01-01 00:00:00'", "'2024-01-02 10:00:00'", "'2024-01-02'", "'2024-01-02 10:00:00.5'"}}, {"e", []string{"'x'", "'y'", "'Z'", "''", "1"}}, {"f", []string{"0", "1", "'1'", "1.5", "1.5e0"}}, {"vb", append([]string{"X'61'", "x''", "X'c3a4'", "X'ff'"}, words...)},
	},
	"b": {{"k", words}, {"n", numbersTo(5)}, {"m", numbersTo(4)}, {"x", numbersTo(30)}, {"y", numbersTo(4)}, {"t", words}},
	"d": {{"id", numbersTo(20)}, {"x", numbersTo(4)}, {"w", []string{"-1", "1", "2", "3", "95", "128", "'4'", "'x'", "1.6"}}, {"s", words}, {"v", []string{"1"}}, {"y", []string{"'2024-01-02'", "20240103101112", "'2024-02-30'"}}, {"z", []string{"1", "1.5", "'2'", "1e400"}}},
	"c": {{"h", numbersTo(9)}, {"q", numbersTo(4)}, {"r", words}},
}

var words = []string{"''", "'a'", "'A'", "'ab'", "'b'", "'B'", "'ä'", "'azure'", "'a '", "'я'", "'日本'", "'%'"}

// numbersTo returns the numbers from -1 to n.
func numbersTo(n int) (all []string) {
	for i := -1; i <= n; i++ {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// A randomSQL makes up statements.
type randomSQL struct{ *rand.Rand }

func (r randomSQL) one(of ...string) string { return of[r.IntN(len(of))] }

func (r randomSQL) column(table string) randomColumn {
	all := randomColumns[table]
	return all[r.IntN(len(all))]
}

// exact returns a column of which no two values that differ are equal: which of such values is a
// MIN, or stands for a group, is open.
func (r randomSQL) exact(table string) string {
	for {
		if c := r.column(table); !slices.Contains([]string{"s", "k", "t"}, c.name) {
			return c.name
		}
	}
}

func (r randomSQL) condition(table string, depth int) string {
	if depth > 0 && r.IntN(2) == 0 {
		return "(" + r.condition(table, depth-1) + r.one(" AND ", " AND ", " OR ") + r.condition(table, depth-1) + ")"
	}
	not := r.one("", "", "", "", "NOT ")
	c := r.column(table)
	switch r.IntN(10) {
	case 0:
		return not + c.name + " BETWEEN " + r.one(c.values...) + " AND " + r.one(c.values...)
	case 1, 2:
		list := []string{r.one(c.values...)}
		for range r.IntN(4) {
			list = append(list, r.one(c.values...))
		}
		return c.name + " " + not + "IN (" + strings.Join(list, ", ") + ")"
	case 3:
		return c.name + " IS " + not + "NULL"
	case 4:
		return not + r.one(c.values...) + r.one(" = ", " < ", " >= ") + c.name
	case 6:
		return r.rowsIn(table, not)
	case 7:
		return not + r.expression(table) + r.one(" = ", " < ", " >= ") + r.one(c.values...)
	case 5:
		// Columns of one kind: the warnings of conversions depend on which rows are read.
		return not + r.one("("+r.pairOf(table)+")", c.name+" = "+c.name)
	}
	return not + c.name + r.one(" = ", " = ", " = ", " < ", " <= ", " > ", " >= ", " != ") + r.one(c.values...)
}

// expression makes up an expression of columns.
func (r randomSQL) expression(table string) string {
	text := r.one("LOWER(#)", "CONCAT(#, '-', #)", "COALESCE(#, 'x')", "IF(# > 1, 'a', 'b')", "CASE # WHEN 1 THEN 'a' WHEN '2' THEN # ELSE 'b' END", "# * 2", "(# + 1.5)", "(# - 1e1)", "ROUND(#, 1)", "SUBSTRING(#, 1, 2)",
		"TRIM(#)", "LEFT(#, 1)", "GREATEST(#, 2)", "LEAST(#, #)", "ABS(#)", "(# DIV 2)", "(# % 3)", "(# / 4)", "CAST(# AS CHAR)", "CAST(# AS SIGNED)", "(# IN (1, 'a'))", "IFNULL(#, 0)", "NULLIF(#, 1)", "LENGTH(#)", "UPPER(#)")
	if table == "a" && r.IntN(3) == 0 {
		text = r.one("DATE(ts)", "YEAR(dt)", "DATEDIFF(dt, ts)", "(ts + INTERVAL 1 DAY)", "DATE_SUB(dt, INTERVAL 1 MONTH)", "HEX(vb)", "UNHEX(s)", "(DATE('2024-01-02 10:00:00') + INTERVAL 10 HOUR)")
	}
	for strings.Contains(text, "#") {
		text = strings.Replace(text, "#", r.column(table).name, 1)
	}
	return text
}

// rowsIn compares two columns with rows of a list.
func (r randomSQL) rowsIn(table, not string) string {
	pairs := map[string][][2]randomColumn{"a": {{randomColumns["a"][1], randomColumns["a"][3]}, {randomColumns["a"][1], randomColumns["a"][4]}}, "b": {{randomColumns["b"][0], randomColumns["b"][1]}, {randomColumns["b"][4], randomColumns["b"][2]}}, "c": {{randomColumns["c"][1], randomColumns["c"][0]}}}[table]
	columns := pairs[r.IntN(len(pairs))]
	var rows []string
	for range 1 + r.IntN(4) {
		rows = append(rows, "("+r.one(columns[0].values...)+", "+r.one(columns[1].values...)+")")
	}
	return "(" + columns[0].name + ", " + columns[1].name + ") " + not + "IN (" + strings.Join(rows, ", ") + ")"
}

// pairOf compares two columns.
func (r randomSQL) pairOf(table string) string {
	return map[string]string{"a": r.one("g = w", "g <= id", "s = b", "b < s", "w > g"), "b": r.one("n = m", "x > y"), "c": "h <= q"}[table]
}

func (r randomSQL) where(table string) string {
	if r.IntN(8) == 0 {
		return ""
	}
	return " WHERE " + r.condition(table, 2)
}

// order returns an ORDER BY that orders all rows, and a LIMIT.
func (r randomSQL) order(table string) string {
	var by []string
	for range r.IntN(3) {
		by = append(by, r.column(table).name+r.one("", "", " DESC"))
	}
	for _, c := range map[string][]string{"a": {"id"}, "b": {"k", "n"}, "c": {"h", "q", "r"}}[table] {
		by = append(by, c+r.one("", " DESC"))
	}
	return " ORDER BY " + strings.Join(by, ", ") + r.one("", " LIMIT 1", " LIMIT 3", " LIMIT 0", " LIMIT 2 OFFSET 1", " LIMIT 100")
}

// statement makes up a statement, and reports whether its rows have an order.
func (r randomSQL) statement() (text string, isOrdered bool) {
	table := r.one("a", "a", "b", "c")
	from := " FROM " + table + r.where(table)
	switch r.IntN(12) {
	case 8, 9:
		return "SELECT " + r.expression(table) + ", " + r.expression(table) + " AS other" + from + r.order(table), true
	case 0:
		return "SELECT " + r.one("MIN", "MAX", "COUNT", "SUM") + "(" + r.exact(table) + ")" + from, true
	case 1:
		return "SELECT COUNT(*), MIN(" + r.exact(table) + "), MAX(" + r.exact(table) + ")" + from, true
	case 2:
		c := r.exact(table)
		return "SELECT " + c + ", COUNT(*)" + from + " GROUP BY " + c + r.one("", " HAVING COUNT(*) > 1"), false
	case 3:
		return "SELECT DISTINCT " + r.exact(table) + from, false
	case 4:
		return "SELECT " + r.column(table).name + ", " + r.column(table).name + " AS alias, COALESCE(" + r.column(table).name + ", 1)" + from, false
	case 5, 6:
		return "SELECT *" + from, false
	case 7:
		return "SELECT " + r.column(table).name + from + r.order(table) + r.one("", "", " FOR UPDATE"), true
	}
	return "SELECT *" + from + r.order(table), true
}

// change makes up an UPDATE or DELETE.
func (r randomSQL) change() string {
	table := r.one("a", "a", "b")
	order := r.one("", r.order(table))
	order, _, _ = strings.Cut(order, " OFFSET")
	if r.IntN(4) == 0 {
		return "DELETE FROM " + table + " WHERE " + r.condition(table, 2) + order
	}
	c := r.column(table)
	set := c.name + " = " + r.one(append(c.values, "NULL")...)
	if strings.Contains("g w m x y", c.name) && r.IntN(2) == 0 {
		set = c.name + " = " + c.name + r.one(" + 1", " - 1")
	}
	return "UPDATE " + table + " SET " + set + " WHERE " + r.condition(table, 2) + order
}

// insert makes up an INSERT or REPLACE: of values that columns may refuse, of keys that exist, of rows
// without parents.
func (r randomSQL) insert() string {
	table := r.one("a", "b", "c", "d", "d", "d")
	var columns []randomColumn
	var names []string
	for _, c := range randomColumns[table] {
		if c.name != "v" && r.IntN(3) > 0 || r.IntN(12) == 0 {
			columns, names = append(columns, c), append(names, c.name)
		}
	}
	var rows []string
	for range 1 + r.IntN(3)*r.IntN(2) {
		var row []string
		for _, c := range columns {
			v := r.one(c.values...)
			row = append(row, r.one(v, v, v, v, v, v, v, v, "NULL", "DEFAULT", "COALESCE(NULL, "+v+")"))
		}
		rows = append(rows, "("+strings.Join(row, ", ")+")")
	}
	into := r.one("INSERT INTO ", "INSERT INTO ", "INSERT INTO ", "INSERT IGNORE INTO ", "REPLACE INTO ")
	text := into + table + " (" + strings.Join(names, ", ") + ") VALUES " + strings.Join(rows, ", ")
	if into == "INSERT INTO " && r.IntN(3) == 0 {
		c := r.column(table)
		text += " ON DUPLICATE KEY UPDATE " + c.name + " = " + r.one(append(c.values, "VALUES("+c.name+")", "DEFAULT", c.name+" + 1")...)
	}
	return text
}

// fill inserts rows that are the same for each call.
func (p *pair) fill(r randomSQL) {
	for _, q := range randomTables {
		p.run(q)
	}
	null := func(s string) string { return r.one(s, s, s, s, s, "NULL") }
	for i := range 40 {
		p.run(fmt.Sprintf("INSERT IGNORE INTO a (g, v, w, s, b, d, dt, ts, e, f, vb) VALUES (%s, %s, %d, %s, %s, %s, %s, %s, %s, %s, %s)", null(fmt.Sprint(i%6)), null(r.one("0", "1", "9223372036854775806")), i%4-1,
			null(r.one(words...)), null(r.one(words...)), null(r.one("1.5", "-2", "0", "100")), null(r.one("'2024-01-01'", "'2024-01-02'")), null(r.one("'2024-01-01'", "'2024-01-02 10:00:00'")), null(r.one("'x'", "'y'", "'z'")), null(r.one("0", "1.5", "-0.0")), null(r.one(words...))))
		p.run(fmt.Sprintf("INSERT IGNORE INTO b VALUES (%s, %d, %s, %s, %s, %s)", r.one(words...), i%6, null(fmt.Sprint(i%5)), null(fmt.Sprint(i)), null(fmt.Sprint(i%5)), null(r.one(words...))))
		p.run(fmt.Sprintf("INSERT INTO c VALUES (%s, %s, %s)", null(fmt.Sprint(i%10)), null(fmt.Sprint(i%5)), null(r.one(words...))))
	}
}

// unordered returns an outcome whose rows are sorted.
func unordered(outcome string) string {
	lines := strings.Split(outcome, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// both runs a statement both ways and compares what a client sees.
func (p *pair) both(query string, isOrdered bool) {
	p.t.Helper()
	schema, rows, done, err := p.compiled.compiled(query)
	if !done {
		p.compiled.correct(query, rows)
	}
	got := p.compiled.outcome(schema, rows, err)
	var wantSchema gms.Schema
	wantSchema, rows, err = p.gms.run(query)
	p.gms.correct(query, rows)
	want := p.gms.outcome(wantSchema, rows, err)
	if !isOrdered {
		got, want = unordered(got), unordered(want)
	}
	if !strings.Contains(query, " INTO ") {
		got, want = withoutConversions(got), withoutConversions(want)
	}
	if p.compiled.byPlan && err == nil { // what the listener tells of an INSERT besides
		got, want = got+p.compiled.told(), want+p.gms.told()
	}
	if got != want {
		p.t.Errorf("%s (compiled: %v, by a plan: %v)\ngot\n%swant\n%s", query, done, p.compiled.byPlan, got, want)
	}
	p.all++
	if p.compiled.byPlan {
		p.done++
	}
}

// withoutConversions returns an outcome without warnings of conversions, and of divisions by 0, which
// depend on the rows that are read.
func withoutConversions(outcome string) string {
	lines := strings.Split(outcome, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, "warning Warning 1292") || strings.HasPrefix(l, "warning Warning 1365")
	}), "\n")
}

var literals = regexp.MustCompile(`(?i)x'[^']*'|'[^']*'|\b[0-9]+(\.[0-9]+)?\b`)

// redrawn returns a statement with other literals of the same kinds.
func (r randomSQL) redrawn(query string) string {
	return literals.ReplaceAllStringFunc(query, func(l string) string {
		switch {
		case l[0]|0x20 == 'x':
			return r.one("X'61'", "X'62'", "X''")
		case strings.HasPrefix(l, "'2024-01-0") && len(l) == len("'2024-01-01'"):
			return r.one("'2024-01-01'", "'2024-01-02'", "'2024-01-30'")
		case strings.HasPrefix(l, "'2024"):
			return r.one("'2024-01-01 00:00:00'", "'2024-01-02 10:00:00'", "'2024-13-02 10:00:00'")
		case l[0] == '\'':
			return r.one(words...)
		case strings.Contains(l, "."):
			return r.one("1.5", "0.25", "100.00")
		}
		return r.one("0", "1", "2", "3", "5", "200")
	})
}

// told returns what the session knows of the generated numbers, and of the replaced rows of its last
// statement.
func (c *client) told() string {
	generated, told, isInsert := c.s.Inserted()
	deleted, id := c.s.Replaced()
	return fmt.Sprintln("generated", generated, told, isInsert, "replaced", deleted, id)
}

// Random statements return the same by our plans as by go-mysql-server's, and change the same rows.
func TestEngineRandom(t *testing.T) {
	testRandom(t, 150, 3, func(r randomSQL, p *pair) {
		query, isOrdered := r.statement()
		p.both(query, isOrdered) // the first is never compiled
		p.both(query, isOrdered)
		p.both(r.redrawn(query), isOrdered)
		if r.IntN(3) == 0 {
			p.run("SET sql_mode = 'ONLY_FULL_GROUP_BY'") // whether a conversion fails a change depends on the rows that are read
			query = r.change()
			p.both(query, true)
			p.both(query, true)
			p.both(r.redrawn(query), true)
			p.run("SET sql_mode = DEFAULT")
			query = r.insert()
			p.both(query, true)
			p.both(query, true)
			p.both(r.redrawn(query), true)
			for _, table := range []string{"a", "b", "c", "d"} {
				p.both("SELECT * FROM "+table, false)
			}
		}
	})
}

// Random joins return the same by our plans as by go-mysql-server's.
func TestEngineRandomJoins(t *testing.T) {
	testRandom(t, 60, 5, func(r randomSQL, p *pair) {
		query, isOrdered := r.join()
		p.both(query, isOrdered)
		p.both(query, isOrdered)
	})
}

// Random joins with derived tables return the same by our plans as by go-mysql-server's.
func TestEngineRandomDerivedJoins(t *testing.T) {
	testRandom(t, 60, 5, func(r randomSQL, p *pair) {
		query, isOrdered := r.derivedJoin()
		p.bothRight(query, isOrdered)
		p.bothRight(query, isOrdered)
		p.bothRight(r.redrawn(query), isOrdered)
	})
}

// bothRight is both for a statement that go-mysql-server reports no error of: whether a condition on a row
// that no other row belongs to fails depends on whether that row is read.
func (p *pair) bothRight(query string, isOrdered bool) {
	if _, _, err := p.gms.run(query); err == nil {
		p.both(query, isOrdered)
	}
}

// Random joins with groups, and IN of groups, return the same by our plans as by go-mysql-server's.
func TestEngineRandomGroupedJoins(t *testing.T) {
	testRandom(t, 60, 5, func(r randomSQL, p *pair) {
		query := r.groupedJoin()
		p.both(query, false)
		p.both(query, false)
		p.both(r.redrawn(query), false)
	})
}

// SELECT EXISTS of random joins returns the same by our plans as by go-mysql-server's.
func TestEngineRandomExists(t *testing.T) {
	testRandom(t, 40, 6, func(r randomSQL, p *pair) {
		query, _ := r.join()
		query = "SELECT EXISTS(" + query + ") AS found"
		p.both(query, true)
		p.both(query, true)
		p.both(r.redrawn(query), true)
	})
}

// testRandom runs a number of random tests for each of several seeds. At least one of so many statements
// must run by our plans.
func testRandom(t *testing.T, tests, oneOf int, test func(randomSQL, *pair)) {
	for seed := range uint64(6) {
		r := randomSQL{rand.New(rand.NewPCG(seed, 1))}
		p := newPair(t)
		p.fill(r)
		for range tests {
			test(r, p)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		if p.done*oneOf < p.all {
			t.Errorf("of %d statements, %d ran by our plans", p.all, p.done)
		}
		t.Logf("seed %d: of %d statements, %d ran by our plans", seed, p.all, p.done)
	}
}
