package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/bench/tpch"
)

// tpch writes a row for each query of TPC-H.
func (p *page) tpch() error {
	found, err := objectsOf[tpch.Result](p.results, queried)
	if err != nil || len(found) == 0 {
		return err
	}
	res := found[0]
	c := &res.Conditions
	p.line("%s %s (%s) beside %s %s (`%s`), which are processes of one computer; scale %g, %s; 1 run of %d executions of each query at each server in turns, of which the first is shown apart, and the median of the others; memory of both: %s.\n",
		res.Servers[0], res.Versions[0], res.Settings[0], res.Servers[1], res.Versions[1], res.Settings[1], res.Scale, dataOf(c), res.Rounds, memoryOf(c))
	header := res.Header()
	var rows [][]string
	for i := range res.Rows {
		cells := res.Cells(&res.Rows[i])
		for len(cells) < len(header) {
			cells = append(cells, "")
		}
		for at := range cells {
			cells[at] = strings.ReplaceAll(cells[at], "|", `\|`)
		}
		rows = append(rows, cells)
	}
	p.table(header, rows)
	p.line("The geometric mean of the ratios of processor times is %s. Slower than a third of %s: %s.\n", number(res.Mean()), res.Servers[1],
		cmp.Or(strings.Join(named(res.Slow()), ", "), "none"))
	return nil
}

// named returns the names of queries.
func named(queries []int) (names []string) {
	for _, n := range queries {
		names = append(names, fmt.Sprintf("Q%d", n))
	}
	return names
}
