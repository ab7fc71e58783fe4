package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/growth"
	"github.com/farmsql/farmsql/bench/tpcc"
	"github.com/farmsql/farmsql/internal/cli"
)

type growthCommand struct {
	Program    string        `placeholder:"FILE" help:"The farmsql program. Without it the one in the folder of this program."`
	Replicas   int           `default:"1" placeholder:"N" help:"Machines that hold each region. The cluster begins with as many machines (one more if that is even), and the number changes only with --resize (${default})."`
	Resize     int           `placeholder:"N" help:"Give regions so many replicas, by farmsql resize, when all machines have joined. Without it their number does not change."`
	Machines   int           `default:"5" placeholder:"N" help:"Machines to which the cluster grows (${default})."`
	Back       int           `default:"3" placeholder:"N" help:"Machines to which it shrinks then (${default})."`
	Clients    int           `placeholder:"N" help:"Clients of all machines together that run transactions at a time. Without it two for each of --machines."`
	Workers    int           `default:"1" placeholder:"N" help:"Workers per machine (${default})."`
	Warehouses int           `default:"12" placeholder:"N" help:"TPC-C's scale (${default})."`
	Customers  int           `default:"300" placeholder:"N" help:"Customers of a district; the specification has 3000 (${default})."`
	Items      int           `default:"5000" placeholder:"N" help:"Items; the specification has 100000 (${default})."`
	RegionSize farmsql.Size  `default:"2MiB" placeholder:"SIZE" help:"Unit of placement and replication (${default}): there must be at least some tens of regions, or machines cannot be even within 20 %."`
	Lease      time.Duration `default:"400ms" placeholder:"DURATION" help:"How long a machine may be silent before the others go on without it. Regions begin to move when the machines have been the same for 100 times as long (${default})."`
	Pace       farmsql.Pace  `default:"slow" enum:"slow,aggressive" help:"How hard machines work to copy regions: slow, which transactions hardly notice, or aggressive (${default})."`
	WarmUp     time.Duration `default:"5s" placeholder:"DURATION" help:"Run so long before what is measured (${default})."`
	Between    time.Duration `default:"10s" placeholder:"DURATION" help:"Run undisturbed so long before and after each step (${default})."`
	Data       string        `default:"/dev/shm" placeholder:"FOLDER" help:"Folder for the machines' data folders, which are removed (${default})."`
	Seed       uint64        `placeholder:"N" help:"What data and transactions are drawn from. Without one it is drawn."`
	JSON       string        `name:"json" placeholder:"FILE" help:"Write the result there, as one JSON object."`
	Plot       string        `placeholder:"FILE" help:"Write a plot to FILE.svg and FILE.png: throughput by the second, and the replicas of each machine."`
}

// Help is shown by bench growth --help.
func (growthCommand) Help() string {
	return `
Runs TPC-C over MySQL on machines that are processes of farmsql serve, reach each other over TCP
with TLS, and keep the configuration themselves. Machines join with tokens, one after the other;
the number of replicas changes (--resize); regions move to them; then machines are drained and stopped, the last first. The clients spread over
the machines that serve. At the end the data are checked: a run whose data are inconsistent, or that
lacks an acknowledged order, has no result. Exits 1 if the bytes or the primaries of the machines are more
than 20 % of their mean apart after growing or after shrinking.`
}

func (c *growthCommand) config(p *bench.Progress) growth.Config {
	return growth.Config{
		Program: c.Program, Data: c.Data, Replicas: c.Replicas, Machines: c.Machines, Back: c.Back, Resize: c.Resize, Workers: c.Workers, RegionSize: c.RegionSize,
		Lease: c.Lease, Pace: c.Pace, Clients: c.Clients, WarmUp: c.WarmUp, Between: c.Between, Seed: c.Seed, Progress: p,
	}
}

func (c *growthCommand) workload(t *bench.Target) (bench.Workload, error) {
	return tpcc.New(t, tpcc.Config{Warehouses: c.Warehouses, Customers: c.Customers, Items: c.Items, Seed: c.Seed})
}

// Run measures growth.
func (c *growthCommand) Run(std cli.Streams) error {
	if c.Program == "" {
		c.Program = filepath.Join(filepath.Dir(executable()), "farmsql")
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.Uint64N(1<<40)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	res, err := growth.Measure(ctx, c.config(bench.NewProgress(std.Err)), c.workload)
	if errors.Is(err, growth.ErrConfig) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	return errors.Join(res.Print(std.Out), writeTo(c.JSON, c.Plot, res), res.Uneven())
}
