package report

import (
	"fmt"

	"github.com/farmsql/farmsql/bench"
)

// A section is a generated part of the document.
type section struct {
	name        string
	experiments []experiment
	write       func(p *page) error
}

// sections are the sections that the document must have.
var sections = []section{
	{"throughput", experimentsOf(throughputRows, func(r throughputRow) experiment { return r.experiment }), (*page).throughput},
	{"scaling", scalingExperiments(), (*page).scaling},
	{"transports", transportExperiments(), (*page).transports},
	{"messages", askedExperiments(), (*page).asked},
	{"kv", experimentsOf(kvVariants, func(v variant) experiment { return v.experiment }), (*page).kv},
	{"latency", experimentsOf(curves, func(v variant) experiment { return v.experiment }), (*page).latency},
	{"guided", pairedExperiments(), (*page).guided},
	{"tao", experimentsOf(graphs, func(v variant) experiment { return v.experiment }), (*page).graph},
	{"failure", experimentsOf(failures, func(v variant) experiment { return v.experiment }), (*page).failure},
	{"lease", []experiment{leases}, (*page).lease},
	{"compare", []experiment{compare}, (*page).compare},
	{"shapes", []experiment{shaped}, (*page).shapes},
	{"tpch", []experiment{queried}, (*page).tpch},
	{"profiles", experimentsOf(profiles, func(v variant) experiment { return v.experiment }), (*page).profiles},
	{"micro", []experiment{micro}, (*page).micro},
}

// experimentsOf returns the experiments of a table's rows.
func experimentsOf[T any](rows []T, ofRow func(T) experiment) (es []experiment) {
	for _, r := range rows {
		es = append(es, ofRow(r))
	}
	return es
}

func scalingExperiments() (es []experiment) {
	for _, s := range scalings {
		es = append(es, experimentsOf(s.rows, func(v variant) experiment { return v.experiment })...)
	}
	return es
}

func transportExperiments() (es []experiment) {
	for _, s := range transports {
		es = append(es, experimentsOf(s.rows, func(v variant) experiment { return v.experiment })...)
	}
	return es
}

func askedExperiments() (es []experiment) {
	for _, s := range askings {
		for _, a := range s.rows {
			es = append(es, a.byReads, a.byMessages)
		}
	}
	return es
}

// A throughputRow compares a figure with the paper's and with a goal.
type throughputRow struct {
	what string
	experiment
	metric metric
	// paper is the paper's figure for a hardware thread, goal the goal for all threads together; 0
	// if there is none.
	paper, goal float64
}

var throughputRows = []throughputRow{
	{"TATP, 1 machine, 1 thread, 1,000,000 subscribers: transactions", tatp1M, throughput, paperTATP, goalTATP},
	{"the same, memory in files on a tmpfs", tatp1MTmpfs, throughput, paperTATP, 0},
	{"the same, memory in files in the folder of the results", tatp1MDisk, throughput, paperTATP, 0},
	{"TATP, 3 machines over `rdma/shm`, 3 replicas, 1 thread each: transactions", tatp3, throughput, paperTATP, goalTATP3},
	{"the same, 2 threads each", tatp3x2, throughput, paperTATP, goalTATP3},
	{"TPC-C, 1 machine, 1 thread, 1 warehouse: all transactions", tpcc1, throughput, 0, goalTPCC},
	{"the same: new orders", tpcc1, newOrders, paperNewOrders, 0},
	{"the same, memory in files on a tmpfs: all transactions", tpcc1Tmpfs, throughput, 0, 0},
	{"the same, memory in files in the folder of the results: all transactions", tpcc1Disk, throughput, 0, 0},
	{"TPC-C, 3 machines over `rdma/shm`, 3 replicas, 3 warehouses, 1 thread each: all transactions", tpcc3, throughput, 0, 0},
	{"the same: new orders", tpcc3, newOrders, paperNewOrders, goalNewOrder3},
	{"the same, 2 threads each: all transactions", tpcc3x2, throughput, 0, 0},
	{"the same: new orders", tpcc3x2, newOrders, paperNewOrders, goalNewOrder3},
	{"lookups, 1 machine, 1 thread, 15.1 M keys, 90 % full", kv15M, throughput, paperLookups, goalLookups},
	{"the same, lookups of 24 keys together", kv15M24, throughput, paperLookups, goalLookups},
	{"the same, lookups of 256 keys together", kv15M256, throughput, paperLookups, goalMultiGet},
	{"lookups, 3 machines over `rdma/shm`, 3 replicas, 1 thread each, 0.24 M keys, 90 % full", kv3, throughput, paperLookups, 0},
	{"the same, lookups of 32 keys together", kv3Many, throughput, paperLookups, 0},
}

// throughput writes the table of throughputs, beside the paper's figures.
func (p *page) throughput() error {
	var rows [][]string
	for _, r := range throughputRows {
		all, each := p.figure(r.experiment, r.metric), p.figure(r.experiment, perProcessor(r.metric))
		goal, paper, times := "", "", ""
		if r.goal > 0 {
			goal = number(r.goal)
		}
		if r.paper > 0 {
			paper = number(r.paper)
		}
		if r.paper > 0 && r.replicas() >= paperReplicas {
			times = each.dividedBy(r.paper)
		}
		row := append([]string{r.what, all.short()}, p.origin(r.experiment, all)...)
		rows = append(rows, append(row, goal, p.figure(r.experiment, processorTime).short(), each.short(), paper, times))
	}
	header := append([]string{"what", "a second"}, originHeader...)
	p.table(append(header, "goal", "µs of processor time each transaction", "a second per processor kept busy", "the paper's, per hardware thread, with three replicas", "times"), rows)
	return p.misses()
}

// misses writes the processor time of a transaction of TATP as a number of cache misses that depend
// on each other.
func (p *page) misses() error {
	loads, err := p.microRows()
	if err != nil {
		return err
	}
	miss, transaction := nanoseconds(loads, "DependentLoad/far"), p.figure(tatp1M, processorTime)
	count := notMeasured
	if miss.n > 0 && transaction.n > 0 {
		count = number(transaction.median * 1e3 / miss.median)
	}
	p.line("Processor time of a transaction of TATP with 1,000,000 subscribers, in loads that miss the cache and depend on each other (%s ns each): %s.", miss.short(), count)
	p.line("The goal is at most %d.\n", goalMisses)
	return nil
}

// scaling writes the table of throughput with more data, workers or machines.
func (p *page) scaling() error {
	var rows [][]string
	for _, s := range scalings {
		first := p.figure(s.rows[0].experiment, perProcessor(throughput))
		for i, v := range s.rows {
			what := ""
			if i == 0 {
				what = s.what
			}
			all, each := p.figure(v.experiment, throughput), p.figure(v.experiment, perProcessor(throughput))
			row := append([]string{what, v.label, all.short()}, p.origin(v.experiment, all)...)
			rows = append(rows, append(row, p.figure(v.experiment, processorTime).short(), each.short(), each.dividedBy(first.median)))
		}
	}
	header := append([]string{"", "", "transactions a second"}, originHeader...)
	p.table(append(header, "µs of processor time", "a second per processor kept busy", "of the first row's"), rows)
	return nil
}

// transports writes the table that compares the networks, each with shared memory.
func (p *page) transports() error {
	var rows [][]string
	for _, s := range transports {
		shared := p.figure(s.rows[1].experiment, throughput) // the second row is overSHM
		for i, v := range s.rows {
			what := ""
			if i == 0 {
				what = s.what
			}
			all := p.figure(v.experiment, throughput)
			row := append([]string{what, v.label, all.short(), all.dividedBy(shared.median)}, p.origin(v.experiment, all)...)
			row = append(row, p.figure(v.experiment, processorTime).short(), p.figure(v.experiment, medianLatency).short())
			updates := p.latencies(v.experiment, "update location")
			rows = append(rows, append(row, updates[0], updates[1], p.figure(v.experiment, remoteReads).short(), p.figure(v.experiment, messages).short()))
		}
	}
	header := append([]string{"", "", "a second", "of `rdma/shm`'s"}, originHeader...)
	p.table(append(header, "µs of processor time", "p50, µs", "update location: p50, µs", "p99", "remote reads", "messages"), rows)
	return nil
}

// asked writes the table that compares lookups by READs with lookups by messages.
func (p *page) asked() error {
	var rows [][]string
	for _, s := range askings {
		what := s.what
		for _, a := range s.rows {
			reads := p.figure(a.byReads, throughput)
			for _, v := range []variant{{"READs", a.byReads}, {"messages", a.byMessages}} {
				all := p.figure(v.experiment, throughput)
				row := append([]string{what, a.label, v.label, all.short(), all.dividedBy(reads.median)}, p.origin(v.experiment, all)...)
				latencies := p.latencies(v.experiment, "lookup")
				rows = append(rows, append(row, p.figure(v.experiment, processorTime).short(), latencies[0], latencies[1],
					p.figure(v.experiment, remoteReads).short(), p.figure(v.experiment, messages).short()))
				what = ""
			}
		}
	}
	header := append([]string{"", "", "by", "keys a second", "of READs'"}, originHeader...)
	p.table(append(header, "µs of processor time", "p50, µs", "p99", "remote reads", "messages"), rows)
	return nil
}

// kv writes the table of the hash table's settings.
func (p *page) kv() error {
	var rows [][]string
	for _, v := range kvVariants {
		label := v.label
		if label == "" {
			label = "H = 8, values of 32 bytes, 90 % full, uniform, 1 machine"
		}
		lookups, updates := p.latencies(v.experiment, "lookup"), p.latencies(v.experiment, "update")
		all := p.figure(v.experiment, throughput)
		row := append([]string{label, all.short()}, p.origin(v.experiment, all)...)
		rows = append(rows, append(row, p.figure(v.experiment, usedSpace).short(), p.figure(v.experiment, processorTime).short(),
			p.figure(v.experiment, localReads).short(), p.figure(v.experiment, remoteReads).short(), p.figure(v.experiment, messages).short(),
			lookups[0], lookups[1], updates[0], updates[1],
		))
	}
	header := append([]string{"setting, where it is not the first row's", "operations a second"}, originHeader...)
	p.table(append(header, "of the memory keys and values, %", "µs of processor time",
		"local reads", "remote reads", "messages", "lookup: p50, µs", "p99", "update: p50, µs", "p99"), rows)
	return nil
}

// graph writes the table of the graph store, beside the paper's figures.
func (p *page) graph() error {
	var rows [][]string
	for _, v := range graphs {
		all, each := p.figure(v.experiment, throughput), p.figure(v.experiment, perProcessor(throughput))
		times := ""
		if v.replicas() >= paperReplicas {
			times = each.dividedBy(paperTao)
		}
		row := append([]string{v.label, all.short()}, p.origin(v.experiment, all)...)
		rows = append(rows, append(row, p.figure(v.experiment, processorTime).short(), each.short(), times,
			p.figure(v.experiment, localReads).short(), p.figure(v.experiment, remoteReads).short(), p.figure(v.experiment, allReads).short(), p.figure(v.experiment, messages).short(),
		))
	}
	header := append([]string{"what", "operations a second"}, originHeader...)
	p.table(append(header, "µs of processor time", "a second per processor kept busy",
		"times the paper's per hardware thread, "+number(paperTao), "local reads", "remote reads", "together; the paper: "+number(paperTaoReads), "messages"), rows)
	return nil
}

// latencies returns the 50th and the 99th percentile for a kind of transactions.
func (p *page) latencies(e experiment, kind string) [2]string {
	return [2]string{
		p.figure(e, kindMetric(kind, func(k *bench.KindResult) float64 { return k.P50 })).short(),
		p.figure(e, kindMetric(kind, func(k *bench.KindResult) float64 { return k.P99 })).short(),
	}
}

// latency writes the curves of the open loop, as tables and plots.
func (p *page) latency() error {
	for _, c := range curves {
		runs := p.runs[c.name]
		if len(runs) == 0 {
			p.line("TATP, %s: %s.\n", c.label, notMeasured)
			continue
		}
		if err := p.plot(c.name, "TATP, "+c.label+": latency over throughput", func(base string) error { return bench.PlotCurve(runs[0].results, base) }); err != nil {
			return err
		}
		var rows [][]string
		for _, res := range runs[0].results {
			t := &res.Total
			s := &res.Spread
			row := append([]string{number(res.Conditions.Rate), number(t.PerSecond)}, originOf(figure{low: s.Min, high: s.Max, n: s.Runs}, max(1, s.Runs), &res.Conditions)...)
			row = append(append(row, number(t.P50), number(t.P99), number(t.P999)), arrivalCells(res.Arrivals)...)
			rows = append(rows, append(row, fmt.Sprintf("%.1f", res.Conditions.Others)))
		}
		p.line("TATP, %s:\n", c.label)
		header := append([]string{"transactions a second that arrive", "that end"}, originHeader...)
		p.table(append(header, "p50, µs", "p99, µs", "p99.9, µs", "awaited ones began late: p99, µs", "had not ended at the end", "processors busy with other things"), rows)
	}
	return nil
}

// arrivalCells returns the cells of a row that say how exactly transactions arrived. Earlier
// results do not have them.
func arrivalCells(a *bench.Arrivals) []string {
	if a == nil {
		return []string{notMeasured, notMeasured}
	}
	return []string{number(a.LateP99), fmt.Sprint(a.Waiting)}
}
