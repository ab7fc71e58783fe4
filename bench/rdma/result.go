package rdma

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/farmsql/farmsql/bench"
)

// A Result has the measurements of Run.
type Result struct {
	Conditions bench.Conditions `json:"conditions"`
	Seconds    float64          `json:"seconds"` // measured time of each row
	IsSoft     bool             `json:"softRoCE,omitempty"`
	Rows       []Row            `json:"rows"`
}

// A Row is the measurement of one experiment, provider, series and x.
type Row struct {
	Experiment string  `json:"experiment"`
	Provider   string  `json:"provider"`
	Series     string  `json:"series"`
	X          int     `json:"x"`
	PerSecond  float64 `json:"perSecond"`
	Lost       uint64  `json:"lost,omitempty"` // datagrams
	// These are averages per operation; 0 if the provider does not count them.
	Calls     float64 `json:"calls"`
	Doorbells float64 `json:"doorbells"`
	Requests  float64 `json:"requests"`
	Signalled float64 `json:"signalled"`
	Inlined   float64 `json:"inlined"`
	Wakes     float64 `json:"wakes"`
}

// time measures a run of f. f returns the number of operations that it has done; none is an error.
func (r *Row) time(w *network, f func() (uint64, error)) error {
	before, began := w.counts(), time.Now()
	n, err := f()
	took := time.Since(began)
	if err != nil {
		return err
	}
	if n == 0 {
		return errSilent
	}
	c := w.counts().Sub(before)
	per := func(count uint64) float64 { return float64(count) / float64(n) }
	r.PerSecond = float64(n) / took.Seconds()
	r.Calls, r.Doorbells, r.Requests = per(c.Calls), per(c.Doorbells), per(c.Requests)
	r.Signalled, r.Inlined, r.Wakes = per(c.Signalled), per(c.Inlined), per(c.Wakes)
	return nil
}

// MicrosPerOperation is the time per operation; the latency, if operations run one at a time.
func (r *Row) MicrosPerOperation() float64 { return 1e6 / r.PerSecond }

func putWord(b []byte, n uint64) { binary.LittleEndian.PutUint64(b, n) }

// WriteJSON writes the result.
func (res *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(res)
}

// rowsOf returns the rows of an experiment.
func (res *Result) rowsOf(e *experiment) (rows []Row) {
	for _, r := range res.Rows {
		if r.Experiment == e.name {
			rows = append(rows, r)
		}
	}
	return rows
}

// rate returns the operations per second as text, with the number of lost datagrams. isSeparated
// separates the thousands.
func (r *Row) rate(isSeparated bool) string {
	rate := strconv.FormatFloat(r.PerSecond, 'f', 0, 64)
	for i := len(rate) - 3; isSeparated && i > 0; i -= 3 {
		rate = rate[:i] + "," + rate[i:]
	}
	if r.Lost > 0 {
		rate += fmt.Sprintf(" (%d lost)", r.Lost)
	}
	return rate
}

// cells returns the row's cells in the table of costs.
func (r *Row) cells() []string {
	cells := []string{r.Provider, r.Series, strconv.Itoa(r.X)}
	for _, n := range []float64{r.Calls, r.Doorbells, r.Requests, r.Signalled, r.Inlined, r.Wakes} {
		cell := ""
		if n > 0 {
			cell = strconv.FormatFloat(n, 'f', 2, 64)
		}
		cells = append(cells, cell)
	}
	return append(cells, strconv.FormatFloat(r.MicrosPerOperation(), 'g', 3, 64), r.rate(false))
}

// counted returns the rows whose provider counts work requests.
func counted(rows []Row) (those []Row) {
	for _, r := range rows {
		if r.Requests > 0 {
			those = append(those, r)
		}
	}
	return those
}

// Print writes the result for people.
func (res *Result) Print(w io.Writer) error {
	return res.write(w, func(e *experiment, rows []Row) string {
		return fmt.Sprintf("%s: %s\n%s\n\n", e.name, e.title, costs(e, rows).Render())
	})
}

// WritePage writes the tables for a page in Markdown: the rates beside each other, and the counts of work requests.
func (res *Result) WritePage(w io.Writer) error {
	return res.write(w, func(e *experiment, rows []Row) string {
		s := fmt.Sprintf("### %s: %s\n\nOperations per second:\n\n%s\n\n", e.name, e.title, rates(e, rows).RenderMarkdown())
		if those := counted(rows); len(those) > 0 {
			s += fmt.Sprintf("For each operation:\n\n%s\n\n", costs(e, those).RenderMarkdown())
		}
		return s
	})
}

// write writes the text that show returns for each experiment, and then the conditions.
func (res *Result) write(w io.Writer, show func(e *experiment, rows []Row) string) error {
	var b strings.Builder
	for i := range experiments {
		if rows := res.rowsOf(&experiments[i]); len(rows) > 0 {
			b.WriteString(show(&experiments[i], rows))
		}
	}
	_, err := fmt.Fprintf(w, "%s%s\n", b.String(), res.describe())
	return err
}

func newTable(header []string) table.Writer {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(cellsOf(header))
	return t
}

func cellsOf(cells []string) (row table.Row) {
	for _, c := range cells {
		row = append(row, c)
	}
	return row
}

// costs returns a table with a line for each row.
func costs(e *experiment, rows []Row) table.Writer {
	t := newTable([]string{"provider", "operation", e.x, "calls", "doorbells", "requests", "signalled", "inlined", "wake-ups", "us each", "per second"})
	for i := range rows {
		t.AppendRow(cellsOf(rows[i].cells()))
	}
	return t
}

// rates returns a table with a line for each x, and a column for each provider and series.
func rates(e *experiment, rows []Row) table.Writer {
	header, lines := []string{e.x}, map[int]map[string]string{}
	for i := range rows {
		r := &rows[i]
		name := r.Provider + " " + r.Series
		if !slices.Contains(header, name) {
			header = append(header, name)
		}
		if lines[r.X] == nil {
			lines[r.X] = map[string]string{}
		}
		lines[r.X][name] = r.rate(true)
	}
	t := newTable(header)
	for _, x := range slices.Sorted(maps.Keys(lines)) {
		cells := []string{strconv.Itoa(x)}
		for _, name := range header[1:] {
			cells = append(cells, lines[x][name])
		}
		t.AppendRow(cellsOf(cells))
	}
	return t
}

// describe returns the conditions of the figures.
func (res *Result) describe() string {
	c := &res.Conditions
	soft := ""
	if res.IsSoft {
		soft = " verbs is soft-RoCE: its counts are those of a card, its times say nothing of one."
	}
	return fmt.Sprintf("1 run of %g s for each row, all machines in one process; commit %s, %s; %s, %d processors, %s, %s.%s",
		res.Seconds, c.Commit, c.Began.UTC().Format("2006-01-02 15:04 UTC"), c.CPU, c.Processors, c.Kernel, c.Go, soft)
}
