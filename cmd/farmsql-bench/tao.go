package main

import (
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/tao"
	"github.com/farmsql/farmsql/internal/cli"
)

type taoCommand struct {
	commonFlags
	Nodes    int  `default:"100000" placeholder:"N" help:"Nodes of the graph, with 4.35 edges each on average (${default})."`
	LockFree bool `help:"Only the operations that are lock-free reads, to see how many reads one takes."`
}

// Run measures the graph store.
func (c *taoCommand) Run(std cli.Streams, args []string) error {
	return c.measure(std, args, func(t *bench.Target) (bench.Workload, error) {
		return tao.New(t, tao.Config{Nodes: c.Nodes, LockFree: c.LockFree, Seed: c.Seed})
	})
}
