package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/lease"
	"github.com/farmsql/farmsql/internal/cli"
)

type leaseCommand struct {
	Lease    []time.Duration `default:"5ms,10ms,20ms,50ms,100ms,200ms,400ms" placeholder:"DURATION,..." help:"Lease times (${default})."`
	Variants []string        `placeholder:"NAME,..." help:"What keeps leases: calls (goroutines and timers), locked (a goroutine locked to its thread), thread (of C), realtime (a thread of C with real-time priority). Without it all that there are here."`
	Duration time.Duration   `default:"1m" placeholder:"DURATION" help:"Measure each variant so long, all lease times at once (${default})."`
	JSON     string          `name:"json" placeholder:"FILE" help:"Write the result there, as JSON."`
	Plot     string          `placeholder:"FILE" help:"Write plots to FILE.svg and FILE.png: false positives over lease time."`
}

// Help is shown by bench lease --help.
func (leaseCommand) Help() string {
	return `
Counts how often leases of three machines run out although none has failed, while all processors
are kept busy: Figure 16 of the FaRM paper (SOSP'15).`
}

// Run measures false positives.
func (c *leaseCommand) Run(std cli.Streams) error {
	if err := bench.Refuse(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	res, err := lease.Run(ctx, lease.Config{Leases: c.Lease, Variants: c.Variants, Duration: c.Duration, Progress: bench.NewProgress(std.Err)})
	if errors.Is(err, lease.ErrConfig) {
		return cli.UsageError(err.Error())
	}
	if err != nil {
		return err
	}
	return errors.Join(res.Print(std.Out), writeTo(c.JSON, c.Plot, res))
}
