package report

import "fmt"

// A comparison is the output of bench/compare/run.
type comparison struct {
	Systems []struct {
		Name, Version, Settings string
	}
	Works, Missing []struct {
		Name, Text string
	}
	Rows []struct {
		Work, System  string
		PerSecond     []float64
		Median, Ratio float64
		Processor     float64 `json:"cpuMicroseconds"`
	}
}

// compare writes the table of ratios to other systems.
func (p *page) compare() error {
	found, err := objectsOf[comparison](p.results, compare)
	if err != nil || len(found) == 0 {
		return err
	}
	c := found[0]
	for _, s := range c.Systems {
		p.line("- %s %s: %s", s.Name, s.Version, s.Settings)
	}
	for _, m := range c.Missing {
		p.line("- %s was not measured: %s", m.Name, m.Text)
	}
	p.line("")
	for _, w := range c.Works {
		p.line("- %s: %s", w.Name, w.Text)
	}
	p.line("")
	var rows [][]string
	work := ""
	for _, r := range c.Rows {
		name, processor := "", ""
		if r.Work != work {
			name, work = r.Work, r.Work
		}
		if r.Processor > 0 {
			processor = number(r.Processor)
		}
		f := figureOf(r.PerSecond)
		rows = append(rows, []string{name, r.System, f.short(), f.spread(), fmt.Sprint(f.n), number(r.Ratio), processor})
	}
	p.line("Data are in the list of works; what the memory of each system outlives is in the list of systems.\n")
	p.table([]string{"work", "system", "a second", "lowest to highest", "runs", "ratio to the first", "µs of processor time"}, rows)
	p.line("farmsql does %s times the transactions of TATP that SQLite does in memory. The goal is at least %d.\n", c.timesSQLite(), goalSQLite)
	return nil
}

// timesSQLite returns farmsql's ratio at the work that SQLite does, too. That is its ratio to SQLite,
// because the ratios of a work are to the system that comes first at it, and that is SQLite.
func (c *comparison) timesSQLite() string {
	work := "" // of the latest row of SQLite
	for _, r := range c.Rows {
		if r.System == "SQLite" {
			work = r.Work
		}
		if r.System == "farmsql" && r.Work == work {
			return number(r.Ratio)
		}
	}
	return "(" + notMeasured + ")"
}
