package main

import (
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/tpcc"
	"github.com/farmsql/farmsql/internal/cli"
)

type tpccCommand struct {
	commonFlags
	Warehouses int `default:"1" placeholder:"N" help:"Warehouses, of 500,000 rows or so each (${default})."`
	Customers  int `placeholder:"N" help:"Customers of a district: fewer than the specification's 3,000, to try something out. Results say so."`
	Items      int `placeholder:"N" help:"Items: fewer than the specification's 100,000, likewise."`
}

// Run measures TPC-C.
func (c *tpccCommand) Run(std cli.Streams, args []string) error {
	return c.measure(std, args, func(t *bench.Target) (bench.Workload, error) {
		return tpcc.New(t, tpcc.Config{Warehouses: c.Warehouses, Customers: c.Customers, Items: c.Items, Seed: c.Seed, Drop: c.Drop})
	})
}
