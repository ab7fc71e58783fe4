package sql

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/sql/compat"
)

// chained joins n terms, each made of an even number from 0.
func chained(n int, term, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(term, "#", strconv.Itoa(2*i))
	}
	return strings.Join(all, separator)
}

// TestLongLists plans and runs statements with long lists of constants, which an application may
// generate, in about a second of processor time each.
func TestLongLists(t *testing.T) {
	const rows, terms = 3000, 20_000
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE test")
	c.exec("USE test")
	c.exec("CREATE TABLE t (a INT PRIMARY KEY, b INT, c VARCHAR(20), d INT, KEY (c), KEY (d, a))")
	var values []string
	for i := range rows {
		values = append(values, fmt.Sprintf("(%d, %d, 's%d', %d)", i, i, i, i%10))
	}
	c.exec("INSERT INTO t VALUES " + strings.Join(values, ","))
	list := chained(terms, "#", ",")
	for _, q := range []struct {
		name, where string
		count       int
	}{
		{"IN, primary key", "a IN (" + list + ")", rows / 2},
		{"IN, no index", "b IN (" + list + ")", rows / 2},
		{"IN, text", "c IN (" + chained(terms, "'s#'", ",") + ")", rows / 2},
		{"IN and an equality", "d = 4 AND a IN (" + list + ")", rows / 10},
		{"NOT IN, primary key", "a NOT IN (" + list + ")", rows / 2},
		{"NOT IN, no index", "b NOT IN (" + list + ")", rows / 2},
		{"NOT IN, text", "c NOT IN (" + chained(terms, "'s#'", ",") + ")", rows / 2},
		{"OR, primary key", chained(terms, "a = #", " OR "), rows / 2},
		{"OR, no index", chained(terms, "b = #", " OR "), rows / 2},
		{"OR, text", chained(terms, "c = 's#'", " OR "), rows / 2},
		{"OR of ranges", chained(terms/10, "a BETWEEN # AND #", " OR "), rows / 2},
		{"AND of <>", chained(terms, "a <> #", " AND "), rows / 2},
		{"tuples", "(a, b) IN (" + chained(terms, "(#, #)", ",") + ")", rows / 2},
		{"OR of ANDs", chained(terms/10, "(a = # AND b = #)", " OR "), rows / 2},
		{"two columns", "a IN (" + list + ") AND c IN (" + chained(terms, "'s#'", ",") + ")", rows / 2},
	} {
		t.Run(q.name, func(t *testing.T) {
			start := cputime.Now(t)
			got := c.exec("SELECT COUNT(*) FROM t WHERE " + q.where)
			wantSoon(t, start, 20*time.Second, q.where)
			if n := got[0][0]; n != int64(q.count) {
				t.Errorf("%v rows, want %d", n, q.count)
			}
		})
	}
	t.Run("lists for all columns of a key", func(t *testing.T) { // whose combinations would take all memory
		var columns, where []string
		for i := range 14 {
			columns, where = append(columns, fmt.Sprintf("k%d", i)), append(where, fmt.Sprintf("(k%d IN (1, 2, 3) OR k%d = 4 OR k%d IN (5, 6, 7))", i, i, i))
		}
		all := strings.Join(columns, ",")
		c.exec("CREATE TABLE m (" + strings.Join(columns, " INT,") + " INT, KEY (" + all + "))")
		c.exec("INSERT INTO m VALUES (" + chained(14, "1", ",") + "), (" + chained(14, "7", ",") + "), (" + chained(14, "#", ",") + ")")
		start := cputime.Now(t)
		if n := c.exec("SELECT COUNT(*) FROM m WHERE " + strings.Join(where, " AND "))[0][0]; n != int64(2) {
			t.Errorf("%v rows, want 2", n)
		}
		wantSoon(t, start, 20*time.Second, "the lists")
	})
	t.Run("join", func(t *testing.T) {
		start := cputime.Now(t)
		got := c.exec("SELECT COUNT(*) FROM t x JOIN t y ON x.a = y.b WHERE x.a IN (" + list + ")")
		wantSoon(t, start, 20*time.Second, "the join")
		if n := got[0][0]; n != int64(rows/2) {
			t.Errorf("%v rows, want %d", n, rows/2)
		}
	})
}

// TestListsOfChains compares what chains and lists find with what their terms do, where values
// differ and are equal, or are none that the column can have.
func TestListsOfChains(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE test")
	c.exec("USE test")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY, i TINYINT, u BIGINT UNSIGNED, s VARCHAR(10), b VARCHAR(10) COLLATE utf8mb4_bin, p VARCHAR(20), KEY (i), KEY (u), KEY (s), KEY (b, i), KEY (p(3)))")
	for n := range 400 {
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d, %d, %d, '%c%d', '%c%d', 'p%d')", n, n%100-50, n, 'a'+rune(n%2)*('A'-'a'), n%150, 'a'+rune(n%2)*('A'-'a'), n%150, n))
	}
	c.exec("INSERT INTO t VALUES (1000, NULL, NULL, NULL, NULL, NULL)")
	for column, value := range map[string]func(int) string{
		"i": func(n int) string { return fmt.Sprint(3*n - 400) },
		"u": func(n int) string { return fmt.Sprint(3*n - 400) },
		"s": func(n int) string { return fmt.Sprintf("'A%d'", n%200) },
		"b": func(n int) string { return fmt.Sprintf("'A%d'", n%200) },
		"p": func(n int) string { return fmt.Sprintf("'p%d%.*s'", n, n%20, "                    ") },
	} {
		for _, n := range []int{compat.ChainMin, compat.ListMax, compat.ListMax + 50} {
			var values, equal, different []string
			for i := range n {
				v := value(i)
				values, equal, different = append(values, v), append(equal, column+" = "+v), append(different, v+" <> "+column)
			}
			// COALESCE hides the column, so that the condition is evaluated as it is written.
			list, plain := strings.Join(values, ","), "COALESCE("+column+")"
			for _, same := range [][]string{
				{plain + " IN (" + list + ")", column + " IN (" + list + ")", column + " IN (" + list + ", NULL)", strings.Join(equal, " OR "), "id >= 0 AND (" + strings.Join(equal, " OR ") + ")"},
				{plain + " NOT IN (" + list + ")", column + " NOT IN (" + list + ")", strings.Join(different, " AND "), strings.Join(different, " AND ") + " AND id >= 0"},
			} {
				want := c.shown("SELECT id FROM t WHERE " + same[0] + " ORDER BY id")
				for _, where := range same[1:] {
					if got := c.shown("SELECT id FROM t WHERE " + where + " ORDER BY id"); got != want {
						t.Errorf("%.60s..., %d values: got %q, want %q", where, n, got, want)
					}
				}
			}
		}
	}
}
