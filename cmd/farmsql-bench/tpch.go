package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/tpch"
	"github.com/farmsql/farmsql/internal/cli"
)

type tpchCommand struct {
	Program  string        `placeholder:"FILE" help:"The farmsql program. Without it the one in the folder of this program."`
	Scale    float64       `default:"0.1" placeholder:"N" help:"TPC-H's scale factor: 1 is 6 million lines of orders (${default})."`
	Rounds   int           `default:"4" placeholder:"N" help:"Executions of each query at each server. The first is shown apart, and the median of the others (${default})."`
	Patience time.Duration `default:"2m" placeholder:"DURATION" help:"How long an execution may take (${default})."`
	Data     string        `default:"/dev/shm" placeholder:"FOLDER" help:"Folder for the servers' data folders, which are removed (${default})."`
	Seed     uint64        `placeholder:"N" help:"What rows are drawn from. Without one it is drawn."`
	JSON     string        `name:"json" placeholder:"FILE" help:"Write the result there, as one JSON object."`
}

// Help is shown by bench tpch --help.
func (tpchCommand) Help() string {
	return `
Starts farmsql serve and MariaDB (mariadbd, mariadb-install-db), loads the same rows into both, and
sends them the queries of TPC-H in turns: processor time of the server and latency at one connection.
The results are compared with MariaDB's: a query whose result differs, or that fails, has no figures
but is reported, and the exit status is 1.`
}

// Run measures the queries.
func (c *tpchCommand) Run(std cli.Streams) error {
	if err := bench.Refuse(); err != nil {
		return err
	}
	if c.Program == "" {
		c.Program = filepath.Join(filepath.Dir(executable()), "farmsql")
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.Uint64N(1<<40)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	res, err := tpch.Measure(ctx, tpch.Config{
		Program: c.Program, Folder: c.Data, Scale: c.Scale, Rounds: c.Rounds, Patience: c.Patience, Seed: c.Seed, Progress: bench.NewProgress(std.Err),
	})
	if errors.Is(err, tpch.ErrConfig) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	return errors.Join(res.Print(std.Out), writeJSONTo(c.JSON, res), res.Wrong())
}
