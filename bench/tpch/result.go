package tpch

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	pretty "github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/farmsql/farmsql/bench"
)

// A Result is what Measure measures.
type Result struct {
	Conditions bench.Conditions `json:"conditions"`
	// Servers, Versions and Settings describe farmsql and MariaDB. In all pairs here farmsql comes first.
	Servers  [2]string `json:"servers"`
	Versions [2]string `json:"versions"`
	Settings [2]string `json:"settings"`
	Scale    float64   `json:"scale"`
	Rounds   int       `json:"rounds"`
	Rows     []Row     `json:"rows"`
}

// A Row has the measurements of a query.
type Row struct {
	Query   int       `json:"query"`
	Rows    int       `json:"rows"` // of its result
	Figures [2]Figure `json:"figures"`
	// Ratio is MariaDB's processor time divided by farmsql's: above 1 farmsql is faster. Lowest and Highest are the
	// extreme ratios of the rounds, First is the ratio of the first. They are 0 if the query was not measured.
	Ratio   float64 `json:"ratio"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	First   float64 `json:"first"`
	// Latency is MariaDB's latency divided by farmsql's.
	Latency float64 `json:"latency"`
	// Difference says how the results differ; empty if they are the same.
	Difference string `json:"difference,omitempty"`

	answer *answer // to compare with
}

// A Figure has the measurements of a query at one server, in milliseconds: of the first execution, and the median of the others.
type Figure struct {
	FirstProcessor float64 `json:"firstProcessor"`
	FirstLatency   float64 `json:"firstLatency"`
	Processor      float64 `json:"processor"`
	Latency        float64 `json:"latency"`
	Error          string  `json:"error,omitempty"`

	executions []execution
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// median returns the median of values, the lower of the middle two.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}

// trouble says why a query has no figures; empty if it has.
func (r *Row) trouble(names [2]string) string {
	for i, f := range r.Figures {
		if f.Error != "" {
			return names[i] + " fails: " + f.Error
		}
	}
	if r.Difference != "" {
		return "WRONG, " + r.Difference
	}
	return ""
}

// summarize computes the figures of a query that was measured in all rounds.
func (r *Row) summarize() {
	if r.isTroubled() {
		return
	}
	for i := range r.Figures {
		f := &r.Figures[i]
		var processors, latencies []float64
		for _, e := range f.executions[1:] {
			processors, latencies = append(processors, milliseconds(e.processor)), append(latencies, milliseconds(e.latency))
		}
		f.FirstProcessor, f.FirstLatency = milliseconds(f.executions[0].processor), milliseconds(f.executions[0].latency)
		f.Processor, f.Latency = median(processors), median(latencies)
	}
	own, other := &r.Figures[atFarmsql], &r.Figures[atMariaDB]
	var ratios []float64
	for i, e := range own.executions[1:] {
		ratios = append(ratios, quotient(milliseconds(other.executions[i+1].processor), milliseconds(e.processor)))
	}
	r.Ratio, r.Lowest, r.Highest = quotient(other.Processor, own.Processor), slices.Min(ratios), slices.Max(ratios)
	r.First, r.Latency = quotient(other.FirstProcessor, own.FirstProcessor), quotient(other.Latency, own.Latency)
}

// isTroubled reports whether a query has no figures.
func (r *Row) isTroubled() bool { return r.trouble([2]string{}) != "" }

// quotient returns a / b, for times below what clocks can tell as if they were a microsecond.
func quotient(a, b float64) float64 { return max(a, 1e-3) / max(b, 1e-3) }

// conditions records the conditions of the rounds.
func (res *Result) conditions(watch *bench.Watch, cfg Config) {
	res.Scale, res.Conditions = cfg.Scale, watch.Conditions()
	c := &res.Conditions
	if c.Others >= 0 { // until now Others includes the servers
		var taken float64
		for _, r := range res.Rows {
			for _, f := range r.Figures {
				for _, e := range f.executions {
					taken += e.processor.Seconds()
				}
			}
		}
		c.Others = max(0, c.Others-taken/time.Since(c.Began).Seconds())
	}
	c.Workload, c.API, c.Threads, c.Seed = "TPC-H", bench.SQL, 1, cfg.Seed
	c.Scale = bench.Scale{N: newGenerator(cfg.Scale, 0).orders, Unit: "orders"}
}

// Mean returns the geometric mean of the ratios; 0 if nothing was measured.
func (res *Result) Mean() float64 {
	sum, n := 0.0, 0
	for _, r := range res.Rows {
		if r.Ratio > 0 {
			sum, n = sum+math.Log(r.Ratio), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}

// slow is the ratio below which a query is slow: it takes three times as long as at MariaDB.
const slow = 1.0 / 3

// Slow returns the numbers of the queries that are slow beyond their first execution.
func (res *Result) Slow() (all []int) {
	for _, r := range res.Rows {
		if r.Ratio > 0 && r.Ratio < slow {
			all = append(all, r.Query)
		}
	}
	return all
}

// ErrDiffers means that the servers answer differently.
var ErrDiffers = errors.New("bench/tpch: the servers answer differently")

// Wrong returns an error that names all queries that fail or whose results differ, and nil if there are none.
func (res *Result) Wrong() error {
	var wrong []string
	for i := range res.Rows {
		if t := res.Rows[i].trouble(res.Servers); t != "" {
			wrong = append(wrong, fmt.Sprintf("Q%d: %s", res.Rows[i].Query, t))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w, or a query fails: %d:\n%s", ErrDiffers, len(wrong), strings.Join(wrong, "\n"))
}

// WriteJSON writes the result.
func (res *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(res)
}

// Header has the column names of the table of queries.
func (res *Result) Header() []string {
	a, b := res.Servers[atMariaDB], res.Servers[atFarmsql]
	return []string{"query", "rows", a + ", ms", b + ", ms", "ratio", "lowest to highest", "latency: " + a + ", ms", b + ", ms", "ratio", "first: " + a + ", ms", b + ", ms", "ratio"}
}

// Cells returns the columns of Header for a query or, if it has no figures, its number and the reason.
func (res *Result) Cells(r *Row) []string {
	name := fmt.Sprintf("Q%d", r.Query)
	if t := r.trouble(res.Servers); t != "" {
		return []string{name, t}
	}
	own, other := &r.Figures[atFarmsql], &r.Figures[atMariaDB]
	return []string{
		name, fmt.Sprint(r.Rows), number(other.Processor), number(own.Processor), number(r.Ratio), number(r.Lowest) + " to " + number(r.Highest),
		number(other.Latency), number(own.Latency), number(r.Latency), number(other.FirstProcessor), number(own.FirstProcessor), number(r.First),
	}
}

// number returns a number with three digits, or all before the point.
func number(f float64) string {
	digits := 0
	for edge := 100.0; f < edge && digits < 3; edge /= 10 {
		digits++
	}
	return fmt.Sprintf("%.*f", digits, f)
}

// Print writes the result for people.
func (res *Result) Print(w io.Writer) error {
	t := pretty.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(cells(res.Header()))
	for i := range res.Rows {
		t.AppendRow(cells(res.Cells(&res.Rows[i])))
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", t.Render(), res.Describe())
	return err
}

func cells(all []string) (row pretty.Row) {
	for _, c := range all {
		row = append(row, c)
	}
	return row
}

// Describe returns what the figures mean, and their conditions.
func (res *Result) Describe() string {
	c := &res.Conditions
	others := "how busy the computer was with other things is not known"
	if c.Others >= 0 {
		others = fmt.Sprintf("other processes kept %.1f of them busy", c.Others)
	}
	return fmt.Sprintf(`ratio: %s's time divided by %s's, above 1 the latter is ahead; first of the servers' processor times, geometric mean %s
slower than a third: %s
scale %g, %d rounds, the first apart, the median of the others is shown; a connection for each execution; durability: %s
%s %s: %s
%s %s: %s
seed %d; commit %s, %s
%s, %d processors, %.0f GiB, %s, %s; %s`,
		res.Servers[atMariaDB], res.Servers[atFarmsql], number(res.Mean()), cmp.Or(strings.Trim(fmt.Sprint(res.Slow()), "[]"), "none"), res.Scale, res.Rounds, c.Durability,
		res.Servers[0], res.Versions[0], res.Settings[0], res.Servers[1], res.Versions[1], res.Settings[1],
		c.Seed, c.Commit, c.Began.UTC().Format("2006-01-02 15:04 UTC"),
		c.CPU, c.Processors, float64(c.MemoryBytes)/(1<<30), c.Kernel, c.Go, others)
}
