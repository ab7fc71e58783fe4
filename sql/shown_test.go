package sql

import (
	"fmt"
	"strings"
	"testing"
)

// shownQueries are statements that mappers send when they migrate.
var shownQueries = []string{
	"SELECT count(*) FROM information_schema.tables WHERE table_schema = '%s' AND table_name = 't' AND table_type = 'BASE TABLE'",
	"SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_NAME = 'T' AND TABLE_SCHEMA = '%s'",
	"SELECT table_name FROM information_schema.tables WHERE table_schema = database() ORDER BY table_name",
	"SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = '%s' AND table_name LIKE 'v%%' ORDER BY 1",
	"SELECT table_comment, engine, table_collation FROM information_schema.tables WHERE table_schema = database() AND table_name = 't'",
	"SELECT table_name FROM (SELECT * FROM information_schema.tables WHERE table_schema = database()) _subquery WHERE _subquery.table_name = 't' AND _subquery.table_type = 'BASE TABLE'",
	"select * from information_schema.tables where table_schema = 'nosuch' and table_name = 't' and table_type = 'BASE TABLE'",
	"SELECT column_name FROM information_schema.statistics WHERE index_name = 'PRIMARY' AND table_schema = database() AND table_name = 'u' ORDER BY seq_in_index",
	"SELECT count(*) FROM information_schema.statistics WHERE table_schema = '%s' AND table_name = 't' AND index_name = 'k'",
	"SELECT TABLE_NAME, COLUMN_NAME, INDEX_NAME, NON_UNIQUE FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '%s' AND TABLE_NAME = 't' ORDER BY INDEX_NAME, SEQ_IN_INDEX",
	"SELECT count(*) FROM INFORMATION_SCHEMA.table_constraints WHERE constraint_schema = '%s' AND table_name = 'child' AND constraint_name = 'child_ibfk_1'",
	"SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_schema = '%s' ORDER BY 1, 2",
	"SELECT column_name, referenced_column_name, referenced_table_name FROM information_schema.key_column_usage WHERE table_name = 'child' AND table_schema = DATABASE() AND referenced_table_schema = DATABASE() AND referenced_table_name IS NOT NULL",
	"SELECT CONSTRAINT_NAME as constraint_name, REFERENCED_TABLE_NAME as referencedTableName FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE where TABLE_NAME = 'child' AND CONSTRAINT_NAME!='PRIMARY' AND CONSTRAINT_SCHEMA='%s' AND REFERENCED_TABLE_NAME IS NOT NULL",
	"SELECT update_rule, delete_rule FROM information_schema.referential_constraints WHERE constraint_schema = '%s' AND table_name = 'child'",
	"SELECT fk.referenced_table_name AS 'to_table', fk.column_name AS 'column', rc.update_rule AS 'on_update' FROM information_schema.referential_constraints rc JOIN information_schema.key_column_usage fk USING (constraint_schema, constraint_name) WHERE fk.referenced_column_name IS NOT NULL AND fk.table_schema = database() AND fk.table_name = 'child' AND rc.constraint_schema = database() AND rc.table_name = 'child'",
	"SELECT table_name, view_definition FROM information_schema.views WHERE table_schema = '%s' AND table_name = 'nosuch'",
	"SELECT table_name FROM information_schema.views WHERE table_schema = '%s'",
	"SELECT SCHEMA_NAME from Information_schema.SCHEMATA where SCHEMA_NAME LIKE '%s%%' ORDER BY SCHEMA_NAME='%[1]s' DESC,SCHEMA_NAME limit 1",
	"SELECT column_name, is_nullable, column_default FROM information_schema.columns WHERE table_schema = '%s' AND table_name = 'u' ORDER BY ordinal_position",
	"SELECT column_name, column_default, is_nullable = 'YES', data_type, character_maximum_length, column_type, column_key, extra FROM information_schema.columns WHERE table_schema = '%s' AND table_name = 't' ORDER BY ORDINAL_POSITION",
	"SELECT count(*) FROM INFORMATION_SCHEMA.columns WHERE table_schema = '%s' AND table_name = 't' AND column_name = 'k'",
	"SELECT table_schema, COUNT(*) FROM information_schema.columns WHERE table_name = 't' AND table_schema IN ('%s', 'nosuch') GROUP BY table_schema",
	"SELECT COUNT(*) FROM information_schema.character_sets WHERE character_set_name = 'utf8mb4'",
	"select table_name as `name`, (data_length + index_length) >= 0 as `size`, table_comment as `comment` from information_schema.tables where table_schema = '%s' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED') and table_name not in ('u', 'N') order by table_name",
	"SELECT VERSION()", "SELECT USER(), CURRENT_USER(), DATABASE() IS NULL", "SELECT VERSION(), @@sql_mode, @@autocommit",
}

// withoutSession returns an outcome without its last line, which has what differs between sessions.
func withoutSession(outcome string) string {
	if at := strings.LastIndex(strings.TrimRight(outcome, "\n"), "\n"); at >= 0 {
		return outcome[:at]
	}
	return outcome
}

// askedOf returns a query with the name of a database in place of its verbs.
func askedOf(query, db string) string {
	if !strings.Contains(query, "%") {
		return query
	}
	return fmt.Sprintf(query, db)
}

// What is asked of information_schema is answered by plans as it is by go-mysql-server, also in transactions and for other
// databases and tables than those of the first execution.
func TestShown(t *testing.T) {
	p := newPair(t)
	p.create()
	for _, q := range []string{"CREATE TABLE parent (id INT PRIMARY KEY)", "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)", "CREATE VIEW v AS SELECT id FROM t"} {
		p.run(q)
	}
	in := p.compiled.in
	both := func(query string) (byPlan bool) {
		t.Helper()
		schema, rows, _, err := p.compiled.compiled(query)
		byPlan = p.compiled.byPlan
		got := p.compiled.outcome(schema, rows, err)
		other := in.client("")
		other.s.PlanOnly = true
		other.s.SetCurrentDatabase(p.compiled.s.GetCurrentDatabase())
		schema, rows, err = other.run(query)
		want := other.outcome(schema, rows, err)
		if unordered(withoutSession(got)) != unordered(withoutSession(want)) {
			t.Errorf("%s\ngot\n%swant\n%s", query, got, want)
		}
		return byPlan
	}
	planned := 0
	for _, q := range shownQueries {
		for _, db := range []string{"d1", "d1", "d2", "nosuch", "D1", "d1"} {
			if both(askedOf(q, db)) {
				planned++
			}
		}
		if both(askedOf(q, "d1")); p.compiled.byPlan == (strings.Contains(q, "LIKE") || strings.Contains(q, "JOIN")) {
			t.Errorf("no plan: %s", q)
		}
	}
	if planned < 80 {
		t.Errorf("%d executions by a plan", planned)
	}
	for range 3 { // they are refused
		for _, q := range []string{"UPDATE information_schema.tables SET engine = 'x' WHERE table_name = 't'", "DELETE FROM information_schema.tables WHERE table_name = 't'", "INSERT INTO information_schema.tables (table_name) VALUES ('x')"} {
			if both(q); p.compiled.byPlan {
				t.Errorf("by a plan: %s", q)
			}
		}
	}
	p.compiled.exec("INSERT INTO n (s) SELECT table_name FROM information_schema.tables WHERE table_schema = 'd1' AND table_name = 'parent'")
	p.compiled.exec("BEGIN")
	p.compiled.exec("INSERT INTO t (id) VALUES (1000)")
	for _, q := range shownQueries {
		both(askedOf(q, "d1"))
	}
	p.compiled.exec("ROLLBACK")
	for range 3 { // tables that come and go are seen
		p.compiled.exec("CREATE TABLE comes (id INT PRIMARY KEY, x INT, KEY later (x))")
		query := "SELECT count(*) FROM information_schema.statistics WHERE table_schema = 'd1' AND table_name = 'comes' AND index_name = 'later'"
		if _, rows, _, err := p.compiled.compiled(query); err != nil || fmt.Sprint(rows) != "[[1]]" {
			t.Errorf("%v %v", rows, err)
		}
		p.compiled.exec("DROP TABLE comes")
		if _, rows, _, err := p.compiled.compiled(query); err != nil || fmt.Sprint(rows) != "[[0]]" {
			t.Errorf("%v %v", rows, err)
		}
	}
}
