package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// results has all results, by experiment.
type results struct {
	o    *Options
	runs map[string][]run
}

// A run is the output of one process: one object for each rate, mostly one.
type run struct {
	objects    []json.RawMessage
	conditions []bench.Conditions
	// results are the objects, if they are bench.Results.
	results []*bench.Result
}

// readResults reads the existing results of all experiments.
func readResults(o *Options) (*results, error) {
	r := &results{o: o, runs: make(map[string][]run)}
	for _, e := range suite() {
		for n := 1; n <= o.Runs; n++ {
			t := turn{e, n}
			if !o.has(t) {
				continue
			}
			run, err := readRun(o.file(t, ".json"), !e.isForeign && e.tool == farmsqlBench)
			if err != nil {
				return nil, fmt.Errorf("report: %s: %w", o.file(t, ".json"), err)
			}
			r.runs[e.name] = append(r.runs[e.name], run)
		}
	}
	return r, nil
}

// readRun reads the objects of a result file.
func readRun(file string, areResults bool) (r run, err error) {
	f, err := os.Open(file)
	if err != nil {
		return r, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	for d := json.NewDecoder(f); ; {
		var object json.RawMessage
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) && len(r.objects) > 0 {
			return r, nil
		}
		if err == nil {
			err = r.add(object, info.ModTime(), areResults)
		}
		if err != nil {
			return r, err
		}
	}
}

// add adds an object. written is the time when its file was written. It stands in for the begin of
// objects that do not say when they began.
func (r *run) add(object json.RawMessage, written time.Time, areResults bool) error {
	var common struct {
		Conditions bench.Conditions `json:"conditions"`
		Timeline   struct {
			PerMillisecond []uint32 `json:"perMillisecond"`
		} `json:"timeline"`
	}
	if err := json.Unmarshal(object, &common); err != nil {
		return err
	}
	if common.Conditions.Began.IsZero() {
		common.Conditions.Began = written
	}
	if ms := len(common.Timeline.PerMillisecond); ms > 0 {
		// Earlier versions of the failure benchmark recorded the longest duration that was allowed in
		// place of the real one, which the timeline shows.
		common.Conditions.Duration = float64(ms) / 1000
	}
	r.objects, r.conditions = append(r.objects, object), append(r.conditions, common.Conditions)
	if !areResults {
		return nil
	}
	var res bench.Result
	if err := json.Unmarshal(object, &res); err != nil {
		return err
	}
	r.results = append(r.results, &res)
	return nil
}

// objectsOf returns the first object of each run of an experiment whose results are
// not bench.Results.
func objectsOf[T any](r *results, e experiment) (all []*T, err error) {
	for _, run := range r.runs[e.name] {
		v := new(T)
		if err := json.Unmarshal(run.objects[0], v); err != nil {
			return nil, fmt.Errorf("report: %s: %w", e.name, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// A metric returns a figure of a result, or NaN if the result does not have it.
type metric func(*bench.Result) float64

func throughput(res *bench.Result) float64 { return res.Total.PerSecond }

// medianLatency is the 50th percentile of all kinds of transactions together, in microseconds.
func medianLatency(res *bench.Result) float64 { return res.Total.P50 }

// processorTime is the metric of the processor time of a transaction, in microseconds.
func processorTime(res *bench.Result) float64 { return res.Processor }

// perProcessor divides a metric, a rate, by the number of processors that were kept
// busy.
func perProcessor(m metric) metric {
	return func(res *bench.Result) float64 {
		busy := res.Processor / 1e6 * res.Total.PerSecond // seconds of processor time in a second
		return m(res) / busy
	}
}

// newOrders is TPC-C's metric: the New-Orders that were committed in a second.
var newOrders = kindMetric("New-Order", func(k *bench.KindResult) float64 { return k.PerSecond * (1 - k.MissedPart) })

// localReads returns the local reads of a transaction.
func localReads(res *bench.Result) float64 {
	if res.Reads == nil {
		return math.NaN()
	}
	return res.Reads.Local
}

// remoteReads returns the remote reads of a transaction.
func remoteReads(res *bench.Result) float64 {
	if res.Reads == nil {
		return math.NaN()
	}
	return res.Reads.Remote
}

// allReads returns the number of reads, local and remote ones, of a transaction.
func allReads(res *bench.Result) float64 { return localReads(res) + remoteReads(res) }

// messages returns the messages of a transaction.
func messages(res *bench.Result) float64 {
	if res.Reads == nil {
		return math.NaN()
	}
	return res.Reads.Messages
}

// usedSpace returns the size of keys and values as a percentage of the memory that the table takes.
func usedSpace(res *bench.Result) float64 {
	if res.Space == nil {
		return math.NaN()
	}
	return 100 * res.Space.UsedPart
}

// A figure summarizes runs: the median, the lowest and the highest value.
type figure struct {
	median, low, high float64
	n                 int // number of runs that have the figure
	// isForeign is set if there are runs, but they do not have the figure.
	isForeign bool
}

// figure returns the figure of a metric over an experiment's runs.
func (r *results) figure(e experiment, m metric) figure {
	var v []float64
	for _, run := range r.runs[e.name] {
		v = append(v, m(run.results[0]))
	}
	f := figureOf(v)
	f.isForeign = f.n == 0 && len(v) > 0
	return f
}

// figureOf returns the median, the lowest and the highest of values; NaN does not count.
func figureOf(v []float64) figure {
	v = slices.DeleteFunc(slices.Clone(v), math.IsNaN)
	if len(v) == 0 {
		return figure{}
	}
	slices.Sort(v)
	mid := v[len(v)/2]
	if len(v)%2 == 0 {
		mid = (v[len(v)/2-1] + mid) / 2
	}
	return figure{median: mid, low: v[0], high: v[len(v)-1], n: len(v)}
}

const notMeasured = "not measured"

// short returns the median as text.
func (f figure) short() string {
	switch {
	case f.isForeign:
		return ""
	case f.n == 0:
		return notMeasured
	}
	return number(f.median)
}

// spread returns the lowest and the highest value of several runs.
func (f figure) spread() string {
	if f.n < 2 {
		return ""
	}
	return number(f.low) + " to " + number(f.high)
}

// dividedBy returns the median divided by x.
func (f figure) dividedBy(x float64) string {
	if f.n == 0 || x == 0 {
		return ""
	}
	return number(f.median / x)
}

// number prints a number rounded to three digits, but at least to a whole one, with thousands separated.
func number(x float64) string {
	switch {
	case x < 9.995:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x < 99.95:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	if x >= 10_000 { // no figure is measured to more than three digits
		unit := math.Pow(10, math.Floor(math.Log10(x))-2)
		x = math.Round(x/unit) * unit
	}
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// othersMax is the most that other processes may keep the computer busy for figures
// to be valid.
const othersMax = 0.2

// conditions describes the conditions of the experiments' results.
func (r *results) conditions(es []experiment) string {
	var all []bench.Conditions
	fewest, most := 0, 0
	for _, e := range es {
		n := len(r.runs[e.name])
		if n > 0 && (fewest == 0 || n < fewest) {
			fewest = n
		}
		most = max(most, n)
		for _, run := range r.runs[e.name] {
			all = append(all, run.conditions...)
		}
	}
	return describe(all, fewest, most)
}

// describe says where results come from: computers, commits, time and conditions. fewest and most
// are the least and the greatest number of runs of a result.
func describe(all []bench.Conditions, fewest, most int) string {
	if len(all) == 0 {
		return "Not measured."
	}
	computers := distinct(all, func(c bench.Conditions) string {
		return fmt.Sprintf("%s, %d processors, %.0f GiB, %s, %s", c.CPU, c.Processors, float64(c.MemoryBytes)/(1<<30), c.Kernel, c.Go)
	})
	commits := distinct(all, func(c bench.Conditions) string { return c.Commit })
	s := fmt.Sprintf("%s; commit %s; %s", strings.Join(computers, " and "), strings.Join(commits, ", "), period(all))
	switch {
	case most > fewest:
		s += fmt.Sprintf("; medians of %d to %d runs in turns, each a process of its own", fewest, most)
	case most > 1:
		s += fmt.Sprintf("; median of %d runs in turns, each a process of its own", most)
	}
	return s + ".\n" + busyness(all) + setUps(all)
}

// setUps describes the runs of workloads on machines: their durations and seeds, the
// machines and the clients. It leaves out other results, and returns "" if there are no
// such runs.
func setUps(all []bench.Conditions) string {
	ran := slices.DeleteFunc(slices.Clone(all), func(c bench.Conditions) bool { return c.Transport == "" || c.Workload == "" })
	if len(ran) == 0 {
		return ""
	}
	list := func(value func(bench.Conditions) string) string { return strings.Join(distinct(ran, value), ", ") }
	seconds := func(s float64) string { return fmt.Sprintf("%g", math.Round(100*s)/100) }
	return fmt.Sprintf("\nSeconds of warm-up: %s, measured: %s; seeds: %s. Set-ups: %s.",
		list(func(c bench.Conditions) string { return seconds(c.WarmUp) }), list(func(c bench.Conditions) string { return seconds(c.Duration) }),
		list(func(c bench.Conditions) string { return fmt.Sprint(c.Seed) }), strings.Join(distinct(ran, func(c bench.Conditions) string { return c.SetUp() }), "; "))
}

// distinct returns the different values of all conditions, in the order in which they first occur.
func distinct(all []bench.Conditions, value func(bench.Conditions) string) (values []string) {
	for _, c := range all {
		if v := value(c); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// period describes the time from the first run's beginning to the last's.
func period(all []bench.Conditions) string {
	compare := func(a, b bench.Conditions) int { return a.Began.Compare(b.Began) }
	first, last := slices.MinFunc(all, compare).Began.UTC(), slices.MaxFunc(all, compare).Began.UTC()
	const day = time.DateOnly
	if first.Format(day) != last.Format(day) {
		return first.Format(day) + " to " + last.Format(day)
	}
	return first.Format("2006-01-02 15:04") + " to " + last.Format("15:04") + " UTC"
}

// busyness describes what other processes did.
func busyness(all []bench.Conditions) string {
	var others []float64
	for _, c := range all {
		if c.Others >= 0 {
			others = append(others, c.Others)
		}
	}
	f := figureOf(others)
	if f.n == 0 {
		return "How busy the computer was with other things is not known."
	}
	s := fmt.Sprintf("Other processes kept %.1f processors busy meanwhile in the median run, %.1f to %.1f in all.", f.median, f.low, f.high)
	if f.median > othersMax {
		s += " **The computer was not quiet: only processor times mean much.**"
	}
	return s
}

// kindMetric returns a metric of one kind of transactions.
func kindMetric(name string, value func(*bench.KindResult) float64) metric {
	return func(res *bench.Result) float64 {
		for i := range res.Kinds {
			if k := &res.Kinds[i]; k.Name == name && k.Count > 0 {
				return value(k)
			}
		}
		return math.NaN()
	}
}
