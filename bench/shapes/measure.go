package shapes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// A Config says what Measure measures.
type Config struct {
	Program string        // of farmsql
	Folder  string        // the parent of the servers' data folders, which exist during the run
	Rows    int64         // of the largest tables
	Rounds  int           // turns of each shape
	Turn    time.Duration // how long a turn takes
	Modes   []Mode
	// Only selects groups and shapes, by parts of their names; all if empty.
	Only     []string
	Seed     uint64
	Progress *bench.Progress // may be nil
}

// ErrConfig means that a Config cannot be measured.
var ErrConfig = errors.New("bench/shapes: not to be measured")

// choose returns the shapes that Only selects.
func (c *Config) choose() (chosen []*Shape, err error) {
	switch {
	case c.Rows < RowsMin:
		return nil, fmt.Errorf("%w: %d rows (--rows), at least %d", ErrConfig, c.Rows, RowsMin)
	case c.Rounds < 1 || c.Turn <= 0:
		return nil, fmt.Errorf("%w: %d rounds (--rounds) of %v (--turn), both must be positive", ErrConfig, c.Rounds, c.Turn)
	case len(c.Modes) == 0:
		return nil, fmt.Errorf("%w: no mode (--modes)", ErrConfig)
	}
	for _, m := range c.Modes {
		if !slices.Contains(Modes(), m) {
			return nil, fmt.Errorf("%w: mode %q (--modes); there are %v", ErrConfig, m, Modes())
		}
	}
	all, err := parse(shapesText, c.Rows)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if len(c.Only) == 0 || slices.ContainsFunc(c.Only, func(part string) bool { return strings.Contains(s.Group+": "+s.Name, part) }) {
			chosen = append(chosen, s)
		}
	}
	for _, part := range c.Only {
		if !slices.ContainsFunc(chosen, func(s *Shape) bool { return strings.Contains(s.Group+": "+s.Name, part) }) {
			return nil, fmt.Errorf("%w: neither a group nor a shape has %q (--only) in its name", ErrConfig, part)
		}
	}
	return chosen, nil
}

// Measure starts farmsql and MariaDB, loads the same data into both, compares their answers, and measures them.
func Measure(ctx context.Context, cfg Config) (res *Result, err error) {
	if _, err := cfg.choose(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(cfg.Folder, "farmsql-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench/shapes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	mariaDB, err := StartMariaDB(ctx, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, mariaDB.Stop()) }()
	farmsql, err := StartFarmsql(ctx, cfg.Program, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, farmsql.Stop()) }()
	res, err = compareServers(ctx, cfg, [2]*Server{farmsql, mariaDB})
	if err == nil {
		res.Conditions.Durability = bench.DurabilityOf(folder)
	}
	return res, err
}

// A run is a measurement of two servers, the first of which is farmsql.
type run struct {
	cfg      Config
	servers  [2]*Server
	modes    []Mode
	sessions [2]map[Mode]*session
	source   *source
	rows     []*Row
	// patience bounds the time of a turn, and of each execution whose answers are compared.
	patience time.Duration
}

const patience = 20 * time.Second

func newRun(cfg Config, servers [2]*Server) *run {
	return &run{cfg: cfg, servers: servers, modes: cfg.Modes, source: newSource(cfg.Seed), patience: patience}
}

// compareServers loads data into two servers, compares their answers, and measures them.
func compareServers(ctx context.Context, cfg Config, servers [2]*Server) (res *Result, err error) {
	chosen, err := cfg.choose()
	if err != nil {
		return nil, err
	}
	r := newRun(cfg, servers)
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.load(ctx); err != nil {
		return nil, err
	}
	return r.measure(ctx, chosen)
}

// load loads the data at both servers, and opens the sessions.
func (r *run) load(ctx context.Context) error {
	for i, server := range r.servers {
		s, err := openSession(ctx, server, Text)
		if err != nil {
			return err
		}
		err = newData(r.cfg.Rows).load(ctx, s, r.cfg.Progress)
		if err := errors.Join(err, s.close()); err != nil {
			return err
		}
		r.sessions[i] = make(map[Mode]*session)
		for _, m := range r.modes {
			s, err := openSession(ctx, server, m)
			if err != nil {
				return err
			}
			r.sessions[i][m] = s
			if err := s.use(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *run) close() error {
	var errs []error
	for _, byMode := range r.sessions {
		for _, s := range byMode {
			errs = append(errs, s.close())
		}
	}
	return errors.Join(errs...)
}

func (r *run) names() [2]string { return [2]string{r.servers[0].Name, r.servers[1].Name} }

// measure compares and measures the shapes.
func (r *run) measure(ctx context.Context, chosen []*Shape) (*Result, error) {
	res := &Result{Rounds: r.cfg.Rounds, TurnSeconds: r.cfg.Turn.Seconds(), Modes: r.modes, Servers: r.names()}
	for i, s := range r.servers {
		version, err := s.Version(ctx)
		if err != nil {
			return nil, err
		}
		res.Versions[i], res.Settings[i] = version, s.Settings
	}
	for _, s := range chosen {
		for _, m := range r.modes {
			if m == Text || s.isPrepared() {
				r.rows = append(r.rows, &Row{Group: s.Group, Shape: s.Name, Mode: m, shape: s})
			}
		}
	}
	if err := r.compareAll(ctx, res); err != nil {
		return nil, err
	}
	watch := bench.StartWatch()
	before, err := r.processorTime()
	if err != nil {
		return nil, err
	}
	if err := r.measureAll(ctx); err != nil {
		return nil, err
	}
	after, err := r.processorTime()
	if err != nil {
		return nil, err
	}
	res.conditions(watch, after-before, r.cfg)
	for _, row := range r.rows {
		row.summarize()
		res.Rows = append(res.Rows, *row)
	}
	res.summarize()
	return res, nil
}

// processorTime returns the processor time of both servers together.
func (r *run) processorTime() (sum time.Duration, err error) {
	for _, s := range r.servers {
		t, err := s.Processor()
		if err != nil {
			return 0, err
		}
		sum += t
	}
	return sum, nil
}

// compareAll compares the servers' answers, and then their tables.
func (r *run) compareAll(ctx context.Context, res *Result) (err error) {
	stage := r.cfg.Progress.Stage("comparing answers", len(r.rows))
	for _, row := range r.rows {
		if err := r.compareShape(ctx, row); err != nil {
			return err
		}
		stage.Add(1)
	}
	stage.Done()
	res.Tables, err = r.compareTables(ctx)
	return err
}

// measureAll measures in rounds.
func (r *run) measureAll(ctx context.Context) error {
	for round := range r.cfg.Rounds {
		stage := r.cfg.Progress.Stage(fmt.Sprintf("round %d of %d", round+1, r.cfg.Rounds), len(r.rows))
		for i, row := range r.rows {
			if err := r.turns(ctx, row, round, uint64(i)); err != nil {
				return err
			}
			stage.Add(1)
		}
		stage.Done()
	}
	return nil
}

// turns gives each server a turn with a shape, whose row is row n. Both servers get the same sequence of
// parameters. It skips shapes that failed or were answered differently.
func (r *run) turns(ctx context.Context, row *Row, round int, n uint64) error {
	if row.hasFailed() || row.Difference != "" {
		return nil
	}
	order := []int{0, 1}
	if round%2 == 1 {
		order = []int{1, 0}
	}
	var sources [2]*source
	for _, i := range order {
		sources[i] = r.source.fork(mix(r.cfg.Seed + (uint64(round) << 32) + n))
		if err := r.turn(ctx, row, i, sources[i]); err != nil {
			return err
		}
	}
	for _, s := range sources {
		r.source.skip(s)
	}
	return nil
}

// Bounds of a turn.
const (
	executionsMin = 3   // the least number in a turn, even if they take longer, within run.patience
	chunkMax      = 128 // executions between two looks at the clocks
)

// turn executes a shape at server i until the turn is over. The first execution is not measured.
func (r *run) turn(ctx context.Context, row *Row, i int, parameters *source) error {
	bounded, cancel := context.WithTimeoutCause(ctx, r.patience, errPatience(r.patience))
	defer cancel()
	s := r.sessions[i][row.Mode]
	s.forget()
	err := s.prepare(bounded, row.shape)
	t := &turn{}
	if err == nil {
		err = t.chunk(bounded, s, row.shape, parameters, 1)
	}
	for size := 1; err == nil && !r.isOver(t); size = min(2*size, chunkMax) {
		err = t.chunk(bounded, s, row.shape, parameters, r.sizeOf(t, size))
	}
	switch {
	case err == nil:
	case t.executions == 0 || bounded.Err() == nil || ctx.Err() != nil:
		return r.fail(ctx, bounded, row, i, err) // an error of the server, nothing measured in time, or the end of the run
	default: // the patience has ended: the executions measured before that count
		if err := s.renew(ctx); err != nil {
			return err
		}
	}
	row.Figures[i].add(t)
	return nil
}

// isOver reports whether the turn has taken its time.
func (r *run) isOver(t *turn) bool { return t.took >= r.cfg.Turn && t.executions >= executionsMin }

// sizeOf returns the number of executions in the next chunk: at most size, and no more than are likely to fit the turn.
func (r *run) sizeOf(t *turn, size int) int {
	if t.executions == 0 {
		return 1
	}
	each := t.took/time.Duration(t.executions) + 1 // ns, not 0
	fits := int((r.cfg.Turn-t.took)/each) + 1
	return max(1, min(size, max(fits, executionsMin-t.executions)))
}

// A turn has the measurements of one turn.
type turn struct {
	isWarm     bool
	executions int
	took       time.Duration // time of the executions, without their preludes
	processor  time.Duration
	latencies  []time.Duration
}

// chunk executes a shape n times, after the preludes of all these executions. The first chunk is not
// measured.
func (t *turn) chunk(ctx context.Context, s *session, shape *Shape, parameters *source, n int) error {
	draws := make([][]draw, n)
	for i := range draws {
		draws[i] = parameters.draw(shape)
		if err := s.prelude(ctx, shape, draws[i]); err != nil {
			return err
		}
	}
	before, err := s.server.Processor()
	if err != nil {
		return err
	}
	var took time.Duration
	latencies := make([]time.Duration, 0, n)
	for _, ds := range draws {
		l, err := s.execute(ctx, shape, ds)
		if err != nil {
			return err
		}
		took += l
		latencies = append(latencies, l)
	}
	after, err := s.server.Processor()
	if err != nil {
		return err
	}
	if !t.isWarm {
		t.isWarm = true
		return nil
	}
	t.executions, t.took, t.processor = t.executions+n, t.took+took, t.processor+(after-before)
	t.latencies = append(t.latencies, latencies...)
	return nil
}

// median returns the median of values, the lower of the middle two.
func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
