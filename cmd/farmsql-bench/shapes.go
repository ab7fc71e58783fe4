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
	"github.com/farmsql/farmsql/bench/shapes"
	"github.com/farmsql/farmsql/internal/cli"
)

type shapesCommand struct {
	Program string        `placeholder:"FILE" help:"The farmsql program. Without it the one in the folder of this program."`
	Rows    int64         `default:"100000" placeholder:"N" help:"Rows of the largest tables (${default})."`
	Rounds  int           `default:"3" placeholder:"N" help:"Turns of each shape at each server; medians are shown (${default})."`
	Turn    time.Duration `default:"100ms" placeholder:"DURATION" help:"Execute a shape so long in a turn, and at least three times (${default})."`
	Only    []string      `placeholder:"NAME,..." help:"Measure only groups and shapes that have this in their name."`
	Modes   []shapes.Mode `default:"text,prepared" placeholder:"MODE,..." help:"How statements are sent: text, with parameters in the text, or prepared (${default})."`
	Data    string        `default:"/dev/shm" placeholder:"FOLDER" help:"Folder for the servers' data folders, which are removed (${default})."`
	Seed    uint64        `placeholder:"N" help:"What parameters are drawn from. Without one it is drawn."`
	JSON    string        `name:"json" placeholder:"FILE" help:"Write the result there, as one JSON object."`
}

// Help is shown by bench shapes --help.
func (shapesCommand) Help() string {
	return `
Starts farmsql serve and MariaDB (mariadbd, mariadb-install-db), loads the same data into both, and
sends them statements as applications and ORMs do, in turns: processor time of the server and
latency at one connection. First it compares what both answer: a shape whose rows differ, or that
fails, is not measured but reported, and the exit status is 1.`
}

// Run measures shapes of statements.
func (c *shapesCommand) Run(std cli.Streams) error {
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
	res, err := shapes.Measure(ctx, shapes.Config{
		Program: c.Program, Folder: c.Data, Rows: c.Rows, Rounds: c.Rounds, Turn: c.Turn, Only: c.Only, Modes: c.Modes, Seed: c.Seed, Progress: bench.NewProgress(std.Err),
	})
	if errors.Is(err, shapes.ErrConfig) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	return errors.Join(res.Print(std.Out), writeJSONTo(c.JSON, res), res.Wrong())
}
