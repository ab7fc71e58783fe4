package sql

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// wantPacket sets max_allowed_packet for all for the time of a test.
func wantPacket(t *testing.T, bytes int64) {
	_, before, _ := gms.SystemVariables.GetGlobal("max_allowed_packet")
	set := func(v any) {
		if err := gms.SystemVariables.AssignValues(map[string]any{"max_allowed_packet": v}); err != nil {
			t.Fatal(err)
		}
	}
	set(bytes)
	t.Cleanup(func() { set(before) })
}

// A string that a function would make longer than max_allowed_packet is NULL, with warning
// 1301, and takes neither memory nor time.
func TestLongStrings(t *testing.T) {
	const packet = 1 << 20
	wantPacket(t, packet)
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, s TEXT)")
	c.exec("INSERT INTO t VALUES (1, REPEAT('x', 60000))")
	c.exec("SET @a = REPEAT('a', 1000000)")
	for _, call := range []struct{ name, text string }{
		{"repeat", "REPEAT('a', 10000000000)"}, {"repeat", "REPEAT('abc', 400000)"}, {"repeat", "REPEAT(s, '1000') FROM t"}, {"repeat", "REPEAT(@a, 2)"},
		{"space", "SPACE(10000000000)"}, {"space", "SPACE(2000000)"},
		{"lpad", "LPAD('a', 10000000000, 'b')"}, {"rpad", "RPAD('a', 2000000, 'bc')"},
		{"concat", "CONCAT(@a, @a)"}, {"concat", "CONCAT(@a, s) FROM t"}, {"concat_ws", "CONCAT_WS('-', @a, NULL, @a)"}, {"concat_ws", "CONCAT_WS(@a, 1, 2, 3)"},
		{"replace", "REPLACE(@a, 'a', 'bcdefgh')"}, {"replace", "REPLACE(@a, 'a', @a)"}, {"insert", "INSERT(@a, 1, 0, @a)"},
		{"make_set", "MAKE_SET(3, @a, @a)"}, {"export_set", "EXPORT_SET(5, @a, '0', ',', 64)"},
		{"hex", "HEX(@a)"}, {"to_base64", "TO_BASE64(@a)"},
		{"regexp_replace", "REGEXP_REPLACE(@a, 'a', @a)"}, {"date_format", "DATE_FORMAT('2020-01-01', @a)"},
		{"json_array", "JSON_ARRAY(@a, @a)"}, {"json_object", "JSON_OBJECT('a', @a, 'b', @a)"}, {"json_set", "JSON_SET('{}', '$.a', @a, '$.b', @a)"},
		{"json_array_append", "JSON_ARRAY_APPEND('[]', '$', @a, '$', @a)"}, {"json_merge_preserve", "JSON_MERGE_PRESERVE(JSON_QUOTE(@a), JSON_QUOTE(@a))"},
		{"json_quote", "JSON_QUOTE(REPEAT('\\n', 1000000))"}, {"json_pretty", "JSON_PRETTY(CONCAT(REPEAT('[', 1000), '1', REPEAT(']', 1000)))"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		rows := c.exec("SELECT " + call.text)
		runtime.ReadMemStats(&after)
		if len(rows) != 1 || rows[0][0] != nil {
			t.Errorf("%s: %.80v, want NULL", call.text, rows)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s took %v", call.text, took)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 40*packet {
			t.Errorf("%s took %d bytes", call.text, took)
		}
		warnings := c.exec("SHOW WARNINGS")
		want := fmt.Sprintf("Result of %s() was larger than max_allowed_packet (%d) - truncated", call.name, packet)
		if len(warnings) != 1 || fmt.Sprint(warnings[0][1]) != "1301" || warnings[0][2] != want {
			t.Errorf("%s: warnings %v, want 1301 %s", call.text, warnings, want)
		}
	}
}

// Results within the bound are unchanged, each argument is computed once, and NULL stays NULL.
func TestStringFunctions(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	for query, want := range map[string]any{
		"SELECT REPEAT('ab', 3)":                    "ababab",
		"SELECT LENGTH(REPEAT('a', 60000000))":      int32(60000000),
		"SELECT LENGTH(SPACE(3000000))":             int32(3000000),
		"SELECT SPACE(2.5)":                         "   ",
		"SELECT CONCAT(SPACE(-1), '|')":             "|",
		"SELECT LPAD('a', 3, 'xy')":                 "xya",
		"SELECT LPAD('a', -1e30, 'b')":              nil,
		"SELECT RPAD('abc', 2, 'x')":                "ab",
		"SELECT CONCAT('a', 1, 2.5)":                "a12.5",
		"SELECT CONCAT('a', NULL)":                  nil,
		"SELECT CONCAT_WS(',', 'a', NULL, 'b')":     "a,b",
		"SELECT CONCAT_WS(NULL, 'a', 'b')":          nil,
		"SELECT REPLACE('aXbX', 'X', 'yy')":         "ayybyy",
		"SELECT REPLACE('aXbX', '', 'yy')":          "aXbX",
		"SELECT INSERT('Quadratic', 3, 4, 'What')":  "QuWhattic",
		"SELECT HEX('abc')":                         "616263",
		"SELECT HEX(255)":                           "FF",
		"SELECT TO_BASE64('abc')":                   "YWJj",
		"SELECT REPEAT(NULL, 10000000000)":          nil,
		"SELECT FORMAT(1234567.891, 2)":             "1,234,567.89",
		"SELECT MAKE_SET(5, 'a', 'b', 'c')":         "a,c",
		"SELECT EXPORT_SET(5, 'Y', 'N', ',', 4)":    "Y,N,Y,N",
		"SELECT CONCAT('é', 'É') = 'ÉÉ'":            true,
		"SELECT DATE_FORMAT('2020-01-02', '%Y/%m')": "2020/01",
	} {
		rows := c.exec(query)
		if len(rows) != 1 || rows[0][0] != want {
			t.Errorf("%s: %v, want %v", query, rows, want)
		}
	}
	// The functions also work in definitions that keep an expression as text, from which it is built
	// again.
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(60) AS (CONCAT(a, REPEAT('!', 2))) STORED, c VARCHAR(10) DEFAULT (LPAD('x', 3, '0')))")
	c.exec("CREATE VIEW v AS SELECT id, CONCAT_WS('-', a, b) AS ab FROM t")
	c.exec("INSERT INTO t (id, a) VALUES (1, 'x'), (2, 'y')")
	if got := fmt.Sprint(c.exec("SELECT v.ab, t.c, GROUP_CONCAT(REPEAT(t.a, 2)) FROM v JOIN t USING (id) GROUP BY v.ab, t.c ORDER BY CONCAT(v.ab, t.c)")); got != "[[x-x!! 00x xx] [y-y!! 00x yy]]" {
		t.Error(got)
	}
	if got := fmt.Sprint(c.exec("SHOW CREATE TABLE t")); !strings.Contains(got, "concat(`a`,repeat('!', 2))") {
		t.Error(got)
	}
}
