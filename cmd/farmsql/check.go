package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/farm"
)

type checkCommand struct {
	Data  string `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder (${default})."`
	Saves string `placeholder:"FOLDER" help:"See farmsql serve."`
	Trust bool   `help:"See farmsql serve."`
}

// Help is shown by check --help.
func (checkCommand) Help() string {
	return durability + `

Opens the folder as serve would, which finishes what a killed process had begun, then walks
every object, index and catalog entry. Exits 0 if all is well and 1 if anything is not. The folder
of a cluster, whose machines are processes of their own, cannot be examined.`
}

// Run checks the folder and prints what it found.
func (c *checkCommand) Run(std streams) error {
	cfg := farmsql.Config{Folder: c.Data, Saves: c.Saves, Trust: c.Trust}
	cfg.Logger = slog.New(slog.NewTextHandler(std.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := cfg.Validate(); err != nil {
		return usageError(err.Error())
	}
	if _, exists, err := farm.Stored(c.Data); err != nil {
		return err
	} else if !exists && len(machineFolders(c.Data)) == 0 { // Open would create one
		return fmt.Errorf("nothing to check: no database in %s", c.Data)
	}
	db, err := farmsql.Open(cfg)
	if err != nil {
		return err
	}
	report, err := db.Check(context.Background())
	if closeErr := db.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	fmt.Fprint(std.out, report)
	if !report.OK() {
		return fmt.Errorf("%d problems in %s", len(report.Problems), c.Data)
	}
	return nil
}
