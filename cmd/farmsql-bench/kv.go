package main

import (
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/kv"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/txn/lookup"
)

type kvCommand struct {
	commonFlags
	Keys          int     `default:"1000000" placeholder:"N" help:"About so many keys of 16 bytes (${default}): the nearest number that fills a table to --occupancy."`
	ValueBytes    int     `default:"32" placeholder:"N" help:"Length of values (${default})."`
	InlineBytes   int     `placeholder:"N" help:"Keep values in the table's slots up to this length, longer ones in objects of their own. Without it all are in slots."`
	Updates       int     `default:"0" placeholder:"PERCENT" help:"Part of operations that are updates (${default})."`
	Zipf          float64 `default:"0" placeholder:"THETA" help:"Draw keys by a Zipf distribution, for example 0.99; 0 is uniformly."`
	Occupancy     int     `default:"90" placeholder:"PERCENT" help:"Part of the table's slots that are taken (${default})."`
	Neighbourhood int     `default:"8" placeholder:"H" help:"In how many slots a key can be, an even number (${default})."`
	Batch         int     `default:"1" placeholder:"N" help:"Look up so many keys together (${default})."`
	ByMessage     bool    `help:"Look keys up at other machines by messages, as HERD does: one to each primary for all of its keys of a --batch."`
	Lookups       string  `default:"measured" enum:"measured,one-sided,one-two-sided,two-sided" placeholder:"WAY" help:"When a lookup asks the primary, as in Storm: never (one-sided), after one READ that has not decided (one-two-sided), at once (two-sided), or after as many READs as cost what a message does (measured; ${default})."`
}

// Run measures lookups and updates.
func (c *kvCommand) Run(std cli.Streams, args []string) error {
	if c.Batch > 1 && len(c.Rate) > 0 {
		return cli.UsageError("--rate is of single lookups, and --batch is given")
	}
	way, err := lookup.ParseWay(c.Lookups)
	if err != nil {
		return cli.UsageError(err.Error())
	}
	if c.ByMessage && way != lookup.Measured {
		return cli.UsageError("--lookups is of lookups by READs, and --by-message is given")
	}
	return c.measure(std, args, func(t *bench.Target) (bench.Workload, error) {
		return kv.New(t, kv.Config{
			Keys: c.Keys, ValueBytes: c.ValueBytes, InlineBytes: c.InlineBytes, Updates: c.Updates, Zipf: c.Zipf, Occupancy: c.Occupancy,
			Neighbourhood: c.Neighbourhood, Lookups: way, Batch: c.Batch, ByMessage: c.ByMessage, Seed: c.Seed, Drop: c.Drop,
		})
	})
}
