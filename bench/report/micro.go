package report

import (
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/micro/table"
)

// microGoals are the greatest numbers of dependent misses that operations should
// take.
var microGoals = map[string]string{
	"ObjectRead/64/far":  "1",
	"Commit/1/f=0/far":   "6",
	"Commit/1/f=2/far":   "25",
	"Hash/far/lookup":    "1.5",
	"BTree/far/lookup":   "5",
	"ObjectRead/128/far": "1",
	"ObjectRead/256/far": "1",
}

// microRows returns the measurements of single operations, if there are any.
func (p *page) microRows() ([]*table.Row, error) {
	found, err := objectsOf[output](p.results, micro)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	rows, err := table.Read(strings.NewReader(found[0].Text))
	if err != nil {
		return nil, fmt.Errorf("report: micro: %w", err)
	}
	return rows, nil
}

func nanoseconds(rows []*table.Row, name string) figure {
	for _, r := range rows {
		if r.Name == name {
			return figureOf(r.Units["ns/op"])
		}
	}
	return figure{}
}

// micro writes the table of single operations.
func (p *page) micro() error {
	found, err := p.microRows()
	if err != nil {
		return err
	}
	var rows [][]string
	for _, r := range found {
		cell := func(unit string) string {
			f := figureOf(r.Units[unit])
			f.isForeign = f.n == 0 // the benchmark does not report the unit
			return f.short()
		}
		ns := figureOf(r.Units["ns/op"])
		rows = append(rows, []string{r.Name, ns.short(), ns.spread(), fmt.Sprint(ns.n), cell("misses"), microGoals[r.Name], cell("allocs/op")})
	}
	if len(rows) > 0 {
		p.line("Data are in the names: far is more than the caches hold. All of it is %s.\n", bench.Volatile)
		p.table([]string{"operation", "ns", "lowest to highest", "runs", "dependent misses", "goal, at most", "allocations"}, rows)
	}
	return nil
}
