// Command farmsql runs the database: serve answers MySQL clients, demo runs
// three machines as processes to be killed, status says how machines are, forget
// gives up what waits for a machine that is gone, sql is a small client for those
// who have none, check examines a stopped database, save and restore carry one to a
// folder and back.
//
// It parses flags, wires the packages together and waits; everything else is in
// package farmsql. Errors are one line on stderr. Exit status: 0 success, 1
// failure, 2 wrong flags.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

const description = `An embedded and networked main-memory database that speaks MySQL.

` + durability

// durability is the contract of the data folder. It stands in every help text
// that has a --data flag, because it is the one thing nobody may miss.
const durability = `WHAT SURVIVES: committed transactions live in the memory of the data folder. On tmpfs,
hugetlbfs or DAX backed by a battery they survive whatever the folder survives. On an
ordinary disk they survive a killed process (kill -9, crash of farmsql), but NOT A POWER
CUT or a crash of the operating system. Stop farmsql with SIGTERM before you power off;
started after a reboot without that, it refuses to open the folder and says how to go on.
For a data folder on tmpfs give --saves a folder on a disk.`

type commands struct {
	Serve   serveCommand   `cmd:"" help:"Run the database and answer MySQL clients."`
	SQL     sqlCommand     `cmd:"" name:"sql" help:"Run SQL: interactively, from --execute, or from standard input."`
	Demo    demoCommand    `cmd:"" help:"Run three machines as processes, to be killed, and show what happens."`
	Status  statusCommand  `cmd:"" help:"Show machines, leases, regions and recovery of a running database."`
	Forget  forgetCommand  `cmd:"" help:"Give up regions of a cluster that wait for a machine whose memory is gone for ever."`
	Check   checkCommand   `cmd:"" help:"Examine a stopped database or cluster for leaks, orphans, broken indexes and replicas that differ."`
	Save    saveCommand    `cmd:"" help:"Save the memory of all machines of a stopped database or cluster."`
	Restore restoreCommand `cmd:"" help:"Bring a database or cluster back from what save has saved."`
	Sim     simCommand     `cmd:"" help:"Run clusters in a simulator, with faults, and check what they do."`
	Bench   benchCommand   `cmd:"" help:"Measure farmsql, or another MySQL server, with the benchmarks of the papers."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// streams are the process's standard streams, replaced in tests.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

const (
	exitFailure = 1
	exitUsage   = 2
)

// errReported has been shown to the user already.
var errReported = errors.New("reported")

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run is main without the process: it returns the exit status.
func run(args []string, std streams) (status int) {
	exited := false // by --help, which has printed what was asked for
	var cli commands
	parser := kong.Must(&cli,
		kong.Name("farmsql"),
		kong.Description(description),
		kong.Writers(std.out, std.err),
		kong.Exit(func(code int) { exited, status = true, code }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 100}),
		kong.Vars(defaults()),
	)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	if exited {
		return status
	}
	if err != nil {
		fmt.Fprintf(std.err, "farmsql: %s (see farmsql %s--help)\n", oneLine(err), commandName(args))
		return exitUsage
	}
	if err := ctx.Run(std); err != nil {
		if !errors.Is(err, errReported) {
			fmt.Fprintf(std.err, "farmsql: %s\n", oneLine(err))
		}
		if errors.Is(err, errUsage) {
			return exitUsage
		}
		return exitFailure
	}
	return 0
}

// errUsage marks a combination of flags that cannot work.
var errUsage = errors.New("wrong flags")

// oneLine keeps an error on one line whatever it wraps.
func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "farmsql: ")), " ")
}

// commandName is the command among args, with a space, or nothing.
func commandName(args []string) string {
	for _, a := range args {
		switch a {
		case "serve", "sql", "demo", "status", "forget", "check", "save", "restore", "sim", "bench", "version":
			return a + " "
		}
	}
	return ""
}
