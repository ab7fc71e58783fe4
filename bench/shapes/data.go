package shapes

import (
	"context"
	_ "embed" // for tables.sql
	"fmt"
	"math/big"
	"strings"

	"github.com/farmsql/farmsql/bench"
)

//go:embed tables.sql
var tablesText string

// database is the name of the database with the tables.
const database = "shapes"

// RowsMin is the smallest number of rows for which all shapes have parameters.
const RowsMin = 2000

// A table is a table of the data.
type table struct {
	name string
	// rows is the number of rows, in the form of a bound (parseBound). row
	// returns row i, counted from 1.
	rows string
	row  func(d *data, i int64) []any
	// columns are the columns to compare, key the columns to order by.
	columns, key string
}

// data makes the rows of all tables.
type data struct {
	rows int64 // of the largest tables
	// prime is larger than rows. Multiplication modulo prime permutes the
	// numbers below it.
	prime int64
}

// createdStep is the prime by which times are permuted: see data.created.
const createdStep = 7919

// newData returns the data with this number of rows in the largest tables. prime is the next prime.
func newData(rows int64) *data {
	d := &data{rows: rows, prime: rows + 1}
	for d.prime == createdStep || !big.NewInt(d.prime).ProbablyPrime(0) {
		d.prime++
	}
	return d
}

var tables = []table{
	{"account", "rows", (*data).account, "id, email, name, city, active, visits, version, score, balance, note, joined, created", "id"},
	{"orders", "rows", (*data).order, "id, owner, parent, status, reference, total, quantity, due, created, closed, detail, note, version", "id"},
	{"line", "rows", (*data).line, "order_id, number, product_id, quantity, price", "order_id, number"},
	{"product", "rows/10", (*data).product, "id, name, category, price, stock", "id"},
	{"token", "rows/5", (*data).token, "id, account, body", "id"},
	{"digest", "rows/5", (*data).digest, "hash, size", "hash"},
	{"daily", "rows/10", (*data).daily, "day, kind, hits", "day, kind"},
	{"rate", "rows/10", (*data).rate, "amount, label", "amount"},
	{"counter", "rows/10", (*data).counter, "name, n", "name"},
	{"job", "rows", (*data).job, "id, queue, state, run_at, attempts", "id"},
	{"spare", "rows", (*data).spare, "id, account, kind, created, body, version", "id"},
	{"scrap", "rows", (*data).spare, "id, account, kind, created, body, version", "id"},
	{"event", "rows/10", (*data).event, "id, account, kind, body", "id"},
	{"team", "rows/100", (*data).team, "id, name", "id"},
	{"member", "rows/5", (*data).member, "id, team, account, role", "id"},
}

// created returns the time at which row i was created. Each row has another time; the times
// are not in the order of the rows.
func (d *data) created(i int64) string { return moment(((i * createdStep) % d.prime) * 300) }

// below returns a number in [0, n) that looks random and depends only on i and column.
func below(n int64, i, column int64) int64 {
	return int64(mix((uint64(i)<<8)|uint64(column)) % uint64(n))
}

var (
	statuses = []string{"new", "paid", "sent", "done"}
	cities   = []string{"Turin", "Lyon", "Porto", "Gdansk", "Bergen", "Ghent", "Basel", "Graz", "Split", "Malmo", "Cork", "Leeds", "Tartu", "Brno", "Lodz", "Nantes", "Bari", "Vigo", "Linz", "Kiel"}
	colors   = []string{"red", "green", "blue"}
)

func (d *data) account(i int64) []any {
	var note any
	if i%3 == 0 {
		note = fmt.Sprintf("note %d", below(1000, i, 0))
	}
	return []any{
		i, fmt.Sprintf("user%d@example.com", i), fmt.Sprintf("name %d", i), cities[below(20, i, 1)], below(2, i, 2), below(100, i, 3), 1,
		float64(below(1000, i, 4)) / 4, money(1_000_000 + below(1_000_000, i, 5)), note, day(below(365, i, 6)), d.created(i), nil,
	}
}

func (d *data) order(i int64) []any {
	var parent, closed any
	if i%(d.rows/10) != 0 {
		parent = (i + 9) / 10
	}
	if below(4, i, 0) == 0 {
		closed = d.created(i)
	}
	return []any{
		i, i%(d.rows/10) + 1, parent, statuses[below(4, i, 1)], fmt.Sprint(500_000 + i), money(100 + below(100_000, i, 2)), 1 + below(10, i, 3), day(below(365, i, 4)),
		d.created(i), closed, fmt.Sprintf(`{"size": %d, "color": "%s"}`, below(10, i, 5), colors[below(3, i, 6)]), fmt.Sprintf("note %d", below(1000, i, 7)), 1,
	}
}

// line returns row i. Each order has five lines.
func (d *data) line(i int64) []any {
	return []any{(i + 4) / 5, (i+4)%5 + 1, 1 + below(d.rows/10, i, 0), 1 + below(10, i, 1), money(100 + below(10_000, i, 2))}
}

func (d *data) product(i int64) []any {
	return []any{i, fmt.Sprintf("O'Neil-%d", i), 1 + i%max(1, d.rows/1000), money(100 + below(10_000, i, 0)), 1_000_000}
}

func (d *data) token(i int64) []any {
	return []any{uuid(i), i, fmt.Sprintf("body %d", below(1_000_000, i, 0))}
}

func (d *data) digest(i int64) []any { return []any{hashOf(i), below(1_000_000, i, 0)} }

// daily returns row i. Each day has ten kinds.
func (d *data) daily(i int64) []any {
	return []any{day((i - 1) / 10), (i-1)%10 + 1, below(1000, i, 0)}
}

func (d *data) rate(i int64) []any { return []any{money(i), fmt.Sprintf("label %d", i)} }

func (d *data) counter(i int64) []any { return []any{fmt.Sprintf("counter%d", i), below(1000, i, 0)} }

func (d *data) job(i int64) []any {
	return []any{i, "mail", []string{"ready", "done"}[below(2, i, 0)], d.created(i), 0}
}

func (d *data) spare(i int64) []any {
	return []any{i, 1 + below(d.rows, i, 0), 1, d.created(i), fmt.Sprintf("body %d", i), 1}
}

func (d *data) event(i int64) []any {
	return []any{i, 1 + below(d.rows, i, 0), "view", "seen", d.created(i)}
}

func (d *data) team(i int64) []any { return []any{i, fmt.Sprintf("team %d", below(1000, i, 0))} }

// member returns row i. No team has an account twice, because an account is a member of
// consecutive teams.
func (d *data) member(i int64) []any {
	account := (i + 1) / 2
	return []any{i, (account+i%2)%(d.rows/100) + 1, account, "reader"}
}

// batch is the number of rows in one INSERT.
const batch = 500

// load creates the database at a server, and loads the rows.
func (d *data) load(ctx context.Context, s *session, p *bench.Progress) error {
	for _, text := range append([]string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database, "USE " + database}, Statements(tablesText)...) {
		if err := s.exec(ctx, text); err != nil {
			return err
		}
	}
	stage := p.Stage("loading "+s.server.Name, len(tables))
	defer stage.Done()
	for _, t := range tables {
		n, err := parseBound(t.rows, d.rows)
		if err != nil {
			return err
		}
		for first := int64(1); first <= n; first += batch {
			if err := d.insert(ctx, s, t, first, min(first+batch-1, n)); err != nil {
				return err
			}
		}
		stage.Add(1)
	}
	return nil
}

// insert loads the rows first to last of a table.
func (d *data) insert(ctx context.Context, s *session, t table, first, last int64) error {
	var args []any
	var b strings.Builder
	b.WriteString("INSERT INTO " + t.name + " VALUES ")
	for i := first; i <= last; i++ {
		row := t.row(d, i)
		if i > first {
			b.WriteString(", ")
		}
		b.WriteString("(?" + strings.Repeat(", ?", len(row)-1) + ")")
		args = append(args, row...)
	}
	return s.exec(ctx, b.String(), args...)
}

// Statements returns the statements of a script, without its comments. None has a semicolon in it.
func Statements(script string) (all []string) {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(line, "--") {
			b.WriteString(line)
		}
	}
	for text := range strings.SplitSeq(b.String(), ";") {
		if text = strings.TrimSpace(text); text != "" {
			all = append(all, text)
		}
	}
	return all
}
