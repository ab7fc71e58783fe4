package shapes

import (
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
	Servers     [2]string `json:"servers"`
	Versions    [2]string `json:"versions"`
	Settings    [2]string `json:"settings"`
	Rounds      int       `json:"rounds"`
	TurnSeconds float64   `json:"turnSeconds"`
	Modes       []Mode    `json:"modes"`
	Rows        []Row     `json:"rows"`
	// Tables are the tables whose rows differed after the answers had been compared.
	Tables    []string  `json:"tables,omitempty"`
	Summaries []Summary `json:"summaries"` // one for each mode
}

// A Row has the measurements of a shape in one mode.
type Row struct {
	Group   string    `json:"group"`
	Shape   string    `json:"shape"`
	Mode    Mode      `json:"mode"`
	Figures [2]Figure `json:"figures"`
	// Ratio is MariaDB's processor time divided by farmsql's: above 1 farmsql is faster. It is
	// 0 if the shape was not measured. Lowest and Highest are the extreme ratios of the rounds.
	Ratio   float64 `json:"ratio"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// Latency is MariaDB's latency divided by farmsql's.
	Latency float64 `json:"latency"`
	// Difference says how the answers differ; empty if they are the same.
	Difference string `json:"difference,omitempty"`

	shape *Shape
}

// A Figure has the measurements of a shape at one server: medians of the rounds, in microseconds per execution.
type Figure struct {
	Processor  float64 `json:"processor"`
	Latency    float64 `json:"latency"` // of the median executions of the rounds
	Executions int     `json:"executions"`
	Error      string  `json:"error,omitempty"`

	processors, latencies []float64 // by round
}

// A Summary summarizes all measured shapes in one mode.
type Summary struct {
	Mode     Mode `json:"mode"`
	Measured int  `json:"measured"`
	Wrong    int  `json:"wrong"`  // answers differ
	Failed   int  `json:"failed"` // at one of the servers
	// Mean is the geometric mean of the ratios, Latency the geometric mean of the ratios of latencies.
	Mean    float64 `json:"mean"`
	Latency float64 `json:"latency"`
	AtPar   int     `json:"atPar"` // ratios of at least 1
	// These count the shapes whose ratio is under 0.8, under 0.5 and under 0.05.
	Under08  int `json:"under0.8"`
	Under05  int `json:"under0.5"`
	Under005 int `json:"under0.05"`
}

// add adds a turn.
func (f *Figure) add(t *turn) {
	if t.executions == 0 {
		return
	}
	f.Executions += t.executions
	f.processors = append(f.processors, microseconds(t.processor)/float64(t.executions))
	f.latencies = append(f.latencies, microseconds(median(t.latencies)))
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

func (r *Row) hasFailed() bool { return r.Figures[0].Error != "" || r.Figures[1].Error != "" }

// trouble describes why the shape was not measured: a difference or a failure; empty if there is
// neither.
func (r *Row) trouble(names [2]string) string {
	var parts []string
	for i, f := range r.Figures {
		if f.Error != "" {
			parts = append(parts, names[i]+" fails: "+f.Error)
		}
	}
	if r.Difference != "" {
		parts = append(parts, "WRONG, "+r.Difference)
	}
	return strings.Join(parts, "; ")
}

// summarize computes the figures of a shape from its rounds. Ratio stays 0 if the shape was not measured
// at both servers.
func (r *Row) summarize() {
	if r.hasFailed() || r.Difference != "" {
		return
	}
	for i := range r.Figures {
		f := &r.Figures[i]
		if len(f.processors) == 0 {
			return
		}
		f.Processor, f.Latency = median(f.processors), median(f.latencies)
	}
	farmsql, other := &r.Figures[0], &r.Figures[1]
	if farmsql.Processor <= 0 || other.Processor <= 0 || farmsql.Latency <= 0 {
		return
	}
	var ratios []float64
	for i := range min(len(farmsql.processors), len(other.processors)) {
		ratios = append(ratios, other.processors[i]/farmsql.processors[i])
	}
	r.Ratio, r.Lowest, r.Highest = other.Processor/farmsql.Processor, slices.Min(ratios), slices.Max(ratios)
	r.Latency = other.Latency / farmsql.Latency
}

// summarize computes the summaries.
func (res *Result) summarize() {
	res.Summaries = nil
	for _, m := range res.Modes {
		res.Summaries = append(res.Summaries, Summarize(m, res.Of(m, "")))
	}
}

// Of returns the rows of a mode and a group, or of all groups ("").
func (res *Result) Of(m Mode, group string) (rows []Row) {
	for _, r := range res.Rows {
		if r.Mode == m && (group == "" || r.Group == group) {
			rows = append(rows, r)
		}
	}
	return rows
}

// Groups returns the groups in the order of the shapes.
func (res *Result) Groups() (groups []string) {
	for _, r := range res.Rows {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

// Summarize summarizes rows of one mode.
func Summarize(m Mode, rows []Row) Summary {
	s := Summary{Mode: m}
	var ratios, latencies []float64
	for _, r := range rows {
		switch {
		case r.hasFailed():
			s.Failed++
		case r.Difference != "":
			s.Wrong++
		case r.Ratio > 0:
			s.count(r.Ratio)
			ratios, latencies = append(ratios, r.Ratio), append(latencies, r.Latency)
		}
	}
	s.Mean, s.Latency = geometricMean(ratios), geometricMean(latencies)
	return s
}

func (s *Summary) count(ratio float64) {
	s.Measured++
	for n, isCounted := range map[*int]bool{&s.AtPar: ratio >= 1, &s.Under08: ratio < 0.8, &s.Under05: ratio < 0.5, &s.Under005: ratio < 0.05} {
		if isCounted {
			*n++
		}
	}
}

// geometricMean returns the geometric mean of positive values; 0 if there are none.
func geometricMean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	var sum float64
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// conditions records the conditions of the measured rounds. taken is the processor time of both servers.
func (res *Result) conditions(watch *bench.Watch, taken time.Duration, cfg Config) {
	res.Conditions = watch.Conditions()
	c := &res.Conditions
	if c.Others >= 0 { // until now Others includes the servers
		c.Others = max(0, c.Others-taken.Seconds()/time.Since(c.Began).Seconds())
	}
	c.Workload, c.API, c.Threads, c.Seed = "statement shapes", bench.SQL, 1, cfg.Seed
	c.Scale = bench.Scale{N: int(cfg.Rows), Unit: "rows in each of the largest tables"}
}

// WriteJSON writes the result.
func (res *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(res)
}

// Ratio returns a ratio for people, with more decimals if it is small; 0 is "-".
func Ratio(r float64) string {
	switch {
	case r == 0:
		return "-"
	case r < 0.00095:
		return fmt.Sprintf("%.5f", r)
	case r < 0.0095:
		return fmt.Sprintf("%.4f", r)
	case r < 0.995:
		return fmt.Sprintf("%.3f", r)
	}
	return fmt.Sprintf("%.2f", r)
}

// header has the column names of the table of shapes.
var header = []string{"shape", "mode", "MariaDB, µs", "farmsql, µs", "ratio", "lowest to highest", "latency: MariaDB, µs", "farmsql, µs", "ratio"}

// cells returns the columns of header or, for a shape with trouble, two of them and the trouble.
func (r *Row) cells(names [2]string) []string {
	if t := r.trouble(names); t != "" {
		return []string{r.Shape, string(r.Mode), t}
	}
	f := func(us float64) string { return fmt.Sprintf("%.4g", us) }
	if r.Figures[0].Processor >= 1e4 {
		f = func(us float64) string { return fmt.Sprintf("%.0f", us) }
	}
	return []string{
		r.Shape, string(r.Mode), f(r.Figures[1].Processor), f(r.Figures[0].Processor), Ratio(r.Ratio), Ratio(r.Lowest) + " to " + Ratio(r.Highest),
		f(r.Figures[1].Latency), f(r.Figures[0].Latency), Ratio(r.Latency),
	}
}

// Print writes the result for people: a table for each group, and the summaries.
func (res *Result) Print(w io.Writer) error {
	var errs []error
	for _, group := range res.Groups() {
		t := newTable(header, 2)
		for _, r := range res.Rows {
			if r.Group == group {
				t.AppendRow(rowOf(r.cells(res.Servers)))
			}
		}
		_, err := fmt.Fprintf(w, "%s\n%s\n", group, t.Render())
		errs = append(errs, err)
	}
	s := newTable([]string{"all", "shapes", "geometric mean", "of latencies", "at least 1", "under 0.8", "under 0.5", "under 0.05", "wrong", "failed"}, 1)
	for _, m := range res.Summaries {
		s.AppendRow(pretty.Row{m.Mode, m.Measured, Ratio(m.Mean), Ratio(m.Latency), m.AtPar, m.Under08, m.Under05, m.Under005, m.Wrong, m.Failed})
	}
	_, err := fmt.Fprintf(w, "%s\n%s\n", s.Render(), res.Describe())
	return errors.Join(append(errs, err)...)
}

// newTable returns a table whose first columns are text, and the others figures.
func newTable(header []string, textColumns int) pretty.Writer {
	t := pretty.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(rowOf(header))
	var columns []pretty.ColumnConfig
	for i := textColumns; i < len(header); i++ {
		columns = append(columns, pretty.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

func rowOf(cells []string) (row pretty.Row) {
	for _, c := range cells {
		row = append(row, c)
	}
	return row
}

// WriteMarkdown writes the tables of all shapes in Markdown.
func (res *Result) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for _, group := range res.Groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| %s |\n|---|---%s|\n", group, strings.Join(header, " | "), strings.Repeat("|---:", len(header)-2))
		for _, r := range res.Rows {
			if r.Group == group {
				cells := r.cells(res.Servers)
				for i := range cells {
					cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
				}
				fmt.Fprintf(&b, "| %s%s |\n", strings.Join(cells, " | "), strings.Repeat(" |", len(header)-len(cells)))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Describe returns the conditions of the figures.
func (res *Result) Describe() string {
	c := &res.Conditions
	others := "how busy the computer was with other things is not known"
	if c.Others >= 0 {
		others = fmt.Sprintf("other processes kept %.1f of them busy", c.Others)
	}
	return fmt.Sprintf(`ratio: MariaDB's processor time divided by farmsql's, above 1 farmsql is ahead; processor time is the server's, µs an execution
%d rounds in turns of %g s, the median of them is shown; one connection; data: %d %s; durability: %s
%s %s: %s
%s %s: %s
seed %d; commit %s, %s
%s, %d processors, %.0f GiB, %s, %s; %s`,
		res.Rounds, res.TurnSeconds, c.Scale.N, c.Scale.Unit, c.Durability,
		res.Servers[0], res.Versions[0], res.Settings[0], res.Servers[1], res.Versions[1], res.Settings[1],
		c.Seed, c.Commit, c.Began.UTC().Format("2006-01-02 15:04 UTC"),
		c.CPU, c.Processors, float64(c.MemoryBytes)/(1<<30), c.Kernel, c.Go, others)
}
