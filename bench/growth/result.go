package growth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
)

// A Result has the measurements of a run. Times are in seconds since the clients began,
// throughput in transactions per second.
type Result struct {
	Conditions bench.Conditions `json:"conditions"` // those of the largest cluster
	First      int              `json:"first"`      // how many machines there were at first
	Machines   int              `json:"machines"`   // how many when the last had joined
	Back       int              `json:"back"`       // how many when the last had left
	Resized    int              `json:"resized"`    // how many replicas regions got once the last machine had joined; 0 if none
	Clients    int              `json:"clients"`    // of all machines together
	RegionSize int64            `json:"regionBytes"`
	Lease      float64          `json:"leaseMilliseconds"`
	Pace       farmsql.Pace     `json:"pace"`
	Between    float64          `json:"betweenSeconds"` // the undisturbed time before and after each step
	Measured   float64          `json:"measured"`       // when the warm-up ended

	Steps    []Step     `json:"steps"`
	Evenness []Evenness `json:"evenness"`
	// Transactions is the number of transactions that ended after the warm-up. PerSecond has the number
	// for each second since the clients began.
	Transactions int      `json:"transactions"`
	PerSecond    []uint32 `json:"perSecond"`
	// Samples has the distribution of the replicas in each second.
	Samples []Sample `json:"samples"`
	// Errors counts the errors after which a client had to connect anew. Aborts counts the conflicts
	// after which a client repeated its transaction. Both count by reason.
	Errors map[string]int    `json:"errors"`
	Aborts map[string]uint64 `json:"aborts"`
	// LongestWait is the longest time in which one client ended no transaction; WaitBegan is when it began.
	LongestWait float64 `json:"longestWaitSeconds"`
	WaitBegan   float64 `json:"waitBegan"`
	// Evictions counts how often a machine came back after the others had evicted it, because the busy
	// computer had silenced it for longer than a lease.
	Evictions int `json:"evictions"`
}

// A Step is one change of the cluster. Lowest is the number of transactions in the step's
// slowest second. Zeros is the number of seconds without any.
type Step struct {
	Name   string  `json:"name"`
	Began  float64 `json:"began"`
	Ended  float64 `json:"ended"`
	Before float64 `json:"beforePerSecond"` // in the undisturbed time before
	During float64 `json:"duringPerSecond"`
	Lowest float64 `json:"lowestPerSecond"`
	Zeros  int     `json:"secondsWithoutAny"`
	After  float64 `json:"afterPerSecond"` // in the undisturbed time after
	Errors int     `json:"errors"`         // in the step, and the undisturbed time after it
}

// result summarizes the run.
func (m *measurement) result() *Result {
	c, w := m.cfg, m.endpoints[0].workload
	r := &Result{
		Conditions: m.watch.Conditions(), First: c.first(), Machines: c.Machines, Back: c.Back, Resized: c.Resize, Clients: c.Clients, RegionSize: int64(c.RegionSize),
		Lease: c.Lease.Seconds() * 1000, Pace: c.Pace, Between: c.Between.Seconds(), Measured: m.measured.Seconds(),
		Evenness: m.evenness, Samples: m.samples, Errors: make(map[string]int), Aborts: m.work.aborts,
		LongestWait: m.work.longest.length.Seconds(), WaitBegan: m.work.longest.began.Seconds(),
		Evictions: m.machines.evictions(),
	}
	conditions := &r.Conditions
	conditions.API, conditions.Transport, conditions.Machines, conditions.Replicas, conditions.Workers = bench.SQL, "tcp with TLS", c.Machines, c.Replicas, c.Workers
	conditions.Memory, conditions.Durability, conditions.Workload, conditions.Scale, conditions.Seed = "files in "+c.Data, bench.DurabilityOf(c.Data), w.Name(), w.Scale(), c.Seed
	conditions.WarmUp, conditions.Duration = m.measured.Seconds(), (m.ended - m.measured).Seconds()
	t := newTally(m.work, m.ended)
	r.PerSecond, r.Transactions = t.perSecond, t.between(r.Measured, m.ended.Seconds())
	for _, f := range m.work.failures {
		r.Errors[f.reason]++
	}
	for _, s := range m.steps {
		r.Steps = append(r.Steps, t.step(s, r.Between))
	}
	return r
}

// A tally counts what clients have done by time.
type tally struct {
	ends      []float64 // ascending
	failures  []float64
	perSecond []uint32
}

// newTally counts the work of clients that have ended. It leaves out an incomplete last second,
// which would look like a slow one.
func newTally(w *work, ended time.Duration) *tally {
	t := &tally{perSecond: make([]uint32, int(ended.Seconds()))}
	for _, at := range w.ends {
		t.ends = append(t.ends, at.Seconds())
		if s := int(at.Seconds()); s < len(t.perSecond) {
			t.perSecond[s]++
		}
	}
	for _, f := range w.failures {
		t.failures = append(t.failures, f.at.Seconds())
	}
	slices.Sort(t.ends)
	slices.Sort(t.failures)
	return t
}

// between returns the number of transactions that ended between two times.
func (t *tally) between(from, to float64) int { return countBetween(t.ends, from, to) }

// countBetween returns the number of times in [from, to). times is in ascending order.
func countBetween(times []float64, from, to float64) int {
	first, _ := slices.BinarySearch(times, from)
	end, _ := slices.BinarySearch(times, to)
	return max(0, end-first)
}

// rate returns the transactions per second between two times; 0 if the times are equal.
func (t *tally) rate(from, to float64) float64 {
	if to <= from {
		return 0
	}
	return float64(t.between(from, to)) / (to - from)
}

// step summarizes a step. undisturbed is the length of the undisturbed times before and after it, in
// seconds.
func (t *tally) step(s stepTimes, undisturbed float64) Step {
	began, ended := s.began.Seconds(), s.ended.Seconds()
	x := Step{
		Name: s.name, Began: began, Ended: ended, Before: t.rate(began-undisturbed, began), During: t.rate(began, ended), After: t.rate(ended, ended+undisturbed),
		Errors: countBetween(t.failures, began, ended+undisturbed),
	}
	if len(t.perSecond) == 0 {
		return x
	}
	// seconds has the transactions of each second in which the step was running, also in part.
	last := min(int(ended), len(t.perSecond)-1)
	seconds := t.perSecond[min(int(began), last) : last+1]
	x.Lowest = float64(slices.Min(seconds))
	for _, n := range seconds {
		if n == 0 {
			x.Zeros++
		}
	}
	return x
}

// ErrUneven means that the machines did not end up with even shares.
var ErrUneven = errors.New("growth: uneven machines")

// Uneven returns ErrUneven, with the shares, if the spread of bytes or primaries was above SpreadMost.
func (r *Result) Uneven() error {
	var errs []error
	for i := range r.Evenness {
		if e := &r.Evenness[i]; !e.isEven() {
			errs = append(errs, fmt.Errorf("%w: %v", ErrUneven, e))
		}
	}
	return errors.Join(errs...)
}

// WriteJSON writes the result.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// title describes the measurement.
func (r *Result) title() string {
	c := &r.Conditions
	replicas := fmt.Sprintf("%d replicas", c.Replicas)
	if c.Replicas == 1 {
		replicas = "1 replica"
	}
	if r.Resized > 0 {
		replicas += fmt.Sprintf(", then %d", r.Resized)
	}
	return fmt.Sprintf("%s, %s, %s: from %d to %d machines, and back to %d", c.Workload, c.API, replicas, r.First, r.Machines, r.Back)
}

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	c := &r.Conditions
	text := []string{
		r.title(),
		fmt.Sprintf("%d %s, %d clients, seed %d, commit %s, %s; 1 run", c.Scale.N, c.Scale.Unit, r.Clients, c.Seed, c.Commit, c.Began.UTC().Format("2006-01-02 15:04 UTC")),
		c.DescribeComputer(),
		"durability: " + string(c.Durability),
		fmt.Sprintf("each machine a process, %s, regions of %v in %s, leases of %g ms, %s data recovery", c.Transport, farmsql.Size(r.RegionSize), c.Memory, r.Lease, r.Pace),
		r.table(),
		fmt.Sprintf("%d transactions in %.0f s; the data are consistent, and none that was acknowledged is missing", r.Transactions, c.Duration),
		"errors after which a client connected anew: " + counts(r.Errors),
		"aborted and repeated: " + counts(r.Aborts),
		fmt.Sprintf("the longest time in which a client ended no transaction: %.2f s, from second %.1f on", r.LongestWait, r.WaitBegan),
		fmt.Sprintf("machines that were evicted for their silence, and came back: %d", r.Evictions),
	}
	for i := range r.Evenness {
		text = append(text, r.Evenness[i].String())
	}
	_, err := fmt.Fprintln(w, strings.Join(text, "\n"))
	return err
}

// table returns the steps as a table.
func (r *Result) table() string {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"step", "at", "took", "before", "during", "lowest second", "seconds without any", "after", "errors"})
	var right []table.ColumnConfig
	for i := range 8 {
		right = append(right, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, s := range r.Steps {
		row := table.Row{s.Name, fmt.Sprintf("%.1f s", s.Began), fmt.Sprintf("%.2f s", s.Ended-s.Began)}
		for _, perSecond := range []float64{s.Before, s.During, s.Lowest} {
			row = append(row, fmt.Sprintf("%.0f", perSecond))
		}
		t.AppendRow(append(row, s.Zeros, fmt.Sprintf("%.0f", s.After), s.Errors))
	}
	return t.Render()
}

// counts prints numbers, each with its reason.
func counts[N int | uint64](byReason map[string]N) string {
	if len(byReason) == 0 {
		return "none"
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		parts = append(parts, fmt.Sprintf("%s %d", reason, byReason[reason]))
	}
	return strings.Join(parts, ", ")
}
