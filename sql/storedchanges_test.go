package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// UPDATEs and DELETEs that read and write only some columns of a row leave the others as they are: values of all types, of any
// length, beside NULLs, in rows that grow and shrink so that they move.
func TestStoredValuesStay(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE w (id INT PRIMARY KEY, k INT, i TINYINT UNSIGNED, f FLOAT, d DECIMAL(20,5), y YEAR, e ENUM('a','b'), m SET('a','b'), c CHAR(20), v VARCHAR(300), x LONGTEXT, b VARBINARY(50), bl LONGBLOB, j JSON, bit BIT(9), " +
		"da DATE, dt DATETIME(3), ts TIMESTAMP NULL, ti TIME(2), u VARCHAR(20), KEY (k), KEY (v(10)), UNIQUE KEY (u), KEY (dt, k))")
	r := rand.New(rand.NewPCG(7, 7))
	long := func() string {
		return strings.Repeat(string(rune('a'+r.IntN(26))), []int{0, 5, 200, 3000, 20000}[r.IntN(5)])
	}
	value := func(s string) string {
		if r.IntN(4) == 0 {
			return "NULL"
		}
		return s
	}
	column := map[string]func() string{
		"k": func() string { return fmt.Sprint(r.IntN(5)) }, "i": func() string { return fmt.Sprint(r.IntN(256)) }, "f": func() string { return "-0.0" }, "d": func() string { return fmt.Sprintf("%d.12345", r.IntN(1e9)) },
		"y": func() string { return "2024" }, "e": func() string { return "'b'" }, "m": func() string { return "'a,b'" }, "c": func() string { return "'c  '" }, "v": func() string { return "'" + long()[:0] + strings.Repeat("v", r.IntN(300)) + "'" },
		"x": func() string { return "'" + long() + "'" }, "b": func() string { return "'\\0b'" }, "bl": func() string { return "'" + long() + "'" }, "j": func() string { return fmt.Sprintf(`'{"a": [%d, 1.50, "%s"]}'`, r.IntN(9), long()) },
		"bit": func() string { return "b'101'" }, "da": func() string { return "'2024-02-29'" }, "dt": func() string { return fmt.Sprintf("'2024-02-29 10:00:0%d.125'", r.IntN(9)) }, "ts": func() string { return "'2024-10-27 01:30:00'" }, "ti": func() string { return "'-10:11:12.25'" },
	}
	names := []string{"k", "i", "f", "d", "y", "e", "m", "c", "v", "x", "b", "bl", "j", "bit", "da", "dt", "ts", "ti"}
	insert := func(id int) {
		var all []string
		for _, n := range names {
			all = append(all, value(column[n]()))
		}
		p.run(fmt.Sprintf("INSERT INTO w (id, u, %s) VALUES (%d, 'u%d', %s)", strings.Join(names, ", "), id, id, strings.Join(all, ", ")))
	}
	for id := range 30 {
		insert(id)
	}
	check := func() {
		p.same("w")
		for _, by := range []string{"k", "v", "dt"} {
			p.run("SELECT id, v, k FROM w WHERE " + by + " IS NOT NULL ORDER BY id")
		}
		p.run("SELECT id FROM w WHERE k = 3 ORDER BY id")
		p.run("SELECT id FROM w WHERE u = 'u3' ORDER BY id")
	}
	wheres := []string{"id = %d", "id BETWEEN %d AND %[1]d + 3", "k = %d", "id IN (%d, 3, 5)", "u = 'u%d'", "k > %d AND i < 200 LIMIT 3", "id > %d AND LOWER(c) = 'c'", "id >= %d ORDER BY d LIMIT 2"}
	for n := range 100 {
		columns, kind, where, deletes := r.Perm(len(names))[:1+r.IntN(2)], r.IntN(8), wheres[r.IntN(len(wheres))], r.IntN(8) == 0
		for again := range 3 { // the first is not planned by ours
			var set []string
			for _, i := range columns {
				set = append(set, names[i]+" = "+value(column[names[i]]()))
			}
			switch kind {
			case 0:
				set = []string{"k = k + 1"}
			case 1:
				set = []string{fmt.Sprintf("u = CONCAT(u, '%d')", n%10)}
			case 2:
				set = append(set[:1], fmt.Sprintf("id = id + %d", 100*(3*n+again+1)))
			}
			condition := fmt.Sprintf(where, r.IntN(30))
			if r.IntN(10) == 0 {
				p.run("BEGIN")
				insert(1000 + 3*n + again)
			}
			p.run("UPDATE w SET " + strings.Join(set, ", ") + " WHERE " + condition)
			if deletes {
				p.run("DELETE FROM w WHERE " + condition)
			}
			p.run([]string{"COMMIT", "ROLLBACK"}[r.IntN(2)])
		}
		if n%5 == 0 {
			check()
			insert(100000 + n)
		}
	}
	check()
}

// INSERTs of several rows, which are inserted together, do and tell the same as row by row: keys that exist, or that several rows
// have, in the table and in the transaction, for each kind of INSERT, and after rows that were deleted.
func TestRowsTogether(t *testing.T) {
	p := newPair(t)
	for _, q := range []string{
		"CREATE TABLE g (id INT PRIMARY KEY, u INT, v INT, s VARCHAR(10), UNIQUE KEY (u), KEY (v), KEY (s, v))", "CREATE TABLE n (id INT AUTO_INCREMENT PRIMARY KEY, v INT, KEY (v))",
		"CREATE TABLE hashed (id INT, u INT, v INT, PRIMARY KEY (id) USING HASH, UNIQUE KEY (u) USING HASH, KEY (v) USING HASH)", "CREATE TABLE keyless (v INT, u INT, UNIQUE KEY (u))",
	} {
		p.run(q)
	}
	r := rand.New(rand.NewPCG(3, 3))
	rows := func(n int, format string) string {
		var all []string
		for range n {
			s := format
			for strings.Contains(s, "#") {
				s = strings.Replace(s, "#", fmt.Sprint(r.IntN(60)), 1)
			}
			all = append(all, strings.ReplaceAll(s, "?", []string{"NULL", "7", "8"}[r.IntN(3)]))
		}
		return strings.Join(all, ", ")
	}
	for i := range 200 {
		n := 2 + r.IntN(4)
		for _, q := range []string{
			"INSERT INTO g VALUES " + rows(n, "(#, #, ?, 's#')"), "INSERT IGNORE INTO g VALUES " + rows(n, "(#, ?, #, 's')"), "INSERT INTO g VALUES " + rows(n, "(#, #, ?, NULL)") + " ON DUPLICATE KEY UPDATE v = VALUES(v)",
			"REPLACE INTO g VALUES " + rows(n, "(#, #, #, 's')"), "INSERT INTO n (v) VALUES " + rows(n, "(?)"), "INSERT INTO n VALUES " + rows(n, "(#, ?)"), "INSERT INTO hashed VALUES " + rows(n, "(#, ?, ?)"), "INSERT IGNORE INTO hashed VALUES " + rows(n, "(#, #, ?)"),
			"INSERT INTO keyless VALUES " + rows(n, "(?, #)"),
		} {
			if r.IntN(4) == 0 {
				p.run("BEGIN")
				p.run("DELETE FROM g WHERE id = 7")
				p.run("UPDATE g SET u = u + 100 WHERE id = 9")
				p.run("INSERT INTO g VALUES (9, 9, 9, '9'), (77, 77, 77, '77')")
			}
			p.run(q)
			p.run([]string{"COMMIT", "ROLLBACK"}[r.IntN(2)])
		}
		if i%5 == 0 {
			p.same("g", "n", "hashed", "keyless")
			p.run("SELECT id FROM g WHERE v = 7 ORDER BY id")
			p.run("SELECT id FROM g WHERE s = 's' ORDER BY id")
			p.run("SELECT id FROM n WHERE v = 8 ORDER BY id")
			p.run("DELETE FROM g WHERE v > 20")
			p.run("DELETE FROM hashed WHERE id > 30")
			p.run("DELETE FROM n WHERE id > 30")
			p.run("DELETE FROM keyless WHERE u < 40")
		}
	}
}
