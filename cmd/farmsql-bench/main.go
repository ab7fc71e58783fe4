// Command farmsql-bench measures farmsql, or another MySQL server, with the benchmarks of the
// papers, and writes the tables and plots of docs/benchmarks.md. farmsql bench starts this
// command.
package main

import (
	"fmt"
	"os"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

const description = `Measures farmsql, or another MySQL server, with the benchmarks of the papers.

Loads data, runs transactions on them, checks that the data are consistent, and prints throughput,
latency and the conditions under which they were measured. A run whose data are inconsistent has
no result. Nothing is kept: farmsql's data are in memory, or in a folder that is removed. At
the server of a DSN they stay.`

type commands struct {
	TATP tatpCommand `cmd:"" name:"tatp" help:"TATP: short transactions on the subscribers of a mobile telephone network."`
	TPCC tpccCommand `cmd:"" name:"tpcc" help:"TPC-C: orders, payments and deliveries of a wholesale supplier."`
	KV   kvCommand   `cmd:"" name:"kv" help:"Lookups and updates of random keys in a hash table that is nearly full."`
	TAO  taoCommand  `cmd:"" name:"tao" help:"A social graph: reads of nodes and edges as Facebook's TAO has them, few updates."`

	Shapes  shapesCommand  `cmd:"" help:"Statements as applications and ORMs send them, beside MariaDB: processor time and latency of each."`
	TPCH    tpchCommand    `cmd:"" name:"tpch" help:"The 22 queries of TPC-H, beside MariaDB: processor time and latency of each, and the same results."`
	Failure failureCommand `cmd:"" help:"What the failure of machines costs the others, while they run TATP."`
	Growth  growthCommand  `cmd:"" help:"What it costs the clients that machines join and leave, while they run TPC-C."`
	Lease   leaseCommand   `cmd:"" help:"How often leases run out although no machine has failed, by what keeps them."`
	RDMA    rdmaCommand    `cmd:"" name:"rdma" help:"READ, WRITE and SEND over each network: by size, batch, queues, connections."`
	Report  reportCommand  `cmd:"" help:"Run all benchmarks, and write the tables and plots of docs/benchmarks.md."`
}

func main() {
	os.Exit(run(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run executes a command line, and returns the exit status.
func run(args []string, std cli.Streams) int {
	p := cli.Program{Name: "farmsql-bench", Description: description, Commands: new(commands),
		Vars: map[string]string{"workers": fmt.Sprint(farmsql.DefaultWorkers())}}
	return p.Run(args, std)
}
