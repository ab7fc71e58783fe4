package report

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
)

// A pair is the same benchmark with two builds of farmsql-bench: optimised by the profile
// cmd/farmsql/default.pgo, as go build does it, and without a profile.
type pair struct {
	label            string
	guided, unguided experiment
}

// pairs are the benchmarks from which the profile was taken (make profile), though with other data.
// So they show the largest gain to be expected of the profile.
var pairs = []pair{
	withoutProfile("TATP, 1 machine, 1 thread, 1,000,000 subscribers", tatp1M),
	withoutProfile("TPC-C, 1 machine, 1 thread, 1 warehouse", tpcc1),
	withoutProfile("lookups, 1 machine, 1 thread, 15.1 M keys", kv15M),
	withoutProfile("TATP, 3 machines over `rdma/shm`, 3 replicas, 1 thread each", tatp3),
	withoutProfile("TATP over SQL, 1 machine, 2 threads", experiment{name: "guided-tatp-sql",
		args: "tatp --api sql --subscribers 100000 --threads 2" + closed, isLarge: true}),
}

// withoutProfile pairs an experiment with the same experiment of a build without the profile. The
// second runs only if it is asked for, since the whole program is compiled for it.
func withoutProfile(label string, e experiment) pair {
	plain := e
	plain.name, plain.isUnguided, plain.isLarge = "unguided-"+e.name, true, true
	return pair{label, e, plain}
}

func pairedExperiments() (es []experiment) {
	for _, c := range pairs {
		es = append(es, c.guided, c.unguided)
	}
	return es
}

// guided writes the table that shows how much profile-guided optimisation gains.
func (p *page) guided() error {
	var rows [][]string
	for _, c := range pairs {
		with, without := p.figure(c.guided, throughput), p.figure(c.unguided, throughput)
		row := append([]string{c.label, with.short(), without.short(), with.dividedBy(without.median)}, p.origin(c.unguided, without)...)
		rows = append(rows, append(row, p.figure(c.guided, processorTime).short(), p.figure(c.unguided, processorTime).short()))
	}
	header := append([]string{"what", "a second, by the profile", "without", "times"}, originHeader...)
	p.table(append(header, "µs of processor time, by the profile", "without"), rows)
	return nil
}

// buildUnguided builds farmsql-bench without a profile, from the source in the current folder, if
// an experiment that lacks a result needs it.
func (o *Options) buildUnguided(ctx context.Context, ts []turn) error {
	isWanted := slices.ContainsFunc(ts, func(t turn) bool { return t.isUnguided && !o.has(t) })
	if len(o.Unguided) > 0 || !isWanted {
		return nil
	}
	program, err := filepath.Abs(filepath.Join(o.Folder, "farmsql-bench.unguided"))
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "gms_pure_go", "-pgo=off", "-o", program, "./cmd/farmsql-bench")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("report: go build -pgo=off: %w: %s", err, lastLine(string(out)))
	}
	o.Unguided = []string{program}
	return nil
}
