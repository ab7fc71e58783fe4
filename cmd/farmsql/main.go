// Command farmsql runs the database: serve answers MySQL clients; demo runs three
// machines as processes, to be killed; status shows the state of machines; token lets
// machines of other hosts join; forget gives up data that waits for a machine which is gone, refound a majority that is lost; sql is a small client;
// doctor examines the host, and check a stopped database; save and restore copy
// one to a folder and back.
//
// It parses flags, wires the packages together and waits; everything else is in
// package farmsql. Errors are one line on stderr. Exit status: 0 success, 1
// failure, 2 wrong flags.
package main

import (
	"os"

	"github.com/farmsql/farmsql/internal/cli"
)

const description = `An embedded and networked main-memory database that speaks MySQL.

` + durability

// durability states the guarantees of the data folder. Every help text with a
// --data flag shows it, so that nobody overlooks it.
const durability = `WHAT SURVIVES: committed transactions live in the memory of the data folder. On tmpfs,
hugetlbfs or DAX backed by a battery they survive whatever the folder survives. On an
ordinary disk they survive a killed process (kill -9, crash of farmsql), but NOT A POWER
CUT or a crash of the operating system. Stop farmsql with SIGTERM before you power off;
started after a reboot without that, it refuses to open the folder and says how to go on.
For a data folder on tmpfs give --saves a folder on a disk.`

type commands struct {
	Serve   serveCommand   `cmd:"" help:"Run the database and answer MySQL clients."`
	Doctor  doctorCommand  `cmd:"" help:"Examine this computer for running the database, and say what to change."`
	SQL     sqlCommand     `cmd:"" name:"sql" help:"Run SQL: interactively, from --execute, or from standard input."`
	Demo    demoCommand    `cmd:"" help:"Run three machines as processes, to be killed, and show what happens."`
	Status  statusCommand  `cmd:"" help:"Show machines, leases, regions and recovery of a running database."`
	Token   tokenCommand   `cmd:"" help:"Make a token with which machines of other hosts can join a cluster that keeps its configuration itself."`
	Forget  forgetCommand  `cmd:"" help:"Give up regions of a cluster that wait for a machine whose memory is gone for ever."`
	Move    moveCommand    `cmd:"" help:"Move a replica of a region to another machine of a cluster."`
	Resize  resizeCommand  `cmd:"" help:"Change the number of replicas of a cluster while it runs."`
	Drain   drainCommand   `cmd:"" help:"Take the data off a machine of a cluster, so that it can be stopped for good."`
	Refound refoundCommand `cmd:"" help:"Make one machine the only one that keeps the configuration of a cluster, because most of those that did are lost for good."`
	Check   checkCommand   `cmd:"" help:"Examine a stopped database or cluster for leaks, orphans, broken indexes and replicas that differ."`
	Save    saveCommand    `cmd:"" help:"Save the memory of all machines of a stopped database or cluster."`
	Restore restoreCommand `cmd:"" help:"Bring a database or cluster back from what save has saved."`
	Sim     simCommand     `cmd:"" help:"Run clusters in a simulator, with faults, and check what they do."`
	Bench   benchCommand   `cmd:"" passthrough:"" help:"Measure farmsql, or another MySQL server, with the benchmarks of the papers: farmsql-bench does that."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

func main() {
	os.Exit(run(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run executes a command line, and returns the exit status.
func run(args []string, std cli.Streams) int {
	p := cli.Program{Name: "farmsql", Description: description, Commands: new(commands), Vars: defaults()}
	return p.Run(args, std)
}
