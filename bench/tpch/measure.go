package tpch

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed" // for queries.sql and tables.sql
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/shapes"
)

//go:embed queries.sql
var queriesText string

//go:embed tables.sql
var tablesText string

// A Config says what Measure measures.
type Config struct {
	Program  string  // of farmsql
	Folder   string  // the parent of the servers' data folders, which exist during the run
	Scale    float64 // 1 is 6 million lines of orders
	Rounds   int     // executions of each query at each server, of which the first is shown apart
	Patience time.Duration
	Seed     uint64
	Progress *bench.Progress // may be nil
}

// Bounds of Config.Scale.
const (
	scaleMin, scaleMax = 0.0005, 10
	roundsMin          = 2
)

// ErrConfig means that a Config cannot be measured.
var ErrConfig = errors.New("bench/tpch: not to be measured")

func (c *Config) validate() error {
	switch {
	case !(c.Scale >= scaleMin && c.Scale <= scaleMax):
		return fmt.Errorf("%w: scale %g (--scale), must be %g to %d", ErrConfig, c.Scale, scaleMin, scaleMax)
	case c.Rounds < roundsMin:
		return fmt.Errorf("%w: %d rounds (--rounds), at least %d", ErrConfig, c.Rounds, roundsMin)
	case c.Patience <= 0:
		return fmt.Errorf("%w: a patience of %v (--patience), must be positive", ErrConfig, c.Patience)
	}
	return nil
}

// Measure starts farmsql and MariaDB, loads the same data into both, and measures the queries at both.
func Measure(ctx context.Context, cfg Config) (res *Result, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(cfg.Folder, "farmsql-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench/tpch: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	mariaDB, err := shapes.StartMariaDB(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mariaDB.Stop()) }()
	farmsql, err := shapes.StartFarmsql(ctx, cfg.Program, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, farmsql.Stop()) }()
	res, err = measure(ctx, cfg, [2]*shapes.Server{farmsql, mariaDB}, queries(queriesText, cfg.Scale))
	if err == nil {
		res.Conditions.Durability = bench.DurabilityOf(folder)
	}
	return res, err
}

// queries returns the queries of a text at a scale.
func queries(text string, scale float64) []string {
	return shapes.Statements(strings.ReplaceAll(text, ":fraction", strconv.FormatFloat(0.0001/scale, 'f', 10, 64)))
}

// A run is a measurement of two servers, the first of which is farmsql.
type run struct {
	cfg     Config
	servers [2]*shapes.Server
	db      [2]*sql.DB
	queries []string
	rows    []Row
}

const (
	atFarmsql = iota
	atMariaDB
)

// measure loads data into two servers, and measures queries.
func measure(ctx context.Context, cfg Config, servers [2]*shapes.Server, queries []string) (res *Result, err error) {
	r := &run{cfg: cfg, servers: servers, queries: queries, rows: make([]Row, len(queries))}
	res = &Result{Rounds: cfg.Rounds}
	for i, s := range servers {
		if r.db[i], err = s.Open(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, r.db[i].Close()) }()
		r.db[i].SetMaxIdleConns(-1) // each execution has a connection of its own
		res.Servers[i], res.Settings[i] = s.Name, s.Settings
		if res.Versions[i], err = s.Version(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	watch := bench.StartWatch()
	for round := range cfg.Rounds {
		if err := r.round(ctx, round); err != nil {
			return nil, err
		}
	}
	for i := range r.rows {
		r.rows[i].Query = i + 1
		r.rows[i].summarize()
	}
	res.Rows = r.rows
	res.conditions(watch, cfg)
	return res, nil
}

// batch is the number of rows in one INSERT.
const batch = 500

// database is the name of the database with the tables.
const database = "tpch"

// load creates the tables at both servers, and loads the rows.
func (r *run) load(ctx context.Context) error {
	if err := r.both(ctx, append([]string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database}, inDatabase(shapes.Statements(tablesText))...)...); err != nil {
		return err
	}
	g := newGenerator(r.cfg.Scale, r.cfg.Seed)
	stage := r.cfg.Progress.Stage("loading rows", g.count())
	defer stage.Done()
	waiting := make(map[string][]string)
	insert := func(table string) error {
		rows := waiting[table]
		delete(waiting, table)
		stage.Add(len(rows))
		return r.both(ctx, "INSERT INTO "+database+"."+table+" VALUES "+strings.Join(rows, ", "))
	}
	for rec := range g.all() {
		waiting[rec.table] = append(waiting[rec.table], rec.values)
		if len(waiting[rec.table]) == batch {
			if err := insert(rec.table); err != nil {
				return err
			}
		}
	}
	for table := range waiting {
		if err := insert(table); err != nil {
			return err
		}
	}
	return r.both(ctx, "USE "+database, "ANALYZE TABLE lineitem, orders, partsupp, part, customer, supplier")
}

// inDatabase returns definitions of tables with the name of the database.
func inDatabase(all []string) []string {
	all = slices.Clone(all)
	for i := range all {
		all[i] = strings.Replace(all[i], "TABLE ", "TABLE "+database+".", 1)
	}
	return all
}

// both executes statements at both servers.
func (r *run) both(ctx context.Context, all ...string) error {
	for i := range r.servers {
		if err := r.at(ctx, i, all); err != nil {
			return fmt.Errorf("bench/tpch: %s: %w", r.servers[i].Name, err)
		}
	}
	return nil
}

// at executes statements at server i, on one connection.
func (r *run) at(ctx context.Context, i int, all []string) (err error) {
	conn, err := r.db[i].Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, conn.Close()) }()
	for _, text := range all {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%.80s: %w", text, err)
		}
	}
	return nil
}

// round gives each server a turn with each query. MariaDB is the first in the first round, for its answers are those to compare with.
func (r *run) round(ctx context.Context, round int) error {
	stage := r.cfg.Progress.Stage(fmt.Sprintf("round %d of %d", round+1, r.cfg.Rounds), len(r.queries))
	defer stage.Done()
	order := []int{atMariaDB, atFarmsql}
	if round%2 == 1 {
		slices.Reverse(order)
	}
	for q := range r.queries {
		for _, i := range order {
			if r.rows[q].isTroubled() {
				break
			}
			if err := r.turn(ctx, q, i); err != nil {
				return err
			}
		}
		stage.Add(1)
	}
	return nil
}

// turn executes a query at server i, and compares its answer. An error means the end of the run.
func (r *run) turn(ctx context.Context, q, i int) error {
	bounded, cancel := context.WithTimeoutCause(ctx, r.cfg.Patience, fmt.Errorf("it had not ended after %v", r.cfg.Patience))
	defer cancel()
	row := &r.rows[q]
	a, e, err := r.execute(bounded, i, r.queries[q])
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case bounded.Err() != nil:
		row.Figures[i].Error = context.Cause(bounded).Error()
	case err != nil:
		row.Figures[i].Error = err.Error()
	case row.answer == nil:
		row.answer, row.Rows = a, len(a.rows)
	default:
		row.Difference = difference(row.answer, a, r.servers[atMariaDB].Name, fmt.Sprintf("%s, execution %d", r.servers[i].Name, len(row.Figures[i].executions)+1))
	}
	row.Figures[i].executions = append(row.Figures[i].executions, e)
	return nil
}

// An execution has the measurements of an execution.
type execution struct{ processor, latency time.Duration }

// execute executes a query at server i on a new connection.
func (r *run) execute(ctx context.Context, i int, text string) (a *answer, e execution, err error) {
	conn, err := r.db[i].Conn(ctx)
	if err != nil {
		return nil, e, err
	}
	defer func() { err = cmp.Or(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, "USE "+database); err != nil {
		return nil, e, err
	}
	before, err := r.servers[i].Processor()
	if err != nil {
		return nil, e, err
	}
	begin := time.Now()
	rows, err := conn.QueryContext(ctx, text)
	if err != nil {
		return nil, e, err
	}
	if a, err = readAnswer(rows); err != nil {
		return nil, e, err
	}
	e.latency = time.Since(begin)
	after, err := r.servers[i].Processor()
	e.processor = after - before
	return a, e, err
}
