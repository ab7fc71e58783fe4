package main

import (
	"context"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/cli"
)

type checkCommand struct {
	offlineFlags
	Saves string `placeholder:"FOLDER" help:"See farmsql serve."`
	Trust bool   `help:"See farmsql serve."`
}

// Help is shown by check --help.
func (checkCommand) Help() string {
	return durability + `

Opens the folder as serve would, which finishes what a killed process had begun, then walks
every object, index and catalog entry, and compares all replicas. Exits 0 if all is well and 1 if
anything is not. With --cluster, no machine of the cluster may run, and the folders of all machines
of its configuration must be here: for the time of the check they run in this process, as if all had
been started again.`
}

// Run checks the folder and prints what it found.
func (c *checkCommand) Run(std cli.Streams) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	db, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	report, err := db.Check(ctx)
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	fmt.Fprint(std.Out, report)
	if !report.OK() {
		return fmt.Errorf("%s in %s", plural(len(report.Problems), "problem", "problems"), strings.Join(c.Data, ", "))
	}
	return nil
}

// open opens the data folder, or the saved copy, that is to be checked.
func (c *checkCommand) open(ctx context.Context, std cli.Streams) (*farmsql.DB, error) {
	cfg := farmsql.Config{Saves: c.Saves, Trust: c.Trust}
	cfg.Logger = slog.New(slog.NewTextHandler(std.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if c.Cluster != "" {
		o := c.offline()
		o.Trust = c.Trust
		return farmsql.OpenStopped(ctx, o, cfg)
	}
	if len(c.Data) > 1 {
		return nil, cli.UsageError("several data folders (--data) are given, and no --cluster")
	}
	cfg.Folder = c.Data[0]
	if err := cfg.Validate(); err != nil {
		return nil, cli.UsageError(err.Error())
	}
	if _, exists, err := farm.Stored(cfg.Folder); err != nil {
		return nil, err
	} else if !exists && len(machineFolders(cfg.Folder)) == 0 { // farmsql.Open would create a folder that does not exist
		return nil, fmt.Errorf("nothing to check: no database in %s", cfg.Folder)
	}
	if err := farmsql.Inspect(ctx, farmsql.Offline{Data: c.Data, Trust: c.Trust}); err != nil {
		return nil, err
	}
	return farmsql.OpenContext(ctx, cfg)
}
