package report

import (
	"fmt"

	"github.com/farmsql/farmsql/bench/lease"
)

// lease writes the table and the plot of SOSP'15's Figure 16.
func (p *page) lease() error {
	found, err := objectsOf[lease.Result](p.results, leases)
	if err != nil || len(found) == 0 {
		return err
	}
	res := found[0]
	p.line("Three machines in one process, while %d goroutines allocate; each variant %g s, all lease times at once; %s:\n", res.Conditions.Threads, res.Seconds, originText(len(found), &res.Conditions))
	var rows [][]string
	for _, r := range res.Rows {
		row := []string{r.Variant}
		for _, n := range r.Counts {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
	}
	p.table(append([]string{"leases that ran out"}, res.Leases...), rows)
	return p.plot("leases", "false positives over lease time", res.Plot)
}
