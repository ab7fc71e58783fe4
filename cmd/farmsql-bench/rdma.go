package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/rdma"
	"github.com/farmsql/farmsql/internal/cli"
)

type rdmaCommand struct {
	Providers []string      `placeholder:"NAME,..." help:"local, shm, tcp, or verbs where there is an RDMA device and the program has the tag verbs. Without it all that there are here."`
	Only      []string      `placeholder:"NAME,..." help:"Experiments: size, stream, batch, signalled, outstanding, queues, memory, connections, messages, sequencer. Without it all."`
	MaxX      int           `name:"max" placeholder:"N" help:"Leave out what varies beyond N: sizes, machines, MiB."`
	Turn      time.Duration `default:"200ms" placeholder:"DURATION" help:"Measure each row so long (${default})."`
	From      string        `placeholder:"FILE" help:"Measure nothing: show the result that --json has written there."`
	JSON      string        `name:"json" placeholder:"FILE" help:"Write the result there, as JSON."`
	Page      string        `placeholder:"FILE" help:"Write the tables there, as Markdown."`
	Plot      string        `placeholder:"FILE" help:"Write plots to FILE.svg and FILE.png: rates over what is varied."`
}

// Help is shown by bench rdma --help.
func (rdmaCommand) Help() string {
	return `
Measures READ, WRITE, WRITE with immediate and SEND over each network that farmsql has, between
machines that are all in this process: by size, batch, wanted completions, outstanding operations,
queues, memory and connections, messages beside READs, and a sequencer by messages. Each row says
what an operation has asked for of calls, doorbells and work requests.`
}

// Run measures operations of networks.
func (c *rdmaCommand) Run(std cli.Streams) error {
	res, err := c.result(std)
	if errors.Is(err, rdma.ErrConfig) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	return errors.Join(res.Print(std.Out), writeTo(c.JSON, c.Plot, res), writePage(c.Page, res))
}

// result measures, or reads what has been measured.
func (c *rdmaCommand) result(std cli.Streams) (*rdma.Result, error) {
	if c.From != "" {
		return readRDMA(c.From)
	}
	if err := bench.Refuse(); err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	return rdma.Run(ctx, rdma.Config{Providers: c.Providers, Experiments: c.Only, MaxX: c.MaxX, Turn: c.Turn, Progress: bench.NewProgress(std.Err)})
}

func readRDMA(file string) (*rdma.Result, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	res := new(rdma.Result)
	if err := json.Unmarshal(b, res); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return res, nil
}

// writePage writes the tables, if a file is requested.
func writePage(file string, res *rdma.Result) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := res.WritePage(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o666)
}
