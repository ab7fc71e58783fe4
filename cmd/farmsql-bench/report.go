package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/report"
	"github.com/farmsql/farmsql/internal/cli"
)

type reportCommand struct {
	Results string   `required:"" placeholder:"FOLDER" help:"Where results are kept. What is there is not measured again, so that a report can be interrupted and gone on with."`
	Runs    int      `default:"3" placeholder:"N" help:"Run each experiment so often, in turns, and take the median (${default})."`
	Only    []string `placeholder:"NAME,..." help:"Measure only these experiments, or groups of them, as tatp, kv or compare."`
	Large   bool     `help:"Measure also what takes many minutes each: failures, other systems, 100 million rows (13 GB of memory)."`
	Quick   bool     `help:"Try out that all of it works: tiny data and runs of a moment, whose figures mean nothing."`
	Docs    string   `placeholder:"FILE" help:"Write tables between the markers of this document, as docs/benchmarks.md, and plots into the folder of the same name beside it."`
}

// Help is shown by bench report --help.
func (reportCommand) Help() string {
	return `
Runs the suite of benchmarks of docs/benchmarks.md, each as a process of its own, and writes that
document's tables and plots. The computer should do nothing else meanwhile.`
}

// Run measures the experiments without a result, and writes the document.
func (c *reportCommand) Run(std cli.Streams) error {
	if err := bench.Refuse(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	o := report.Options{
		Program: []string{self}, Folder: c.Results, Runs: c.Runs, Only: c.Only, Large: c.Large, Quick: c.Quick, Progress: std.Err,
	}
	err = report.Measure(ctx, o)
	if c.Docs != "" && (err == nil || errors.Is(err, report.ErrFailed)) {
		err = errors.Join(err, report.Write(o, c.Docs))
	}
	if errors.Is(err, report.ErrOptions) {
		return cli.UsageError(err.Error())
	}
	return err
}
