package shapes

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
)

// tiny is a run that only shows that all works.
var tiny = Config{Rows: RowsMin, Rounds: 1, Turn: time.Microsecond, Modes: Modes(), Seed: 1}

// serve starts farmsql in this process, under a name.
func serve(t *testing.T, name string) *Server {
	t.Helper()
	db, err := farmsql.Open(farmsql.Config{Volatile: true})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- db.Serve(context.WithoutCancel(t.Context()), l) }()
	t.Cleanup(func() {
		if err := errors.Join(db.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
	return &Server{Name: name, Address: l.Addr().String(), Process: os.Getpid()}
}

// loaded returns a run of two servers with the same rows.
func loaded(t *testing.T) *run {
	t.Helper()
	r := newRun(tiny, [2]*Server{serve(t, "farmsql"), serve(t, "other")})
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// at executes statements at one of the servers.
func (r *run) at(t *testing.T, i int, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if err := r.sessions[i][Text].exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
}

// measureText measures shapes.
func (r *run) measureText(t *testing.T, text string) *Result {
	t.Helper()
	chosen, err := parse(text, tiny.Rows)
	if err != nil {
		t.Fatal(err)
	}
	r.rows = nil
	res, err := r.measure(t.Context(), chosen)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// Two servers that are the same answer the same, and all shapes are measured.
func TestSameServers(t *testing.T) {
	if testing.Short() {
		t.Skip("executes all shapes")
	}
	cfg := tiny
	res, err := compareServers(t.Context(), cfg, [2]*Server{serve(t, "farmsql"), serve(t, "other")})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Wrong(); err != nil {
		t.Error(err)
	}
	for _, r := range res.Rows {
		if r.Ratio <= 0 || r.Latency <= 0 || r.Figures[0].Executions < executionsMin || r.Figures[1].Executions < executionsMin {
			t.Errorf("%s (%s): %+v", r.Shape, r.Mode, r)
		}
	}
	if len(res.Summaries) != 2 || res.Summaries[0].Measured <= res.Summaries[1].Measured {
		t.Errorf("%+v: some shapes cannot be prepared", res.Summaries)
	}
}

// A difference in one row is found by the shapes that read it, and by the comparison of tables.
func TestDifferenceIsFound(t *testing.T) {
	r := loaded(t)
	r.at(t, 1, "UPDATE product SET stock = 7 WHERE id = 3", "DELETE FROM rate WHERE amount = 0.01")
	res := r.measureText(t, `== g
-- row
SELECT id, stock FROM product WHERE id BETWEEN 2 AND 4
-- order
SELECT id FROM product ORDER BY stock, id LIMIT 2
-- count
compare counts
SELECT amount FROM rate WHERE amount < 1
-- same count
compare counts
SELECT stock FROM product WHERE id = 3
-- nothing
compare nothing
SELECT stock FROM product WHERE id = 3
-- affected
UPDATE product SET stock = 7 WHERE id = 3
-- others
SELECT id, stock FROM product WHERE id = 5
`)
	want := map[string]string{
		"row": `answer 2 of 3 (farmsql) and 3 (other): "3 | 1000000" and "3 | 7"`, "order": `"1" and "3"`, "count": `"99 rows" and "98 rows"`,
		"same count": "", "nothing": "", "affected": `"1 rows, insert id 0" and "0 rows, insert id 0"`, "others": "",
	}
	for _, row := range res.Rows {
		if row.Shape == "affected" && row.Mode == Prepared {
			continue // the text has made them the same
		}
		if w := want[row.Shape]; (w == "") != (row.Difference == "") || !strings.Contains(row.Difference, w) {
			t.Errorf("%s (%s): %q, want %q", row.Shape, row.Mode, row.Difference, w)
		}
		if isMeasured := row.Ratio > 0; isMeasured != (row.Difference == "") {
			t.Errorf("%s (%s): difference %q, ratio %g", row.Shape, row.Mode, row.Difference, row.Ratio)
		}
	}
	if !slices.Equal(res.Tables, []string{"rate"}) {
		t.Errorf("%v differ, want rate: the row of product is the same again", res.Tables)
	}
}

// A shape that fails is reported; the others are measured.
func TestErrorIsReported(t *testing.T) {
	r := loaded(t)
	r.at(t, 0, "RENAME TABLE product TO goods")
	r.at(t, 1, "CREATE VIEW goods AS SELECT * FROM product")
	chosen, err := parse("== g\n-- failing\nSELECT stock FROM product WHERE id = 1\n-- before\nbefore SELECT * FROM product\nSELECT 2\n-- fine\nSELECT 1\n", tiny.Rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range chosen {
		for _, m := range Modes() {
			r.rows = append(r.rows, &Row{Group: s.Group, Shape: s.Name, Mode: m, shape: s})
		}
	}
	for _, row := range r.rows {
		if err := r.compareShape(t.Context(), row); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.measureAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.rows {
		row.summarize()
		if isFine := row.Shape == "fine"; isFine != (row.Ratio > 0) || isFine == strings.Contains(row.Figures[0].Error, "1146") || row.Figures[1].Error != "" {
			t.Errorf("%s (%s): %+v", row.Shape, row.Mode, row)
		}
	}
}

// A statement that takes too long is killed, and an error; one that becomes too slow in a turn has what was
// measured until then.
func TestPatience(t *testing.T) {
	r := loaded(t)
	r.patience = time.Second
	res := r.measureText(t, "== g\n-- endless\nSELECT SLEEP(100)\n-- after it\nSELECT 1\n")
	for _, row := range res.Rows {
		if isEndless := row.Shape == "endless"; isEndless != (row.Figures[0].Error == "it had not ended after 1s") || isEndless == (row.Ratio > 0) {
			t.Errorf("%s (%s): %+v", row.Shape, row.Mode, row)
		}
	}
	r.cfg.Turn = time.Hour
	row := &Row{Mode: Text, shape: mustParse(t, "== g\n-- often\nSELECT SLEEP(0.02)\n")}
	if err := r.turns(t.Context(), row, 1, 0); err != nil {
		t.Fatal(err)
	}
	if row.hasFailed() || row.Figures[0].Executions == 0 || row.Figures[1].Executions == 0 {
		t.Errorf("%+v", row)
	}
}

func mustParse(t *testing.T, text string) *Shape {
	t.Helper()
	all, err := parse(text, tiny.Rows)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// A turn has as many executions as there is time for, and at least some.
func TestTurnAdapts(t *testing.T) {
	r := newRun(Config{Turn: 50 * time.Millisecond}, [2]*Server{})
	for _, c := range []struct {
		executions int
		took       time.Duration
		size       int // that would be next, of what is asked for
		asked      int
		isOver     bool
	}{
		{0, 0, 1, 64, false},
		{1, 10 * time.Microsecond, 2, 2, false},
		{100, 10 * time.Millisecond, 64, 64, false},
		{100, 40 * time.Millisecond, 25, 64, false},
		{100, 50 * time.Millisecond, 1, 64, true},
		{1, time.Hour, 2, 64, false},
		{2, time.Hour, 1, 64, false},
		{executionsMin, time.Hour, 1, 64, true},
	} {
		at := &turn{executions: c.executions, took: c.took}
		if size := r.sizeOf(at, c.asked); r.isOver(at) != c.isOver || size != c.size && !c.isOver {
			t.Errorf("after %d executions in %v: over %v, next %d of %d; want %v, %d", c.executions, c.took, r.isOver(at), size, c.asked, c.isOver, c.size)
		}
	}
}

func TestChoose(t *testing.T) {
	for says, change := range map[string]func(*Config){
		"--rows":                  func(c *Config) { c.Rows = RowsMin - 1 },
		"--rounds":                func(c *Config) { c.Rounds = 0 },
		"--turn":                  func(c *Config) { c.Turn = 0 },
		"no mode (--modes)":       func(c *Config) { c.Modes = nil },
		`mode "spoken" (--modes)`: func(c *Config) { c.Modes = []Mode{"spoken"} },
		`neither a group nor a shape has "nowhere" (--only)`: func(c *Config) { c.Only = []string{"lookup", "nowhere"} },
	} {
		cfg := tiny
		change(&cfg)
		if _, err := Measure(t.Context(), cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	cfg := tiny
	cfg.Only = []string{"gorm: ", "SELECT 1"}
	chosen, err := cfg.choose()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range chosen {
		if s.Group != "gorm" && !strings.Contains(s.Name, "SELECT 1") {
			t.Errorf("%s: %s", s.Group, s.Name)
		}
	}
}

// Servers that do not start say why.
func TestServerFails(t *testing.T) {
	folder := t.TempDir()
	script := filepath.Join(folder, "farmsql.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho first\necho no room >&2\nexit 3\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := StartFarmsql(t.Context(), script, folder); err == nil || !strings.Contains(err.Error(), "farmsql ended while it started (exit status 3): no room") {
		t.Errorf("error %v", err)
	}
	if _, err := StartFarmsql(t.Context(), filepath.Join(folder, "nothing"), folder); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec sleep 100\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("the test waits no longer"))
	defer cancel()
	if _, err := StartFarmsql(ctx, script, folder); err == nil || !strings.Contains(err.Error(), "the test waits no longer") {
		t.Errorf("error %v", err)
	}
	if _, err := find("no-such-mariadbd"); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "mariadb-server-core") {
		t.Errorf("error %v", err)
	}
	cfg := tiny
	cfg.Folder = filepath.Join(folder, "nowhere")
	if _, err := Measure(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("error %v", err)
	}
}

// A process's clock counts what it works, not how long it sleeps.
func TestProcessor(t *testing.T) {
	s := &Server{Name: "this", Process: os.Getpid()}
	at := func() time.Duration {
		d, err := s.Processor()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	begin := at()
	for at()-begin < 20*time.Millisecond { // the loop ends only if the clock counts this work
	}
	s.Process = 1 << 22 // above the largest number of a process
	if _, err := s.Processor(); err == nil || !strings.Contains(err.Error(), "process 4194304") {
		t.Errorf("error %v", err)
	}
}
