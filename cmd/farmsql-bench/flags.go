package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/internal/cli"
)

// commonFlags are the flags of all benchmarks.
type commonFlags struct {
	API       string        `default:"native" enum:"native,sql" help:"native: transactions on objects and indexes, in the machines' processes. sql: prepared statements (${default})."`
	DSN       string        `name:"dsn" placeholder:"DSN" help:"With --api sql: measure the server there, in place of farmsql in this process: a MySQL server, user:password@tcp(host:port)/, or PostgreSQL, postgres://user:password@host:port/database"`
	ServerPID []int         `name:"server-pid" placeholder:"PID,..." help:"With --dsn: measure the processor time that these processes of this computer and their children take, the server's."`
	Drop      bool          `help:"With --dsn: remove the benchmark's database if there is one, and all that is in it."`
	Machines  int           `default:"1" placeholder:"N" help:"FaRM machines (${default})."`
	Replicas  int           `default:"1" placeholder:"N" help:"Machines that hold each region (${default})."`
	Workers   int           `placeholder:"N" help:"Workers per machine (${workers} on this computer)."`
	Transport string        `default:"local" enum:"local,shm,tcp,hosts" help:"How machines reach each other: local, all in this process, or each a process of its own: shm, shared memory; tcp, the loopback interface without TLS; hosts, TCP with TLS between network namespaces, for root (${default})."`
	Threads   int           `default:"1" placeholder:"N" help:"Clients of each machine that run transactions at a time (${default})."`
	WarmUp    time.Duration `default:"2s" placeholder:"DURATION" help:"Run so long before what is measured (${default})."`
	Duration  time.Duration `default:"10s" placeholder:"DURATION" help:"Measure so long (${default})."`
	Runs      int           `default:"1" placeholder:"N" help:"Run so often on the same data, each with the next seed, and show the median run and how far they are apart (${default})."`
	Data      string        `placeholder:"FOLDER" help:"Keep the machines' memory in files in a new folder there, on a tmpfs or a disk, in place of ordinary memory. With --transport=local."`
	Saves     string        `placeholder:"FOLDER" help:"With --data: save the memory at the end to a new folder there. Both are removed."`
	Rate      []float64     `placeholder:"N,..." help:"Open loop: so many transactions arrive in a second, at all threads of all machines together. With several rates one run after the other, plotted as latency over throughput. Without one each thread begins the next transaction when the last has ended."`
	Seed      uint64        `placeholder:"N" help:"What data and transactions are drawn from. Without one it is drawn."`
	JSON      string        `name:"json" placeholder:"FILE" help:"Write the results there, one JSON object for each run."`
	Plot      string        `placeholder:"FILE" help:"Write plots to FILE.svg and FILE.png: throughput over time, or latency over throughput."`
	Profile   string        `placeholder:"FILE" help:"Profile the measured time of the last run, for go tool pprof: processor time to FILE, allocations to FILE.allocs (with -base FILE.allocs.base), waiting for locks to FILE.mutex, for anything to FILE.block. Of machines that are processes FILE is FILE.0, FILE.1 and so on."`

	// The flags of a machine's process.
	Machine int    `hidden:""`
	Folder  string `hidden:""`
}

// config returns the target's configuration.
func (f *commonFlags) config() bench.TargetConfig {
	return bench.TargetConfig{
		API: bench.API(f.API), DSN: f.DSN, ServerProcesses: f.ServerPID, Machines: f.Machines, Replicas: f.Replicas, Workers: f.Workers, Transport: f.Transport,
		DataFolder: f.Data, Saves: f.Saves,
	}
}

func (f *commonFlags) validate() error {
	switch {
	case f.Threads < 1:
		return cli.UsageError(fmt.Sprintf("--threads is %d, must be at least 1", f.Threads))
	case f.Runs < 1:
		return cli.UsageError(fmt.Sprintf("--runs is %d, must be at least 1", f.Runs))
	case f.WarmUp < 0 || f.Duration <= 0:
		return cli.UsageError(fmt.Sprintf("--warm-up is %v and --duration is %v, must be positive", f.WarmUp, f.Duration))
	case f.Workers < 0:
		return cli.UsageError(fmt.Sprintf("--workers is %d, must be positive", f.Workers))
	case f.Drop && f.DSN == "":
		return cli.UsageError("--drop is given, and no --dsn")
	}
	for _, rate := range f.Rate {
		if !(rate > 0) {
			return cli.UsageError(fmt.Sprintf("--rate is %v, must be positive", rate))
		}
	}
	return nil
}

// A system is an open target with its workload.
type system interface {
	Load(ctx context.Context, p *bench.Progress) error
	Run(ctx context.Context, o bench.Options) (*bench.Result, error)
	// Compare compares the replicas after all runs, and records that in the results. If Run has
	// compared them, Compare does nothing.
	Compare(ctx context.Context, results ...*bench.Result) error
	Close() error
}

// A newWorkload makes the workload for a target.
type newWorkload func(*bench.Target) (bench.Workload, error)

// measure opens the target, loads the workload and runs it. If this process was started as a
// machine of another one's measurement, it serves as that machine instead.
func (f *commonFlags) measure(std cli.Streams, args []string, workload newWorkload) (err error) {
	if err := errors.Join(f.validate(), bench.Refuse()); err != nil {
		return err
	}
	if f.Folder != "" {
		return f.serve(std, workload)
	}
	if f.Seed == 0 {
		f.Seed = 1 + rand.Uint64N(1<<40)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	s, err := f.open(ctx, args, workload)
	if errors.Is(err, bench.ErrTarget) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	progress := bench.NewProgress(std.Err)
	if err := s.Load(ctx, progress); err != nil {
		return err
	}
	results, err := f.runs(ctx, s, progress)
	if err == nil {
		if err := s.Compare(ctx, results...); err != nil {
			return err
		}
	}
	for _, res := range results {
		err = errors.Join(err, res.Print(std.Out))
	}
	return errors.Join(err, f.write(results))
}

func (f *commonFlags) open(ctx context.Context, args []string, workload newWorkload) (system, error) {
	if c := f.config(); c.HasProcesses() && f.DSN == "" {
		return bench.OpenCluster(ctx, f.cluster(args))
	}
	t, err := bench.Open(ctx, f.config())
	if err != nil {
		return nil, err
	}
	w, err := workload(t)
	if err != nil {
		return nil, errors.Join(cli.UsageError(err.Error()), t.Close())
	}
	return &oneProcess{t, w}, nil
}

// oneProcess is a system whose machines are in this process, or a server that runs already.
type oneProcess struct {
	target   *bench.Target
	workload bench.Workload
}

func (s *oneProcess) Load(ctx context.Context, p *bench.Progress) error {
	return s.workload.Load(ctx, p)
}

func (s *oneProcess) Run(ctx context.Context, o bench.Options) (*bench.Result, error) {
	return bench.Run(ctx, s.target, s.workload, o)
}

func (s *oneProcess) Compare(context.Context, ...*bench.Result) error { return nil }

func (s *oneProcess) Close() error { return s.target.Close() }

// cluster returns a configuration whose machines run this command again, with a flag for the
// machine's number.
func (f *commonFlags) cluster(args []string) bench.ClusterConfig {
	return bench.ClusterConfig{
		Target: f.config(),
		Command: func(machine int, folder string) *exec.Cmd {
			own := []string{"--seed", strconv.FormatUint(f.Seed, 10), "--machine", strconv.Itoa(machine), "--folder", folder}
			return exec.Command(executable(), append(slices.Clone(args), own...)...)
		},
	}
}

// executable returns the path of this program.
func executable() string {
	file, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return file
}

// serve runs a machine of a cluster, from its start to its end.
func (f *commonFlags) serve(std cli.Streams, workload newWorkload) error {
	return f.serveAs(std, f.config(), workload)
}

// serveAs is like serve, for a target that the flags do not describe fully.
func (f *commonFlags) serveAs(std cli.Streams, target bench.TargetConfig, workload newWorkload) error {
	cfg := bench.MachineConfig{
		Target: target, Folder: f.Folder, Machine: f.Machine, Log: slog.New(slog.NewJSONHandler(std.Err, nil)),
	}
	if f.Profile != "" {
		cfg.Profile = f.Profile + "." + strconv.Itoa(f.Machine)
	}
	return bench.ServeMachine(context.Background(), cfg, workload, std.In, std.Out)
}

// runs executes the configured number of runs, at each rate if there are several, and returns the
// median run of each rate. After an error, it also returns the results up to then.
func (f *commonFlags) runs(ctx context.Context, s system, progress *bench.Progress) (results []*bench.Result, err error) {
	rates := f.Rate
	if len(rates) == 0 {
		rates = []float64{0}
	}
	for i, rate := range rates {
		o := bench.Options{Threads: f.Threads, WarmUp: f.WarmUp, Duration: f.Duration, Rate: rate, Seed: f.Seed, Progress: progress}
		var runs []*bench.Result
		for n := range f.Runs {
			if i == len(rates)-1 && n == f.Runs-1 {
				o.Profile = f.Profile
			}
			res, err := s.Run(ctx, o)
			if err != nil {
				return results, err
			}
			runs = append(runs, res)
			o.Seed++
		}
		results = append(results, bench.Median(runs))
	}
	return results, nil
}

// write writes the results to the files named by the flags.
func (f *commonFlags) write(results []*bench.Result) error {
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

// A written is the result of a benchmark that produces no bench.Result.
type written interface{ WriteJSON(w io.Writer) error }

// A plotted is one that can be plotted, too.
type plotted interface {
	written
	Plot(base string) error
}

// writeTo writes the result to the requested files.
func writeTo(jsonFile, plot string, res plotted) error {
	if err := writeJSONTo(jsonFile, res); err != nil || plot == "" {
		return err
	}
	return res.Plot(bench.PlotBase(plot))
}

// writeJSONTo writes the result to a file, if one is requested.
func writeJSONTo(file string, res written) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := res.WriteJSON(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o666)
}
