package report

import (
	"fmt"

	"github.com/farmsql/farmsql/bench/failure"
)

// failure writes the distributions of the costs of failures, and the timelines of the median
// runs.
func (p *page) failure() error {
	if p.hasAny(experimentsOf(failures, func(v variant) experiment { return v.experiment })) {
		p.line("These are the conditions of each kind's median run, which was measured until what was to be seen had happened.\n")
	}
	var rows [][]string
	var measured []*failure.Result
	for _, v := range failures {
		found, err := objectsOf[failure.Result](p.results, v.experiment)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			rows = append(rows, []string{v.label, notMeasured, "", "", "", "", "", "", ""})
			measured = append(measured, nil)
			continue
		}
		measured = append(measured, found[0])
		label, c := v.label, &found[0].Conditions
		for _, d := range found[0].Distribution {
			row := []string{label, d.Name, fmt.Sprint(d.Runs)}
			for _, ms := range []float64{d.Minimum, d.Median, d.P90, d.Maximum} {
				f := figure{median: ms, n: d.Runs, isForeign: d.Runs == 0} // empty without runs
				row = append(row, f.short())
			}
			rows, label = append(rows, append(row, dataOf(c), memoryOf(c))), ""
		}
	}
	p.table([]string{"fails", "milliseconds from", "failures", "minimum", "median", "90 %", "maximum", "data", "memory"}, rows)
	for i, v := range failures {
		res := measured[i]
		if res == nil {
			continue
		}
		p.line("The median run, of %s; %d machines, %d replicas, leases of %g ms kept by a %s.\n",
			v.label, res.Conditions.Machines, res.Conditions.Replicas, res.LeaseMilliseconds, res.LeaseKeptBy)
		if err := p.plot(v.name, "throughput by the millisecond around the failure: "+v.label, res.Plot); err != nil {
			return err
		}
	}
	return nil
}
