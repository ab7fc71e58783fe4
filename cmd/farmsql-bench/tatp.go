package main

import (
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/tatp"
	"github.com/farmsql/farmsql/internal/cli"
)

type tatpCommand struct {
	commonFlags
	Subscribers int `default:"100000" placeholder:"N" help:"Subscribers, of ten rows or so each (${default})."`
}

// Run measures TATP.
func (c *tatpCommand) Run(std cli.Streams, args []string) error {
	return c.measure(std, args, func(t *bench.Target) (bench.Workload, error) {
		return tatp.New(t, tatp.Config{Subscribers: c.Subscribers, Seed: c.Seed, Drop: c.Drop})
	})
}
