package wire

import (
	stdsql "database/sql"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/mysql"
)

// packedTable has columns of all kinds that are written into packets, and two of other kinds.
const packedTable = `CREATE TABLE d.t (id INT PRIMARY KEY, k INT, i1 TINYINT, i2 SMALLINT, i3 MEDIUMINT, i8 BIGINT, u1 TINYINT UNSIGNED, u8 BIGINT UNSIGNED, d DECIMAL(8,3), n DECIMAL(40,2),
	f FLOAT, g DOUBLE, c CHAR(10), v VARCHAR(10) COLLATE utf8mb4_bin, s TEXT, b VARBINARY(5), h BINARY(3), x BLOB, da DATE, dt DATETIME, dm DATETIME(3), ts TIMESTAMP(6) NULL,
	e ENUM('a','ö'), j JSON, tm TIME, y YEAR, KEY (k))`

const packedColumns = "id, k, i1, i2, i3, i8, u1, u8, d, f, g, c, v, s, b, h, x, da, dt, dm, ts, e, j"

func fillPacked(t *testing.T, s *farmServer, c *mysql.Conn) {
	t.Helper()
	for _, q := range []string{"CREATE DATABASE d", packedTable, "USE d",
		"INSERT INTO t VALUES (1, 1, -128, -32768, -8388608, -9223372036854775808, 255, 18446744073709551615, -1.5, 2, 1.25, -1e20, 'c', 'v', 's', 'b', 'h', 'x', '2024-01-02', '2024-01-02 03:04:05', '2024-01-02 03:04:05.678', '2024-01-02 03:04:05.000009', 'ö', '{\"a\": \"b\"}', '-01:02:03', 2024)",
		"INSERT INTO t VALUES (2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -0e0, '', '', '', '', '', '', '1000-01-01', '1000-01-01', '9999-12-31', '1970-01-01 12:00:00', 'a', '[]', '0:0', 1901)",
		"INSERT INTO t (id) VALUES (3)",
		fmt.Sprintf("INSERT INTO t (id, k, s, x) VALUES (4, 1, '%s', '%s'), (5, 2, '%s', NULL), (6, 2, '%s', NULL)", strings.Repeat("s", 250), strings.Repeat("x", 251), strings.Repeat("ä", 5000), strings.Repeat("l", 65535))} {
		if got := seen(c, q); !strings.Contains(got, "affected") {
			t.Fatalf("%.50s: %s", q, got)
		}
	}
	var values []string
	for i := 10; i < 700; i++ { // more rows than there are sequence numbers
		values = append(values, fmt.Sprintf("(%d, 3, %d, %d, 'row', '2024-01-02', %d.5)", i, i%100, i, i))
	}
	seen(c, "INSERT INTO t (id, k, i1, i8, v, da, d) VALUES "+strings.Join(values, ","))
}

var packedReads = []string{
	"SELECT " + packedColumns + " FROM t WHERE k > 0 ORDER BY id", "SELECT " + packedColumns + " FROM t WHERE id IN (1, 2, 3) ORDER BY id", "SELECT " + packedColumns + " FROM t WHERE k = 2",
	"SELECT " + packedColumns + " FROM t WHERE id > 0 ORDER BY id LIMIT 3 OFFSET 1", "SELECT * FROM t WHERE k = 1 ORDER BY id", "SELECT " + packedColumns + " FROM t WHERE k = 77", "SELECT " + packedColumns + " FROM t WHERE k > 0 ORDER BY id LIMIT 0",
	"SELECT id, v FROM t WHERE id BETWEEN 1 AND 40", "SELECT id, i1, i8, v FROM t WHERE id BETWEEN 20 AND 690", "SELECT v, s, id FROM t WHERE id = 5", "SELECT id, n FROM t WHERE k < 3 ORDER BY id",
}

// Rows in packets look the same to clients as rows that the engine returns.
func TestRowsInPackets(t *testing.T) {
	s := newFarmServer(t)
	c := s.connect("root", 0)
	fillPacked(t, s, c)
	multi := s.connect("root", mysql.CapabilityClientMultiStatements)
	seen(multi, "USE d")
	run := func(when string) {
		t.Helper()
		for _, q := range packedReads {
			for _, c := range []*mysql.Conn{c, multi} {
				want := seen(c, planned(q))
				for n := range 3 {
					if got := seen(c, q); got != want {
						t.Errorf("%s, execution %d: %s\ngot\n%.2000s\nwant\n%.2000s", when, n, q, got, want)
					}
				}
			}
		}
	}
	before := s.server.Stats()
	run("at first")
	if n := s.server.Stats().Planned - before.Planned; n < 20 {
		t.Errorf("%d statements ran by plans", n)
	}
	for _, q := range []string{"SET NAMES latin1", "SET NAMES utf8mb4", "SET character_set_results = NULL", "SET time_zone = '+05:30'", "BEGIN", "UPDATE t SET c = 'own', da = NULL WHERE id = 2", "INSERT INTO t (id, k, u8, da) VALUES (7, 1, 5, '2024-02-29')",
		"COMMIT", "SET sql_mode = ''", "INSERT INTO t (id, k, da, dt) VALUES (8, 1, '0000-00-00', '0000-00-00')", "UPDATE t SET n = 12345678901234567890123456789012.25 WHERE id = 1", "DELETE FROM t"} {
		seen(c, q)
		run(q)
	}
}

// So do those of prepared statements, over TLS, too.
func TestPreparedRowsInPackets(t *testing.T) {
	s := newFarmServerWith(t, Config{TLS: selfSigned(t)})
	c := s.connect("root", 0)
	fillPacked(t, s, c)
	seen(c, "SET sql_mode = ''")
	for _, options := range []string{"", "?tls=skip-verify"} {
		db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/d%s", s.addr, options))
		must(t, err)
		db.SetMaxOpenConns(1)
		for round := range 2 {
			for _, q := range packedReads {
				stmt, err := db.Prepare(q + " -- ")
				must(t, err)
				other, err := db.Prepare(planned(q))
				must(t, err)
				want := fetched(other)
				for n := range 3 {
					if got := fetched(stmt); got != want {
						t.Errorf("round %d, execution %d: %s\ngot\n%.2000s\nwant\n%.2000s", round, n, q, got, want)
					}
				}
				must(t, stmt.Close())
				must(t, other.Close())
			}
			seen(c, "INSERT INTO t (id, k, da, dt) VALUES (8, 1, '0000-00-00', '0000-00-00')")
		}
		seen(c, "DELETE FROM t WHERE id = 8")
		must(t, db.Close())
	}
}

// FOUND_ROWS and limits on results count rows in packets.
func TestRowsInPacketsAreCounted(t *testing.T) {
	s := newFarmServerWith(t, Config{ResultBufferBytes: 64 << 10})
	c := s.connect("root", 0)
	fillPacked(t, s, c)
	for range 3 {
		seen(c, "SELECT id, d FROM t WHERE k = 3 AND id < 20")
		if got := seen(c, "SELECT FOUND_ROWS()"); !strings.Contains(got, "INT64(10)") {
			t.Errorf("after ten rows: %s", got)
		}
		if got := seen(c, "SELECT id, s, d FROM t WHERE k = 2"); !strings.Contains(got, "3170") {
			t.Errorf("a result over the limit: %.200s", got)
		}
	}
}

// A row that does not fit a packet is sent in several.
func TestRowsLongerThanPackets(t *testing.T) {
	s := newFarmServerWith(t, Config{})
	c := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE d", "USE d", "CREATE TABLE t (id INT PRIMARY KEY, k INT, d DECIMAL(4,1), x LONGBLOB, KEY (k))", "INSERT INTO t VALUES (1, 1, 1.5, NULL), (2, 1, NULL, REPEAT('x', 1 << 23)), (3, 1, 2, 'end')",
		"UPDATE t SET x = CONCAT(x, x) WHERE id = 2"} {
		if got := seen(c, q); !strings.Contains(got, "affected") {
			t.Fatalf("%s: %s", q, got)
		}
	}
	for range 3 {
		res, err := c.ExecuteFetch("SELECT id, d, x FROM t WHERE k = 1 ORDER BY id", 10, true)
		must(t, err)
		if len(res.Rows) != 3 || res.Rows[1][2].Len() != 1<<24 || res.Rows[2][2].ToString() != "end" {
			t.Fatalf("%d rows", len(res.Rows))
		}
	}
}

// The numbers of packets go on after the rows, and begin again with the next request.
func TestRowNumbers(t *testing.T) {
	s := newFarmServer(t)
	root := s.connect("root", 0)
	fillPacked(t, s, root)
	seen(root, "CREATE DATABASE test")
	c := dialRaw(t, s.addr.String())
	c.exec(t, "USE d")
	for _, rows := range []int{1, 40, 250, 251, 252, 253, 255, 256, 257, 300, 511, 512, 513} {
		q := fmt.Sprintf("SELECT id, v, d FROM t WHERE k = 3 AND id > 9 ORDER BY id LIMIT %d", rows)
		for range 3 {
			got := c.numbers(t, append([]byte{3}, q...))
			for i, n := range got {
				if n != byte(i+1) {
					t.Fatalf("%d rows: packet %d has number %d", rows, i+1, n)
				}
			}
			if want := 1 + 3 + 1 + rows + 1; len(got) != want {
				t.Errorf("%d packets for %d rows", len(got), rows)
			}
		}
		if got := c.exec(t, "SELECT 1"); !strings.Contains(got, "1") {
			t.Errorf("the next request is answered by %q", got)
		}
	}
}

// numbers sends a request, and returns the sequence numbers of the packets of its answer, which is a result.
func (r *rawClient) numbers(t *testing.T, request []byte) (numbers []byte) {
	t.Helper()
	r.write(t, 0, request)
	for ends := 0; ends < 2; { // of the columns and of the rows
		var header [4]byte
		_, err := io.ReadFull(r, header[:])
		must(t, err)
		p := make([]byte, packetLength(header[:]))
		_, err = io.ReadFull(r, p)
		must(t, err)
		if p[0] == 0xff {
			t.Fatalf("%q: %q", request, p)
		}
		if p[0] == 0xfe && len(p) < 9 {
			ends++
		}
		numbers = append(numbers, header[3])
	}
	return numbers
}
