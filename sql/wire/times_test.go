package wire

import (
	stdsql "database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestTimeText(t *testing.T) {
	for in, want := range map[string]string{
		"2024-1-2": "2024-01-02", "987-12-31 23:59:59": "0987-12-31 23:59:59", "2024-1-2 3:4:5.678": "2024-01-02 03:04:05.000678", "2024-11-12 13:14:15.123456": "2024-11-12 13:14:15.123456",
		"3:4:5": "03:04:05", "-838:59:5.7": "-838:59:05.000007", "-1:2:3": "-01:02:03", "0:0:0.0": "00:00:00.000000", " ": " ", "00:00:00": "00:00:00",
	} {
		if got := string(timeText([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Dates and times that come in the binary protocol keep their values.
func TestBinaryTimes(t *testing.T) {
	s := newFarmServer(t)
	root := s.connect("root", 0)
	for _, q := range []string{"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, at DATETIME(6), d DATE, ti TIME(6), s VARCHAR(40))"} {
		seen(root, q)
	}
	c := dialRaw(t, s.addr.String())
	const insert = "INSERT INTO t VALUES (1, ?, ?, ?, ?)"
	prepared := c.command(t, append([]byte{0x16}, insert...))
	for range 5 { // four parameters and their end
		c.read(t)
	}
	execute := append([]byte{0x17}, prepared[1:5]...)
	execute = append(execute, 0, 1, 0, 0, 0, 0 /* NULL */, 1, 12, 0, 10, 0, 11, 0, 12, 0)
	moment := append([]byte{11, 2024 & 0xff, 2024 >> 8, 1, 2, 3, 4, 5}, binary.LittleEndian.AppendUint32(nil, 678)...)
	execute = append(append(execute, moment...), 4, 2024&0xff, 2024>>8, 3, 4)
	execute = append(append(execute, 12, 1, 1, 0, 0, 0, 2, 3, 4), binary.LittleEndian.AppendUint32(nil, 50000)...)
	execute = append(execute, moment...)
	c.command(t, execute)
	got := c.exec(t, "SELECT at, d, ti, s FROM t")
	for _, want := range []string{"2024-01-02 03:04:05.000678", "2024-03-04", "-26:03:04.050000"} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %s in it", got, want)
		}
	}
	if n := strings.Count(got, "2024-01-02 03:04:05.000678"); n != 2 {
		t.Errorf("got %q, where a moment is %d times", got, n)
	}
}

// All statements of a session, prepared or not, see the time that it has set.
func TestTimestamp(t *testing.T) {
	s := newFarmServer(t)
	seen(s.connect("root", 0), "CREATE DATABASE test")
	c := dialRaw(t, s.addr.String())
	c.exec(t, "SET timestamp = 1700000000")
	for _, q := range []string{"SELECT UNIX_TIMESTAMP()", "SELECT UNIX_TIMESTAMP(NOW())", "SELECT @@timestamp"} {
		if got := c.exec(t, q); !strings.Contains(got, "1700000000") {
			t.Errorf("%s: %q", q, got)
		}
	}
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET timestamp = 1700000001"); err != nil {
		t.Fatal(err)
	}
	var prepared int64
	if err := db.QueryRow("SELECT UNIX_TIMESTAMP() + ?", 1).Scan(&prepared); err != nil || prepared != 1700000002 {
		t.Errorf("prepared: %d, %v", prepared, err)
	}
}

// Times go out in the binary protocol as they do in text: with their fractions, and dates
// of zeros are no days.
func TestBinaryTimesOut(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/?parseTime=true&sql_mode=''")
	must(t, err)
	defer db.Close()
	for _, q := range []string{
		"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, ti TIME(6), d DATE, at DATETIME, exact DATETIME(6))",
		"INSERT INTO test.t VALUES (1, '-26:03:04.050000', '0000-00-00', '0000-00-00', '0000-00-00'), (2, '01:02:03', '2024-01-02', '2024-01-02 03:04:05', NULL)",
	} {
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, query := range []string{
		"SELECT ti, d, at, exact FROM test.t WHERE id = ?",
		"SELECT a.ti, a.d, a.at, a.exact FROM test.t a WHERE a.id + 0 = ?", // which is planned
	} {
		for id, want := range map[int]string{1: "-26:03:04.050000 true true true", 2: "01:02:03.000000 false false true"} {
			var ti string
			var d, at, exact stdsql.NullTime
			must(t, db.QueryRow(query, id).Scan(&ti, &d, &at, &exact))
			if got := fmt.Sprint(ti, " ", d.Time.IsZero(), at.Time.IsZero(), exact.Time.IsZero()); got != want {
				t.Errorf("%s with %d: %s, want %s", query, id, got, want)
			}
		}
	}
}

// A statement with more parameters than the protocol library can read values of is refused
// when it is prepared.
func TestManyParameters(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	for _, n := range []int{parametersMax, parametersMax + 1, 1<<16 + 1} {
		stmt, err := db.Prepare("SELECT 1 IN (?" + strings.Repeat(",?", n-1) + ")")
		var refused *mysql.MySQLError
		if n > parametersMax {
			if !errors.As(err, &refused) || refused.Number != 1390 {
				t.Errorf("%d parameters: %v", n, err)
			}
			continue
		}
		must(t, err)
		values := make([]any, n)
		values[n-1] = 1
		var got stdsql.NullBool
		if err := stmt.QueryRow(values...).Scan(&got); err != nil || !got.Bool {
			t.Errorf("%d parameters: %v, %v", n, got, err)
		}
		must(t, stmt.Close())
	}
}

// Columns TIME(n) have their digits in text, in the binary protocol, and in the metadata of fields.
func TestTimeDigits(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	for _, q := range []string{
		"CREATE DATABASE test", "CREATE TABLE test.t (id INT PRIMARY KEY, a TIME(3), b TIME, c TIME(6))",
		"INSERT INTO test.t VALUES (1, '10:11:12', '10:11:12', '10:11:12'), (2, '-00:00:00.0005', '-00:00:00.5', '00:00:00')",
	} {
		_, err := db.Exec(q)
		must(t, err)
	}
	for _, query := range []string{"SELECT a, b, c FROM test.t WHERE id = %s", "SELECT x.a, x.b, x.c FROM test.t x WHERE x.id + 0 = %s"} {
		for id, want := range map[int]string{1: "10:11:12.000 10:11:12 10:11:12.000000", 2: "-00:00:00.001 -00:00:01 00:00:00.000000"} {
			var a, b, c string
			must(t, db.QueryRow(fmt.Sprintf(query, "?"), id).Scan(&a, &b, &c))
			if got := strings.Join([]string{a, b, c}, " "); got != want {
				t.Errorf("prepared %s with %d: %s, want %s", query, id, got, want)
			}
		}
		rows := s.connect("root", 0)
		res, err := rows.ExecuteFetch(fmt.Sprintf(query, "2"), 10, true)
		must(t, err)
		if got, want := fmt.Sprint(res.Rows), `[[TIME("-00:00:00.001") TIME("-00:00:01") TIME("00:00:00.000000")]]`; got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if got := []uint32{res.Fields[0].Decimals, res.Fields[1].Decimals, res.Fields[2].Decimals}; !slices.Equal(got, []uint32{3, 0, 6}) {
			t.Errorf("%s: fields have %d digits", query, got)
		}
	}
}
