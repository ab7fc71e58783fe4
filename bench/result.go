package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/farmsql/farmsql/txn"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// A Result is the result of a run. --json writes it as JSON.
type Result struct {
	Conditions Conditions `json:"conditions"`
	// Seconds is the measured time, Total has all kinds of transactions together.
	Seconds float64      `json:"seconds"`
	Total   KindResult   `json:"total"`
	Kinds   []KindResult `json:"kinds"`
	// Aborts counts, by reason, the attempts that met a conflict and were retried.
	Aborts map[string]uint64 `json:"aborts"`
	// Processor is the processor time of a transaction, in microseconds. It includes clients
	// and machines, which share processes, and only the time in which these processes ran,
	// so that other processes disturb it least.
	Processor float64 `json:"processorMicroseconds"`
	// ServerProcessor is the processor time of a transaction in the server at a DSN, in
	// microseconds, if its processes are known (TargetConfig.ServerProcesses).
	ServerProcessor float64 `json:"serverProcessorMicroseconds,omitempty"`
	// Allocations is the number of allocations on the Go heap per transaction in these
	// processes, and AllocatedBytes their bytes; both include the harness.
	Allocations    float64 `json:"allocations"`
	AllocatedBytes float64 `json:"allocatedBytes"`
	// Reads are the machines' averages per transaction.
	Reads *Reads `json:"reads,omitempty"`
	// ResidentBytes is the memory of the processes of clients and machines at the end of the
	// run, with shared memory counted once: the data in all replicas, with indexes, logs and
	// the Go heap. It is 0 for a server at a DSN.
	ResidentBytes int64 `json:"residentBytes,omitempty"`
	// Arrivals says how exactly transactions arrived, and how many were left, in the open
	// loop.
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// Spread is the spread of several runs; this result is that of the median run.
	Spread Spread `json:"spread"`
	// ReplicasCompared is set if all replicas were compared after the run, and were alike.
	ReplicasCompared bool `json:"replicasCompared,omitempty"`
	// Space is the space that the check after the run has found, for a Spacious workload.
	Space *Space `json:"space,omitempty"`
	// PerSecond and PerMillisecond count the transactions that ended in each second and in each
	// millisecond.
	PerSecond      []uint32 `json:"perSecond"`
	PerMillisecond []uint32 `json:"perMillisecond"`
}

// Arrivals are those of the open loop. Times are in microseconds.
type Arrivals struct {
	// LateP50, LateP99 and LateMax are how late transactions began although a thread was
	// waiting for them. That is the generator's fault, and part of their latency.
	LateP50 float64 `json:"lateP50Microseconds"`
	LateP99 float64 `json:"lateP99Microseconds"`
	LateMax float64 `json:"lateMaxMicroseconds"`
	// Waiting is the number of transactions that had arrived but not ended at the end of the run;
	// no other figure includes them. Oldest is the time that the first of them had waited by then.
	Waiting uint64  `json:"waiting"`
	Oldest  float64 `json:"oldestMicroseconds"`
}

// arrivals returns the result's Arrivals; nil in the closed loop.
func (r *record) arrivals() *Arrivals {
	a := r.Arrivals
	if a == nil {
		return nil
	}
	late := func(percentile float64) float64 { return microseconds(a.Late.ValueAtPercentile(percentile)) }
	return &Arrivals{late(50), late(99), microseconds(a.Late.Max()), a.Waiting, microseconds(int64(a.Oldest))}
}

// Reads are the machines' reads and messages per transaction, on average.
type Reads struct {
	Local    float64 `json:"local"`
	Remote   float64 `json:"remote"`
	Messages float64 `json:"messages"`
	Records  float64 `json:"records"`
}

// A KindResult is about one kind of transactions. Latencies are in microseconds.
type KindResult struct {
	Name       string  `json:"name"`
	Count      uint64  `json:"count"`
	PerSecond  float64 `json:"perSecond"`
	MissedPart float64 `json:"missedPart"` // the share of the transactions that ended with ErrMiss
	Mean       float64 `json:"meanMicroseconds"`
	P50        float64 `json:"p50Microseconds"`
	P99        float64 `json:"p99Microseconds"`
	P999       float64 `json:"p999Microseconds"`
	Max        float64 `json:"maxMicroseconds"`
	// Percentiles is the whole distribution: pairs of a percentile and a latency.
	Percentiles [][2]float64 `json:"percentiles,omitempty"`
}

// A part is one process's measurements of a run.
type part struct {
	Record *record
	// Measured is the measured time. Own is the processor time that the process took in it.
	Measured, Own time.Duration
	// Allocations is the number of allocations on the Go heap in the measured time, AllocatedBytes
	// their bytes.
	Allocations, AllocatedBytes uint64
	// ResidentBytes is the process's memory at the end, with its share of shared memory.
	ResidentBytes int64
	// Aborts counts, by reason, the aborts of clients and of machines.
	Aborts map[string]uint64
	Reads  *machineCounters // nil if there are no machines
}

// machineCounters are the counters of txn.Stats that a result has.
type machineCounters struct{ Local, Remote, Messages, Records uint64 }

// part combines the threads' measurements.
func (r *run) part() *part {
	p := &part{
		Record: newRecord(len(r.workload.Kinds())), Measured: r.measured(), Own: r.after.own - r.before.own,
		Allocations: r.after.allocations - r.before.allocations, AllocatedBytes: r.after.allocatedBytes - r.before.allocatedBytes,
		Aborts: make(map[string]uint64),
	}
	for _, l := range r.loops {
		p.Record.merge(l.record)
		for reason, n := range l.thread.aborts {
			p.Aborts[reason] += n
		}
	}
	counted := r.after.txn.Sub(r.before.txn)
	for reason, n := range counted.Aborts {
		// A rollback that the caller asks for is not a conflict.
		if n > 0 && txn.Reason(reason) != txn.ReasonUser {
			p.Aborts[txn.Reason(reason).String()] += n
		}
	}
	if r.target.Machines() > 0 {
		p.ResidentBytes = r.resident
		p.Reads = &machineCounters{counted.LocalReads, counted.RemoteReads, counted.Messages, counted.Records}
	}
	return p
}

// measured returns the length of the run after its warm-up: Options.Duration or, in a run of
// Options.Transactions, the time until the last of them ended; less if finish ended the run before.
func (r *run) measured() time.Duration {
	measured := r.options.Duration
	if r.options.Transactions > 0 {
		for _, l := range r.loops {
			measured = max(measured, l.ended)
		}
	}
	if finished := time.Duration(r.finished.Load()); finished != 0 {
		measured = max(0, min(measured, finished-r.options.WarmUp))
	}
	return measured
}

// merge combines the measurements of one run from one or more processes, in the first part.
func merge(parts []*part) *part {
	all := parts[0]
	for _, p := range parts[1:] {
		all.Record.merge(p.Record)
		all.Measured, all.Own = max(all.Measured, p.Measured), all.Own+p.Own
		all.Allocations, all.AllocatedBytes = all.Allocations+p.Allocations, all.AllocatedBytes+p.AllocatedBytes
		all.ResidentBytes += p.ResidentBytes
		for reason, n := range p.Aborts {
			all.Aborts[reason] += n
		}
		if all.Reads != nil && p.Reads != nil {
			all.Reads.Local += p.Reads.Local
			all.Reads.Remote += p.Reads.Remote
			all.Reads.Messages += p.Reads.Messages
			all.Reads.Records += p.Reads.Records
		}
	}
	return all
}

// result makes the result from the measurements, with the names of the kinds of transactions. It
// returns an error if no transaction ended in the measured time.
func (p *part) result(c Conditions, kinds []string) (*Result, error) {
	res := &Result{Conditions: c, Seconds: p.Measured.Seconds(), Aborts: p.Aborts, ResidentBytes: p.ResidentBytes, PerMillisecond: p.Record.Series}
	total, misses := newHistogram(), uint64(0)
	for i, k := range p.Record.Kinds {
		res.Kinds = append(res.Kinds, res.kind(kinds[i], k.Latency.Histogram, k.Misses))
		total.Merge(k.Latency.Histogram)
		misses += k.Misses
	}
	res.Total = res.kind("all", total, misses)
	if res.Total.Count == 0 {
		return nil, fmt.Errorf("bench: no transaction ended within the %v that were measured", p.Measured)
	}
	res.PerSecond, res.Arrivals = perSecond(p.Record.Series), p.Record.arrivals()
	n := float64(res.Total.Count)
	res.Processor = float64(p.Own) / float64(time.Microsecond) / n
	res.Allocations, res.AllocatedBytes = float64(p.Allocations)/n, float64(p.AllocatedBytes)/n
	if r := p.Reads; r != nil {
		res.Reads = &Reads{float64(r.Local) / n, float64(r.Remote) / n, float64(r.Messages) / n, float64(r.Records) / n}
	}
	return Median([]*Result{res}), nil // with the Spread of a single run
}

// result makes the result of a run in this process.
func (r *run) result() (*Result, error) {
	if err := errors.Join(r.before.serverErr, r.after.serverErr); err != nil {
		return nil, err
	}
	c := conditions(&r.target.cfg, &r.options, r.workload.Name(), r.workload.Scale(), r.start)
	p, serverTime := r.part(), r.after.server-r.before.server
	c.Server, c.Others = r.target.server, otherProcessors(r.before, r.after, p.Own+serverTime)
	res, err := p.result(c, r.workload.Kinds())
	if err == nil {
		res.ServerProcessor = float64(serverTime) / float64(time.Microsecond) / float64(res.Total.Count)
		res.Space = spaceOf(r.workload)
	}
	return res, err
}

// kind summarizes one kind of transactions; h has their latencies in nanoseconds.
func (res *Result) kind(name string, h *hdrhistogram.Histogram, misses uint64) KindResult {
	n := uint64(h.TotalCount())
	k := KindResult{Name: name, Count: n, PerSecond: float64(n) / res.Seconds}
	if n == 0 {
		return k
	}
	latencyAt := func(percentile float64) float64 { return microseconds(h.ValueAtPercentile(percentile)) }
	k.MissedPart, k.Mean, k.Max = float64(misses)/float64(n), h.Mean()/1e3, microseconds(h.Max())
	k.P50, k.P99, k.P999 = latencyAt(50), latencyAt(99), latencyAt(99.9)
	for _, b := range h.CumulativeDistributionWithTicks(2) { // two points whenever the rest up to 100 % halves
		k.Percentiles = append(k.Percentiles, [2]float64{b.Quantile, microseconds(b.ValueAt)})
	}
	return k
}

func microseconds(ns int64) float64 { return float64(ns) / float64(time.Microsecond) }

// perSecond adds up milliseconds to whole seconds. It drops an incomplete last second, which
// would look like a slow one, unless there is no other.
func perSecond(ms []uint32) (s []uint32) {
	const second = 1000 // milliseconds
	for len(ms) >= second || (len(ms) > 0 && len(s) == 0) {
		sum := uint32(0)
		for _, n := range ms[:min(second, len(ms))] {
			sum += n
		}
		s, ms = append(s, sum), ms[min(second, len(ms)):]
	}
	return s
}

// WriteJSON writes the result.
func (res *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(res)
}

// Print writes the result for people.
func (res *Result) Print(w io.Writer) error {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"transaction", "count", "per second", "missed", "mean", "p50", "p99", "p99.9", "max"})
	right := make([]table.ColumnConfig, 0, 8)
	for i := range 8 {
		right = append(right, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight, AlignFooter: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, k := range res.Kinds {
		t.AppendRow(k.row())
	}
	t.Style().Format.Footer = text.FormatDefault
	t.AppendFooter(res.Total.row())
	_, err := fmt.Fprintf(w, "%s\n%s\n%s\n", res.Conditions.Describe(), t.Render(), res.remarks())
	return err
}

func (k *KindResult) row() table.Row {
	missed := ""
	if k.MissedPart > 0 {
		missed = fmt.Sprintf("%.1f %%", 100*k.MissedPart)
	}
	return table.Row{k.Name, count(float64(k.Count)), count(k.PerSecond), missed, latency(k.Mean), latency(k.P50), latency(k.P99), latency(k.P999), latency(k.Max)}
}

// Describe prints the conditions.
func (c *Conditions) Describe() string {
	lines := []string{
		c.title(),
		fmt.Sprintf("%s, seed %d, commit %s, %s", c.loop(), c.Seed, c.Commit, c.Began.UTC().Format("2006-01-02 15:04 UTC")),
		c.DescribeComputer(),
	}
	if c.Durability != "" {
		lines = append(lines, "durability: "+string(c.Durability))
	}
	if c.Memory != "" {
		lines = append(lines, c.SetUp()+", regions in "+c.Memory)
		switch {
		case c.Processes > 0:
			lines[len(lines)-1] += ", each machine a process with its clients"
			if c.API == SQL {
				lines[len(lines)-1] += ", which come to a port of it"
			}
		case c.Machines > 1:
			lines[len(lines)-1] += ", all machines in one process"
		}
	}
	return strings.Join(lines, "\n")
}

// DescribeComputer prints the conditions of the computer in one line.
func (c *Conditions) DescribeComputer() string {
	others := "how busy the computer was with other things is not known"
	if c.Others >= 0 {
		others = fmt.Sprintf("other processes kept %.1f of them busy", c.Others)
	}
	return fmt.Sprintf("%s, %s, %.0f GiB, %s, %s; %s", c.CPU, plural(c.Processors, "processor"), float64(c.MemoryBytes)/(1<<30), c.Kernel, c.Go, others)
}

// remarks returns what does not fit into the table.
func (res *Result) remarks() string {
	s := "data: " + res.size() + "; " + res.Spread.String() + "\n"
	aborted := "none"
	if len(res.Aborts) > 0 {
		var parts []string
		for _, reason := range slices.Sorted(maps.Keys(res.Aborts)) {
			parts = append(parts, reason+" "+count(float64(res.Aborts[reason])))
		}
		aborted = strings.Join(parts, ", ")
	}
	s += fmt.Sprintf("aborted and repeated: %s\na transaction: %.2f µs of processor time, %.2f allocations of %s bytes together, of clients", aborted, res.Processor, res.Allocations, count(math.Round(res.AllocatedBytes)))
	if r := res.Reads; r != nil {
		s += fmt.Sprintf(" and machines; %.2f local and %.2f remote reads, %.2f messages, %.2f log records", r.Local, r.Remote, r.Messages, r.Records)
	}
	if res.ServerProcessor > 0 {
		s += fmt.Sprintf("; %.2f µs of processor time of the server", res.ServerProcessor)
	}
	switch {
	case res.ReplicasCompared:
		s += "\nreplicas: compared after the run, and alike"
	case res.Conditions.Machines > 1:
		s += "\nreplicas: NOT COMPARED"
	}
	if m := res.Space; m != nil {
		s += fmt.Sprintf("\nspace: %.1f %% of %.1f MB of objects are keys and values", 100*m.UsedPart, float64(m.MemoryBytes)/1e6)
	}
	if a := res.Arrivals; a != nil {
		s += fmt.Sprintf("\narrivals: awaited ones began %s late in the median, p99 %s, max %s; when the run ended %s had not ended",
			latency(a.LateP50), latency(a.LateP99), latency(a.LateMax), count(float64(a.Waiting)))
		if a.Waiting > 0 {
			s += ", the first of them after " + latency(a.Oldest)
		}
	}
	const keptUp = 0.95
	if rate := res.Conditions.Rate; rate > 0 && res.Total.PerSecond < keptUp*rate {
		s += fmt.Sprintf("\nNOT KEPT UP: %s of %s transactions a second; latencies are those of a queue that grows", count(res.Total.PerSecond), count(rate))
	}
	return s
}

// size describes the size of the data.
func (res *Result) size() string {
	s := count(float64(res.Conditions.Scale.N)) + " " + res.Conditions.Scale.Unit
	if res.ResidentBytes > 0 {
		s += fmt.Sprintf(", %.0f MB resident with all replicas, logs and the Go heap", float64(res.ResidentBytes)/1e6)
	}
	return s
}

// count prints a number with its thousands separated, rounded to a whole one; below 10, to one
// decimal.
func count(n float64) string {
	if n < 0 {
		return "-" + count(-n)
	}
	if n < 10 && n != float64(int64(n)) {
		return strconv.FormatFloat(n, 'f', 1, 64)
	}
	s := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// latency prints microseconds with a unit that suits them.
func latency(us float64) string {
	switch {
	case us < 10:
		return strconv.FormatFloat(us, 'f', 2, 64) + " µs"
	case us < 10_000:
		return strconv.FormatFloat(us, 'f', 0, 64) + " µs"
	case us < 10_000_000:
		return strconv.FormatFloat(us/1e3, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(us/1e6, 'f', 0, 64) + " s"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return count(float64(n)) + " " + what + "s"
}
