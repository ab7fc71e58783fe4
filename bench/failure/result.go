package failure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Result has the measurements of all runs. The package's documentation describes its JSON.
type Result struct {
	Conditions        bench.Conditions `json:"conditions"`
	Kind              Kind             `json:"kind"`
	Way               Way              `json:"way"`
	Pace              farmsql.Pace     `json:"pace"`
	Domains           int              `json:"domains"`
	LeaseMilliseconds float64          `json:"leaseMilliseconds"`
	LeaseKeptBy       string           `json:"leaseKeptBy"`
	Runs              []Run            `json:"runs"`
	Distribution      []Distribution   `json:"distribution"`
	Timeline          Timeline         `json:"timeline"`
	// ReplicasCompared is set if all replicas were compared after the last run, and were alike.
	ReplicasCompared bool `json:"replicasCompared,omitempty"`
}

// A Run is one failure. Times are in milliseconds since the kill, or the stop; nil if the step
// did not happen.
type Run struct {
	Killed []int `json:"killed"`
	// Before is the throughput of the survivors before the kill.
	Before          float64  `json:"beforePerSecond"`
	Suspected       float64  `json:"suspected"`
	Probed          float64  `json:"probed"`
	Stored          float64  `json:"stored"`
	Committed       float64  `json:"committed"`
	AllActive       float64  `json:"allActive"`
	Throughput      *float64 `json:"throughput,omitempty"`
	RecoveryStarted *float64 `json:"recoveryStarted,omitempty"`
	Recovered       *float64 `json:"recovered,omitempty"`
	// After the run, the killed machines are started again. Whole is the time at which they were
	// back and all regions had all their replicas.
	Whole          float64 `json:"whole"`
	FilledReplicas int     `json:"filledReplicas"` // number of replicas that were filled until Recovered
	FilledBytes    int64   `json:"filledBytes"`
	Return         Return  `json:"return"`
	// Aborts are bench.Result's, of the survivors.
	Aborts map[string]uint64 `json:"aborts"`

	way        Way
	timeline   Timeline
	conditions bench.Conditions
}

// A Return is the time and the bytes that killed machines took to have everything again, from
// their start.
type Return struct {
	Whole    float64 `json:"whole"` // time in milliseconds
	Replicas int     `json:"filledReplicas"`
	Read     int64   `json:"readBytes"` // bytes that all machines have read, because they may have changed
	Held     int64   `json:"heldBytes"` // bytes that the replicas hold in all
}

// A Timeline is one run over time, in seconds since the measured time began.
type Timeline struct {
	Run            int       `json:"run"` // number of the run, from 0
	PerMillisecond []uint32  `json:"perMillisecond"`
	Events         []Event   `json:"events"`
	Filled         []float64 `json:"filled"`
}

// seconds returns the length of the measured run.
func (t *Timeline) seconds() float64 { return float64(len(t.PerMillisecond)) / 1000 }

// An Event is a step of a run.
type Event struct {
	Seconds float64 `json:"seconds"`
	Text    string  `json:"text"`
}

// A Distribution describes how long a step took, in the runs in which it happened, in
// milliseconds.
type Distribution struct {
	Name    string  `json:"name"`
	Runs    int     `json:"runs"`
	Minimum float64 `json:"minimum"`
	Median  float64 `json:"median"`
	P90     float64 `json:"p90"`
	Maximum float64 `json:"maximum"`
}

// distributions are the figures that are reported over all runs. A run without the event has
// no value. A name that begins with a space is appended to the way in which machines failed.
var distributions = []struct {
	name  string
	value func(r *Run) (ms float64, ok bool)
}{
	{" to suspected", func(r *Run) (float64, bool) { return r.Suspected, true }},
	{"suspected to all regions active", func(r *Run) (float64, bool) { return r.AllActive - r.Suspected, true }},
	{"suspected to 80 % of the throughput", func(r *Run) (float64, bool) { return r.sinceSuspicion(r.Throughput) }},
	{"suspected to data recovered", func(r *Run) (float64, bool) { return r.sinceSuspicion(r.Recovered) }},
}

// sinceSuspicion returns the time from the suspicion to a step; false if the step did not happen.
func (r *Run) sinceSuspicion(ms *float64) (float64, bool) {
	if ms == nil {
		return 0, false
	}
	return *ms - r.Suspected, true
}

// distributionOf returns the distribution of values; zero if there are none.
func distributionOf(name string, values []float64) Distribution {
	d := Distribution{Name: name, Runs: len(values)}
	if len(values) == 0 {
		return d
	}
	slices.Sort(values)
	quantile := func(q float64) float64 { return values[int(q*float64(len(values)-1)+0.5)] } // the nearest value
	d.Minimum, d.Median, d.P90, d.Maximum = quantile(0), quantile(0.5), quantile(0.9), quantile(1)
	return d
}

// summarize fills in the fields that follow from the runs.
func (res *Result) summarize() {
	for _, d := range distributions {
		var values []float64
		for i := range res.Runs {
			if ms, ok := d.value(&res.Runs[i]); ok {
				values = append(values, ms)
			}
		}
		name := d.name
		if strings.HasPrefix(name, " ") { // the name begins with the way: "killed to suspected"
			name = res.Way.past() + name
		}
		res.Distribution = append(res.Distribution, distributionOf(name, values))
	}
	median := res.median()
	res.Timeline, res.Conditions = res.Runs[median].timeline, res.Runs[median].conditions
	res.Timeline.Run = median
}

// median returns the run with the median time until the throughput was back; a run in which it
// did not come back counts as the longest.
func (res *Result) median() int {
	order := make([]int, len(res.Runs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, okA := res.Runs[i].sinceSuspicion(res.Runs[i].Throughput)
		b, okB := res.Runs[j].sinceSuspicion(res.Runs[j].Throughput)
		if okA != okB {
			if okA {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	return order[(len(order)-1)/2]
}

// WriteJSON writes the result.
func (res *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(res)
}

// title describes the measurement.
func (res *Result) title() string {
	what := map[Kind]string{Machine: "a machine", CM: "the CM", Domain: fmt.Sprintf("one of %d failure domains", res.Domains)}[res.Kind] + " " + res.Way.past()
	return fmt.Sprintf("%s, %s, %d machines, %d replicas, %d %s: %s, %s data recovery",
		res.Conditions.Workload, res.Conditions.API, res.Conditions.Machines, res.Conditions.Replicas, res.Conditions.Scale.N, res.Conditions.Scale.Unit, what, res.Pace)
}

// Print writes the result for people.
func (res *Result) Print(w io.Writer) error {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"", "runs", "minimum", "median", "90 %", "maximum"})
	var right []table.ColumnConfig
	for i := range 5 {
		right = append(right, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, d := range res.Distribution {
		row := table.Row{d.Name, d.Runs}
		for _, ms := range []float64{d.Minimum, d.Median, d.P90, d.Maximum} {
			if d.Runs == 0 {
				row = append(row, "")
				continue
			}
			row = append(row, milliseconds(ms))
		}
		t.AppendRow(row)
	}
	replicas := "NOT COMPARED"
	if res.ReplicasCompared {
		replicas = "compared after the last run, and alike"
	}
	_, err := fmt.Fprintf(w, "%s\n%s\nlease %g ms, kept by a %s\n%s\n%s\nreplicas: %s\n",
		res.title(), res.Conditions.Describe(), res.LeaseMilliseconds, res.LeaseKeptBy, t.Render(), res.medianRun(), replicas)
	return err
}

// medianRun describes the steps of the median run.
func (res *Result) medianRun() string {
	r := &res.Runs[res.Timeline.Run]
	s := fmt.Sprintf("the median run, %d of %d: %v %s; before, the others did %.0f transactions a second", res.Timeline.Run+1, len(res.Runs), r.Killed, res.Way.past(), r.Before)
	for _, step := range r.steps() {
		s += fmt.Sprintf("\n  %s %s", milliseconds(step.ms), step.name)
	}
	s += fmt.Sprintf("\n  %d replicas filled, %.1f MB", r.FilledReplicas, float64(r.FilledBytes)/1e6)
	b := &r.Return
	return s + fmt.Sprintf("\n  started again: whole after %s, %d replicas filled, %.1f MB read of %.1f MB", milliseconds(b.Whole), b.Replicas, float64(b.Read)/1e6, float64(b.Held)/1e6)
}

func milliseconds(ms float64) string {
	if ms >= 10_000 {
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

// Steps that have more than one use.
const (
	stepKilled    = "killed"
	stepStopped   = "stopped"
	stepActive    = "all regions active"
	stepStarted   = "data recovery started"
	stepRecovered = "data recovered"
)

// A step is a step of a run, with its time in milliseconds since the failure.
type step struct {
	name string
	ms   float64
}

// steps returns the steps that happened, in order.
func (r *Run) steps() []step {
	steps := []step{
		{r.way.past(), 0}, {"suspected", r.Suspected}, {"probed", r.Probed}, {"configuration stored", r.Stored},
		{"committed", r.Committed}, {stepActive, r.AllActive},
	}
	for _, s := range []struct {
		name string
		ms   *float64
	}{{"80 % of the throughput", r.Throughput}, {stepStarted, r.RecoveryStarted}, {stepRecovered, r.Recovered}} {
		if s.ms != nil {
			steps = append(steps, step{s.name, *s.ms})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.ms, b.ms) })
	return steps
}
