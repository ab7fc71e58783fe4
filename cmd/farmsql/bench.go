package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/kv"
	"github.com/farmsql/farmsql/bench/tatp"
)

type benchCommand struct {
	TATP benchTATPCommand `cmd:"" name:"tatp" help:"TATP: short transactions on the subscribers of a mobile telephone network."`
	TPCC benchTPCCCommand `cmd:"" name:"tpcc" help:"TPC-C: orders, payments and deliveries of a wholesale supplier."`
	KV   benchKVCommand   `cmd:"" name:"kv" help:"Lookups and updates of random keys in a hash table that is nearly full."`
}

// benchFlags are those of all benchmarks.
type benchFlags struct {
	API       string        `default:"native" enum:"native,sql" help:"native: transactions on objects and indexes, in this process. sql: prepared statements (${default})."`
	DSN       string        `name:"dsn" placeholder:"DSN" help:"With --api sql: measure the MySQL server there, in place of farmsql in this process: user:password@tcp(host:port)/"`
	Drop      bool          `help:"With --dsn: remove the benchmark's database if there is one, and all that is in it."`
	Machines  int           `default:"1" placeholder:"N" help:"FaRM machines, all in this process (${default})."`
	Replicas  int           `default:"1" placeholder:"N" help:"Machines that hold each region (${default})."`
	Workers   int           `placeholder:"N" help:"Workers per machine (${workers} on this computer)."`
	Transport string        `default:"local" enum:"local,shm" help:"How machines reach each other: local, or shm, as if they were processes of one host (${default})."`
	Threads   int           `default:"1" placeholder:"N" help:"Clients that run transactions at a time (${default})."`
	WarmUp    time.Duration `default:"2s" placeholder:"DURATION" help:"Run so long before what is measured (${default})."`
	Duration  time.Duration `default:"10s" placeholder:"DURATION" help:"Measure so long (${default})."`
	Rate      []float64     `placeholder:"N,..." help:"Open loop: so many transactions arrive in a second, at all threads together. With several rates one run after the other, plotted as latency over throughput. Without one each thread begins the next transaction when the last has ended."`
	Seed      uint64        `placeholder:"N" help:"What data and transactions are drawn from. Without one it is drawn."`
	JSON      string        `name:"json" placeholder:"FILE" help:"Write the results there, one JSON object for each run."`
	Plot      string        `placeholder:"FILE" help:"Write plots to FILE.svg and FILE.png: throughput over time, or latency over throughput."`
	Profile   string        `placeholder:"FILE" help:"Write a CPU profile of the measured time of the last run there, for go tool pprof."`
}

// Help is shown by bench --help.
func (benchCommand) Help() string {
	return `
Loads data, runs transactions on them, checks that the data are consistent, and prints throughput,
latency and the conditions under which they were measured. A run whose data are inconsistent has
no result. Nothing is kept: farmsql's data are in memory. At the server of a DSN they stay.`
}

// config is the target's configuration.
func (f *benchFlags) config() bench.TargetConfig {
	return bench.TargetConfig{
		API: bench.API(f.API), DSN: f.DSN, Machines: f.Machines, Replicas: f.Replicas, Workers: f.Workers, Transport: f.Transport,
	}
}

func (f *benchFlags) validate() error {
	switch {
	case f.Threads < 1:
		return usageError(fmt.Sprintf("--threads is %d, must be at least 1", f.Threads))
	case f.WarmUp < 0 || f.Duration <= 0:
		return usageError(fmt.Sprintf("--warm-up is %v and --duration is %v, must be positive", f.WarmUp, f.Duration))
	case f.Workers < 0:
		return usageError(fmt.Sprintf("--workers is %d, must be positive", f.Workers))
	case f.Drop && f.DSN == "":
		return usageError("--drop is given, and no --dsn")
	}
	for _, rate := range f.Rate {
		if !(rate > 0) {
			return usageError(fmt.Sprintf("--rate is %v, must be positive", rate))
		}
	}
	return nil
}

// measure opens the target, loads the workload that make makes for it, and runs it.
func (f *benchFlags) measure(std streams, make func(*bench.Target) (bench.Workload, error)) (err error) {
	if err := errors.Join(f.validate(), bench.Refuse()); err != nil {
		return err
	}
	if f.Seed == 0 {
		f.Seed = 1 + rand.Uint64N(1<<40)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	target, err := bench.Open(ctx, f.config())
	if errors.Is(err, bench.ErrTarget) {
		return usageError(err.Error())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	w, err := make(target)
	if err != nil {
		return usageError(err.Error())
	}
	progress := bench.NewProgress(std.err)
	if err := w.Load(ctx, progress); err != nil {
		return err
	}
	results, err := f.runs(ctx, std, target, w, progress)
	return errors.Join(err, f.write(results))
}

// runs runs the workload once, or once for each rate, and prints what comes out.
func (f *benchFlags) runs(ctx context.Context, std streams, target *bench.Target, w bench.Workload, progress *bench.Progress) (results []*bench.Result, err error) {
	rates := f.Rate
	if len(rates) == 0 {
		rates = []float64{0}
	}
	for _, rate := range rates {
		var profile bytes.Buffer
		o := bench.Options{Threads: f.Threads, WarmUp: f.WarmUp, Duration: f.Duration, Rate: rate, Seed: f.Seed, Progress: progress}
		if f.Profile != "" {
			o.Profile = &profile
		}
		res, err := bench.Run(ctx, target, w, o)
		if err != nil {
			return results, err
		}
		results = append(results, res)
		if err := res.Print(std.out); err != nil {
			return results, err
		}
		if f.Profile != "" {
			if err := os.WriteFile(f.Profile, profile.Bytes(), 0o666); err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// write writes what there is to the files that were asked for.
func (f *benchFlags) write(results []*bench.Result) error {
	if len(results) == 0 {
		return nil
	}
	if f.JSON != "" {
		var b bytes.Buffer
		for _, r := range results {
			if err := r.WriteJSON(&b); err != nil {
				return err
			}
		}
		if err := os.WriteFile(f.JSON, b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	switch {
	case f.Plot == "":
		return nil
	case len(results) > 1:
		return bench.PlotCurve(results, bench.PlotBase(f.Plot))
	}
	return results[0].PlotTime(bench.PlotBase(f.Plot))
}

type benchTATPCommand struct {
	benchFlags
	Subscribers int `default:"100000" placeholder:"N" help:"Subscribers, of ten rows or so each (${default})."`
}

// Run measures TATP.
func (c *benchTATPCommand) Run(std streams) error {
	return c.measure(std, func(t *bench.Target) (bench.Workload, error) {
		return tatp.New(t, tatp.Config{Subscribers: c.Subscribers, Seed: c.Seed, Drop: c.Drop})
	})
}

type benchKVCommand struct {
	benchFlags
	Keys          int     `default:"1000000" placeholder:"N" help:"About so many keys of 16 bytes (${default}): the nearest number that fills a table to --occupancy."`
	ValueBytes    int     `default:"32" placeholder:"N" help:"Length of values (${default})."`
	Updates       int     `default:"0" placeholder:"PERCENT" help:"Part of operations that are updates (${default})."`
	Zipf          float64 `default:"0" placeholder:"THETA" help:"Draw keys by a Zipf distribution, for example 0.99; 0 is uniformly."`
	Occupancy     int     `default:"90" placeholder:"PERCENT" help:"Part of the table's slots that are taken (${default})."`
	Neighbourhood int     `default:"8" placeholder:"H" help:"In how many slots a key can be (${default})."`
	OneTwoSided   bool    `help:"Ask the primary if one read does not decide, as in Storm, in place of more reads."`
}

// Run measures lookups and updates.
func (c *benchKVCommand) Run(std streams) error {
	return c.measure(std, func(t *bench.Target) (bench.Workload, error) {
		return kv.New(t, kv.Config{
			Keys: c.Keys, ValueBytes: c.ValueBytes, Updates: c.Updates, Zipf: c.Zipf, Occupancy: c.Occupancy,
			Neighbourhood: c.Neighbourhood, OneTwoSided: c.OneTwoSided, Seed: c.Seed, Drop: c.Drop,
		})
	})
}
