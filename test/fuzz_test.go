package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Rounds of TestFuzzQueries: each has tables of its own.
const (
	fuzzRounds        = 8
	fuzzRoundsNightly = 3000
	fuzzStatements    = 40 // of each round
	fuzzSeedVariable  = "FARMSQL_FUZZ_SEED"
)

// byDesign are differences from MariaDB that are not mistakes of farmsql: a pattern for statements,
// and the reason.
var byDesign = []struct {
	text   *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`(left|right) join.*\(\w+\.\w+, \w+\.\w+\) (=|<>|in|not in)`), "MariaDB takes a condition on rows to hold for no row that an outer join has not found"},
}

// knownErrors are errors of go-mysql-server that farmsql does not correct: it refuses the
// statement, and returns nothing wrong.
var knownErrors = []struct {
	text   *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`unable to find field with index`), "conditions of outer joins about tables further outside get a wrong place in the row"},
	{regexp.MustCompile(`incompatible conversion to SQL type: '-?[0-9:]+'->longtext`), "a TIME is looked up among literals as if it were text"},
}

// TestFuzzQueries runs random statements on random tables. Two checks need no other server. A
// condition must divide the rows of a FROM into those where it is true, false, and NULL (ternary
// logic partitioning, Rigger and Su 2020). A WHERE must find as many rows as its condition counts
// without an index (NoREC). If MariaDB is installed, it must return the same rows.
func TestFuzzQueries(t *testing.T) {
	first, rounds := uint64(1), fuzzRounds
	if nightly {
		first, rounds = uint64(time.Now().UnixNano()), fuzzRoundsNightly
	}
	if s := os.Getenv(fuzzSeedVariable); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("%s is no number: %v", fuzzSeedVariable, err)
		}
		first, rounds = n, 1
	}
	s := start(t, t.TempDir(), layouts[0].flags()...)
	run := &fuzzRun{T: t, ours: s.connect(t, ""), theirs: startMariaDB(t), left: make(map[string]int)}
	for seed := first; seed < first+uint64(rounds) && run.failures < 20; seed++ {
		run.round(seed)
	}
	t.Logf("%d rounds from seed %d: %d statements, of which left out %v", rounds, first, run.statements, run.left)
}

// A fuzzRun is a test at work.
type fuzzRun struct {
	*testing.T
	ours, theirs *stdsql.DB
	seed         uint64
	tables       []*fuzzTable
	statements   int
	failures     int
	left         map[string]int // what was left out, and how often
}

func (f *fuzzRun) round(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	f.seed, f.tables = seed, nil
	for i := range 1 + r.IntN(3) {
		f.tables = append(f.tables, newFuzzTable(r, fmt.Sprintf("t%d", i)))
	}
	f.setUp(f.ours, func(q string) string { return q })
	if f.theirs != nil {
		f.setUp(f.theirs, toMariaDB)
	}
	z := &fuzzer{Rand: r, tables: f.tables}
	for range fuzzStatements {
		from, refs := z.from()
		f.partition(from, z.condition(refs, 0))
		query, ordered := z.query()
		f.compare(query, ordered)
	}
}

// toMariaDB replaces what MariaDB does not have: its collations by ICU's weights are older.
func toMariaDB(q string) string {
	return strings.ReplaceAll(q, "utf8mb4_0900_ai_ci", "utf8mb4_unicode_520_nopad_ci")
}

func (f *fuzzRun) setUp(db *stdsql.DB, write func(string) string) {
	f.Helper()
	db.SetMaxOpenConns(1)
	all := []string{"drop database if exists fuzz", "create database fuzz", "use fuzz"}
	for _, t := range f.tables {
		all = append(all, t.setup...)
	}
	for _, q := range all {
		if _, err := db.Exec(write(q)); err != nil {
			f.Fatalf("seed %d: %s: %v", f.seed, q, err)
		}
	}
}

// partition checks that the rows with a true, a false and a NULL condition add up to all rows.
func (f *fuzzRun) partition(from, p string) {
	f.statements++
	var n [5]int
	for i, q := range []string{
		"select 1 from " + from,
		"select 1 from " + from + " where " + p,
		"select 1 from " + from + " where not (" + p + ")",
		"select 1 from " + from + " where (" + p + ") is null",
		"select (" + p + ") is true from " + from,
	} {
		rows, err := rowsOf(f.ours, q)
		if err != nil {
			f.refused(q, err)
			return
		}
		for _, row := range rows {
			if strings.Contains(row, "1") {
				n[i]++
			}
		}
	}
	if n[1]+n[2]+n[3] != n[0] || n[1] != n[4] {
		f.fail("select count(*) from %s where %s\nof %d rows the condition holds for %d, not for %d, is NULL for %d; counted without an index it holds for %d", from, p, n[0], n[1], n[2], n[3], n[4])
	}
}

// compare runs the query on MariaDB, and compares the rows.
func (f *fuzzRun) compare(query string, ordered bool) {
	f.statements++
	ours, err := rowsOf(f.ours, query)
	if err != nil {
		f.refused(query, err)
		return
	}
	if f.theirs == nil {
		f.left["no MariaDB"]++
		return
	}
	for _, d := range byDesign {
		if d.text.MatchString(query) {
			f.left[d.reason]++
			return
		}
	}
	theirs, err := rowsOf(f.theirs, toMariaDB(query))
	if err != nil {
		f.left["MariaDB refuses it"]++
		return
	}
	if !ordered {
		slices.Sort(ours)
		slices.Sort(theirs)
	}
	if !slices.Equal(ours, theirs) {
		f.fail("%s\n%d rows, MariaDB has %d: %s", query, len(ours), len(theirs), firstDifference(ours, theirs))
	}
}

// refused judges an error. It is the statement's own error only if MariaDB refuses the statement,
// too.
func (f *fuzzRun) refused(query string, err error) {
	for _, k := range knownErrors {
		if k.text.MatchString(err.Error()) {
			f.left[k.reason]++
			return
		}
	}
	if f.theirs != nil {
		if _, e := rowsOf(f.theirs, toMariaDB(query)); e != nil {
			f.left["both refuse it"]++
			return
		}
	}
	f.fail("%s\n%v", query, err)
	if errors.Is(err, context.DeadlineExceeded) { // the next statement has a new connection
		if _, err := f.ours.Exec("use fuzz"); err != nil {
			f.Fatal(err)
		}
	}
}

func (f *fuzzRun) fail(format string, args ...any) {
	f.failures++
	var tables strings.Builder
	for _, t := range f.tables {
		tables.WriteString(strings.Join(t.setup, ";\n") + ";\n")
	}
	f.Errorf("%s=%d\n%s\nwith the tables\n%s", fuzzSeedVariable, f.seed, fmt.Sprintf(format, args...), tables.String())
}

func firstDifference(a, b []string) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return "missing " + b[i]
		case i >= len(b):
			return "too many " + a[i]
		case a[i] != b[i]:
			return fmt.Sprintf("row %d is %s, MariaDB's %s", i, a[i], b[i])
		}
	}
	return ""
}

// rowsOf returns the rows of a query as text. farmsql writes a TIME with all of its digits, and
// other servers write the digits of its type.
func rowsOf(db *stdsql.DB, query string) (all []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, at := make([]stdsql.RawBytes, len(names)), make([]any, len(names))
	for i := range values {
		at[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(at...); err != nil {
			return nil, err
		}
		var b strings.Builder
		for _, v := range values {
			if v == nil {
				b.WriteString("NULL ")
				continue
			}
			fmt.Fprintf(&b, "%q ", strings.TrimSuffix(string(v), ".000000"))
		}
		all = append(all, b.String())
	}
	var e *mysql.MySQLError
	if err := rows.Err(); err != nil && !errors.As(err, &e) {
		return nil, fmt.Errorf("rows: %w", err)
	}
	return all, rows.Err()
}
