package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/signal"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/failure"
	"github.com/farmsql/farmsql/bench/tatp"
	"github.com/farmsql/farmsql/internal/cli"
)

type failureCommand struct {
	Kill        failure.Kind  `default:"machine" enum:"machine,cm,domain" help:"What is killed: a machine that is not the CM, the CM, or all machines of a failure domain (${default})."`
	By          failure.Way   `default:"kill" enum:"kill,stop" help:"How: kill, with SIGKILL, which the others notice by connections that break, or stop, with SIGSTOP, which they notice by leases that run out, as where a host is gone (${default})."`
	Runs        int           `default:"1" placeholder:"N" help:"Failures, one after the other: the killed machines are started again, and filled, before the next (${default})."`
	Pace        farmsql.Pace  `default:"slow" enum:"slow,aggressive" help:"How hard data recovery works: slow, which transactions hardly notice, or aggressive (${default})."`
	API         bench.API     `default:"native" enum:"native,sql" help:"native: clients run transactions on objects and indexes, in the machines' processes. sql: prepared statements; each machine serves MySQL on a free port of this computer, and its clients come there. The machines are to be killed and started, so there is no --dsn (${default})."`
	Transport   string        `default:"shm" placeholder:"shm" help:"How machines reach each other: shm, shared memory, the one by which machines that are processes do (${default})."`
	Machines    int           `default:"5" placeholder:"N" help:"FaRM machines, each a process (${default})."`
	Replicas    int           `default:"3" placeholder:"N" help:"Machines that hold each region (${default})."`
	Domains     int           `placeholder:"N" help:"Failure domains that the machines are dealt out to. Without it each machine is one."`
	Workers     int           `default:"1" placeholder:"N" help:"Workers per machine (${default})."`
	Threads     int           `default:"1" placeholder:"N" help:"Clients of each machine that run transactions at a time (${default})."`
	Lease       time.Duration `placeholder:"DURATION" help:"How long a machine may be silent before the others go on without it. The default is what can be kept punctually here."`
	RegionSize  farmsql.Size  `default:"32MiB" placeholder:"SIZE" help:"Unit of placement and replication (${default}). What is to be filled after a failure is blocks of a 128th of it, up to 1 MiB."`
	Subscribers int           `default:"20000" placeholder:"N" help:"TATP's subscribers (${default})."`
	WarmUp      time.Duration `default:"1s" placeholder:"DURATION" help:"Run so long before what is measured, each time (${default})."`
	Before      time.Duration `default:"1s" placeholder:"DURATION" help:"Measure so long before the failure (${default})."`
	After       time.Duration `default:"500ms" placeholder:"DURATION" help:"Measure at least so long after all regions are active again, and until replicas are filled (${default})."`
	Seed        uint64        `placeholder:"N" help:"What data and transactions are drawn from. Without one it is drawn."`
	JSON        string        `name:"json" placeholder:"FILE" help:"Write the result there, as one JSON object."`
	Plot        string        `placeholder:"FILE" help:"Write a plot of the median run to FILE.svg and FILE.png: throughput by the millisecond around the failure, and until replicas are filled."`

	// The flags of a machine's process.
	Machine int    `hidden:""`
	Folder  string `hidden:""`
}

// Help is shown by bench failure --help.
func (failureCommand) Help() string {
	return `
Runs TATP on machines that are processes over shared memory, and kills some with SIGKILL or stops
them. Measures the throughput of the others, and the times at which they suspected the failure,
reconfigured and recovered (SOSP'15 section 6.4). The data are checked after each failure, and all
replicas are compared after the last; a run whose data are inconsistent, or whose replicas differ,
has no result.`
}

// flags returns the flags that this benchmark has in common with the others. Duration and Runs have
// values that pass validate, and are not used.
func (c *failureCommand) flags() commonFlags {
	return commonFlags{
		API: string(c.API), Transport: c.Transport, Machines: c.Machines, Replicas: c.Replicas, Workers: c.Workers,
		Threads: c.Threads, WarmUp: c.WarmUp, Duration: time.Second, Runs: 1, Seed: c.Seed, Machine: c.Machine, Folder: c.Folder,
	}
}

func (c *failureCommand) target() bench.TargetConfig {
	f := c.flags()
	t := f.config()
	t.Domains, t.LeaseTime, t.RecoveryPace, t.RegionSize = c.Domains, c.Lease, c.Pace, c.RegionSize
	return t
}

func (c *failureCommand) config(p *bench.Progress) failure.Config {
	return failure.Config{
		Kill: c.Kill, Way: c.By, Runs: c.Runs, Target: c.target(), Threads: c.Threads, WarmUp: c.WarmUp, Before: c.Before, After: c.After,
		Seed: c.Seed, Progress: p,
	}
}

func (c *failureCommand) workload(t *bench.Target) (bench.Workload, error) {
	return tatp.New(t, tatp.Config{Subscribers: c.Subscribers, Seed: c.Seed})
}

// Run measures failures.
func (c *failureCommand) Run(std cli.Streams, args []string) (err error) {
	f := c.flags()
	if err := errors.Join(f.validate(), bench.Refuse()); err != nil {
		return err
	}
	if c.Folder != "" {
		return f.serveAs(std, c.target(), c.workload)
	}
	progress := bench.NewProgress(std.Err)
	if err := c.config(progress).Validate(); err != nil {
		return cli.UsageError(err.Error())
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.Uint64N(1<<40)
		f.Seed = c.Seed
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	log := new(failure.Log)
	cl := f.cluster(args)
	cl.Target, cl.Log = c.target(), log.Add
	machines, err := bench.OpenCluster(ctx, cl)
	if errors.Is(err, bench.ErrTarget) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, machines.Close()) }()
	if err := machines.Load(ctx, progress); err != nil {
		return err
	}
	res, err := failure.Measure(ctx, machines, log, c.config(progress))
	if err != nil {
		return err
	}
	if err := machines.Compare(ctx); err != nil {
		return err
	}
	res.ReplicasCompared = true
	return errors.Join(res.Print(std.Out), writeTo(c.JSON, c.Plot, res))
}
