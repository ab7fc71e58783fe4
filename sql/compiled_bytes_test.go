package sql

import "testing"

// Literals that are written as bytes, as drivers write them, are compiled where columns hold bytes. Elsewhere they mean the same as
// without a plan.
func TestCompiledBytes(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE b (k VARBINARY(16) PRIMARY KEY, n INT, f BINARY(2), x BLOB, s VARCHAR(20), d DECIMAL(5,2), KEY (s))")
	p.run("INSERT INTO b (k, n) VALUES (_binary'not yet', 0)")
	if !p.run("INSERT INTO b (k, n) VALUES (_binary'AC', 1)") {
		t.Error("an INSERT of bytes is not compiled")
	}
	p.run("INSERT INTO b (k, n) VALUES (_binary'\xff\x00', 2), (X'4142', 3), (_binary 'it''s \\\\', 4)")
	p.must(
		"SELECT n FROM b WHERE k = _binary'\xff\x00'", "SELECT n FROM b WHERE k = _BINARY 'AB'", "SELECT n FROM b WHERE k = X'4142'", "SELECT n FROM b WHERE k = _binary'ab'",
		"SELECT n FROM b WHERE k IN (_binary'AB', X'FF00', 'it''s \\\\')",
		"UPDATE b SET f = X'0102', x = _binary'\xfe' WHERE k = _binary'AB'", "UPDATE b SET n = n + 1 WHERE k = X'4142'",
	)
	p.same("b")
	for _, q := range []string{
		"UPDATE b SET n = _binary'7' WHERE k = 'AB'", "UPDATE b SET n = X'37' WHERE k = 'AB'", "UPDATE b SET n = n + X'37' WHERE k = 'AB'", "UPDATE b SET n = n + _binary'7' WHERE k = 'AB'",
		"UPDATE b SET d = _binary'1.5' WHERE k = 'AB'", "UPDATE b SET d = d + _binary'1.5' WHERE k = 'AB'", "UPDATE b SET f = _binary'1' WHERE k = 'AB'", "UPDATE b SET f = X'414243' WHERE k = 'AB'", "UPDATE b SET s = _binary'Text' WHERE k = 'AB'",
		"SELECT k FROM b WHERE s = _binary'text'", "SELECT k FROM b WHERE s = X'54657874'", "SELECT k FROM b WHERE n = X'07'", "SELECT k FROM b WHERE n = _binary'7'", "SELECT X'37' + 1 AS h, _binary'7' + 1 AS b FROM b", "SELECT _binary'7' FROM b WHERE k = 'AB'",
		"SELECT k FROM b WHERE LOWER(s) = _binary'text'", "SELECT k FROM b WHERE s LIKE _binary'text%'", "INSERT INTO b (k, n) VALUES (_binary'#', _binary'3')", "DELETE FROM b WHERE k = X'23'", "SELECT n FROM b WHERE k BETWEEN _binary'A' AND X'FF'", "SELECT k FROM b ORDER BY k LIMIT _binary'1'",
	} {
		for range 3 {
			p.run(q)
		}
		p.same("b")
	}
}
