package sql

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func moneyTables(p *pair) {
	p.t.Helper()
	p.run("CREATE TABLE m (id INT PRIMARY KEY AUTO_INCREMENT, a DECIMAL(12,2), b DECIMAL(4,4), c DECIMAL(20,0), w DECIMAL(40,10), at DATETIME, fine DATETIME(6), n INT, KEY (a), KEY (at))")
	for i := range 20 {
		p.run(fmt.Sprintf("INSERT INTO m (a, b, c, w, at, fine, n) VALUES ('%d.%02d', '0.%04d', '%d', NULL, '2024-01-02 03:04:%02d', NULL, %d)", i*i, i, 7*i, i, i, i))
	}
}

// Compiled statements write and read decimals and times that a column stores unchanged.
func TestCompiledMoney(t *testing.T) {
	p := newPair(t)
	moneyTables(p)
	p.must(
		"UPDATE m SET a = a + '12.34' WHERE id = 1", "UPDATE m SET a = a - '0.1' WHERE id = 2", "UPDATE m SET a = a + '-5' WHERE id = 3", "UPDATE m SET a = a + '0.005' WHERE id = 4",
		"UPDATE m SET a = a - '3.17', c = c + '1', n = n + 1, at = '2025-12-31 23:59:59' WHERE id = 5", "UPDATE m SET a = '7.5' WHERE id = 6", "UPDATE m SET a = '-0.01' WHERE id = 7",
		"UPDATE m SET c = c + '12345678901234567' WHERE id = 8", "UPDATE m SET a = b + '0.3' WHERE id = 9", "UPDATE m SET fine = '2024-02-29 00:00:00' WHERE id = 10", "UPDATE m SET a = a + '0' WHERE id = 11",
		"INSERT INTO m (a, b, at, n) VALUES ('1.20', '0.5', '2024-02-29 12:00:00', 5)", "INSERT INTO m (c) VALUES ('99999999999999999999')",
		"INSERT INTO m (at, fine) VALUES ('2024-02-29 23:59:59.5', '2024-02-29 23:59:59.5')", "INSERT INTO m (at, fine) VALUES ('2024-12-31 23:59:59.999999', '2024-02-29 23:59:59.000001')", "INSERT INTO m (at) VALUES ('9999-12-31 23:59:59.499999')", "INSERT INTO m (w) VALUES ('-000123.4567890123')",
	)
	p.same("m")
	for _, q := range []string{
		"UPDATE m SET a = a + '' WHERE id = 1", "UPDATE m SET a = a + 'x' WHERE id = 1", "UPDATE m SET a = a + '1e3' WHERE id = 1", "UPDATE m SET a = a + ' 1' WHERE id = 1", "UPDATE m SET a = a + '1.' WHERE id = 1", "UPDATE m SET a = a + '.5' WHERE id = 1",
		"UPDATE m SET w = w + '1' WHERE id = 1", "UPDATE m SET a = a + '9999999999' WHERE id = 20", "UPDATE m SET b = b + '1' WHERE id = 1", "UPDATE m SET a = a + 1 WHERE id = 1", "UPDATE m SET n = a + '1' WHERE id = 1", "UPDATE m SET a = n + '1' WHERE id = 1",
		"UPDATE m SET a = '1.234' WHERE id = 1", "UPDATE m SET a = '12345678901.00' WHERE id = 1", "UPDATE m SET b = '1' WHERE id = 1", "INSERT INTO m (a) VALUES ('1.005')", "INSERT INTO m (a) VALUES ('')", "INSERT INTO m (b) VALUES ('-2')", "INSERT INTO m (a) VALUES (1)",
		"INSERT INTO m (at) VALUES ('2023-02-29 12:00:00')", "INSERT INTO m (at) VALUES ('2024-02-29')", "INSERT INTO m (at) VALUES ('2024-02-29 12:00:00,5')", "INSERT INTO m (at) VALUES ('2024-02-29 12:00:00.1234567')", "INSERT INTO m (at) VALUES ('2024-02-29 12:00:00.')", "INSERT INTO m (at) VALUES ('0000-00-00 00:00:00')", "INSERT INTO m (at) VALUES ('2024-02-29T12:00:00')", "UPDATE m SET at = '2024-2-9 12:00:00' WHERE id = 1",
	} {
		p.run(q)
		if p.run(q) {
			t.Errorf("compiled: %s", q)
		}
		p.same("m")
	}
}

// Random changes of decimals and times.
func TestCompiledMoneyRandom(t *testing.T) {
	p := newPair(t)
	moneyTables(p)
	r := rand.New(rand.NewPCG(5, 6))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	number := func() string {
		if r.IntN(6) == 0 {
			return pick("''", "'9999999999.99'", "'-9999999999.99'", "'0.9999'", "'1e2'", "'1.005'", "NULL", "5", "-7", "1.5", "'99999999999999999999'", "'+1'", "'--1'", "'1.2.3'", "'-'", "'0x10'")
		}
		return fmt.Sprintf("'%s%d.%0*d'", pick("", "", "-"), r.IntN(1000), 1+r.IntN(3), r.IntN(10))
	}
	at := func() string {
		return pick(fmt.Sprintf("'2024-%02d-%02d %02d:00:07'", 1+r.IntN(13), 1+r.IntN(31), r.IntN(25)), "'2024-01-01'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "NULL", "'2024-05-05 05:05:05.123456'", "'9999-12-31 23:59:59.9'", fmt.Sprintf("'2024-05-05 05:05:05.%d'", r.IntN(100000)))
	}
	for i := range 1500 {
		column := pick("a", "a", "b", "c", "w")
		set := column + " = " + pick("", pick("a", "b", "c", column)+" + ", column+" - ") + number()
		switch r.IntN(6) {
		case 0:
			set += ", n = n + 1, at = " + at()
		case 1:
			set = pick("at", "fine") + " = " + at()
		}
		q := fmt.Sprintf("UPDATE m SET %s WHERE id = %d", set, 1+r.IntN(25))
		if r.IntN(5) == 0 {
			q = fmt.Sprintf("INSERT INTO m (%s, at) VALUES (%s, %s)", column, number(), at())
		}
		p.run(q)
		if i%100 == 0 {
			p.same("m")
		}
	}
	p.same("m")
	t.Logf("%d of %d statements ran compiled", p.done, p.all)
	if p.done < p.all/4 {
		t.Errorf("only %d of %d statements ran compiled", p.done, p.all)
	}
}

// A table without a key takes rows compiled, the same several times.
func TestCompiledInsertsWithoutKey(t *testing.T) {
	p := newPair(t)
	p.run("CREATE TABLE history (c INT, at DATETIME, amount DECIMAL(6,2), data VARCHAR(24), KEY (c))")
	p.run("CREATE TABLE u (c INT, n INT, UNIQUE KEY (c))")
	for range 3 {
		p.must("INSERT INTO history (c, at, amount, data) VALUES (1, '2024-01-02 03:04:05.25', '12.50', 'some  ')", "INSERT INTO history VALUES (2, '2024-01-02 03:04:05', '-1', '')")
	}
	p.run("BEGIN")
	p.must("INSERT INTO history (amount) VALUES ('0.01')", "INSERT INTO history (c) VALUES (9)")
	p.run("ROLLBACK")
	p.must("INSERT INTO history (c) VALUES (8)")
	for i := range 5 {
		p.run(fmt.Sprintf("INSERT INTO u VALUES (%d, %d)", i/2, i))
	}
	p.run("SELECT * FROM history ORDER BY 1, 2, 3, 4")
	p.run("SELECT c, COUNT(*) FROM history GROUP BY c ORDER BY c")
	p.same("u")
	p.run("DELETE FROM history WHERE c = 1")
	p.run("SELECT COUNT(*) FROM history")
	if err := p.compiled.in.check(); err != nil {
		t.Error(err)
	}
}
