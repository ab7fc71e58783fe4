package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type drainCommand struct {
	Data    string `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder, whose processes are asked (${default})."`
	Machine int    `required:"" placeholder:"N" help:"The machine that is to have no data."`
	Undo    bool   `help:"Let the machine have data again."`
	NoWait  bool   `help:"Do not wait until the machine has no data any more."`
}

// Help is shown by drain --help.
func (drainCommand) Help() string {
	return `
Moves all regions of a machine to the others, while everything is in use, and gives it no others.
Each region has all its replicas all the time, so the machine can be stopped for good afterwards
without leaving any region short. drain waits, and prints how many replicas are left; it may be
ended at any time, and the machines go on. A machine that is stopped meanwhile is drained further
when it is back. --undo lets the machine have data again; it then receives its share by itself.
Exits 1 if the machine cannot be drained: there must be as many failure domains without it as
regions have replicas, and room for its regions.`
}

// Run makes the cluster drain the machine, and waits until it has no replicas.
func (c *drainCommand) Run(std cli.Streams) error {
	best, err := askNewest(c.Data)
	if err != nil {
		return err
	}
	if err := checkMoves(best.Status, "none can be drained"); err != nil {
		return err
	}
	if err := askOperator(best.folder, operatorRequest{Drain: &drainRequest{c.Machine, c.Undo}}); err != nil {
		return fmt.Errorf("drain machine %d: %s: %w", c.Machine, filepath.Base(best.folder), err)
	}
	if c.Undo {
		fmt.Fprintf(std.Out, "machine %d may have data again\n", c.Machine)
		return nil
	}
	if c.NoWait {
		fmt.Fprintf(std.Out, "machine %d is being drained\n", c.Machine)
		return nil
	}
	return c.await(std)
}

// vote describes what becomes of the machine's vote, if it keeps the configuration; otherwise it returns
// "".
func (c *drainCommand) vote(s *farmsql.Status) string {
	isDrained := func(f farmsql.FounderStatus) bool { return f.Machine == c.Machine }
	if !slices.ContainsFunc(s.Founders, isDrained) {
		return ""
	}
	others := len(s.Machines) // in the end, the members that do not keep the configuration
	for _, f := range s.Founders {
		if slices.ContainsFunc(s.Machines, func(m farmsql.MachineStatus) bool { return m.Machine == f.Machine }) {
			others--
		}
	}
	text := fmt.Sprintf("\nit is one of the %d that keep the configuration, of which a majority must stay: ", len(s.Founders))
	if others == 0 {
		text += "let another machine join first, and "
	}
	return text + fmt.Sprintf("when it is stopped for good, have another take its place with farmsql forget --machine %d", c.Machine)
}

// await waits until the machine has no replicas. It prints the number of replicas whenever that
// changes. If the number stays the same for a while, it prints what the moves wait for.
func (c *drainCommand) await(std cli.Streams) error {
	changed, printed := time.Now(), ""
	for last := -1; ; time.Sleep(movesPoll) {
		now, err := askNewest(c.Data)
		if err != nil {
			return err
		}
		if now.Configuration == 0 {
			continue // the machine that answers is starting
		}
		at := slices.IndexFunc(now.Machines, func(m farmsql.MachineStatus) bool { return m.Machine == c.Machine })
		left := now.ReplicasAt(c.Machine)
		switch {
		case at < 0:
			return fmt.Errorf("machine %d is no member any more; if it comes back, it is drained further", c.Machine)
		case !now.Machines[at].IsDraining:
			return fmt.Errorf("machine %d is not drained any more: somebody has taken it back", c.Machine)
		case left == 0:
			fmt.Fprintf(std.Out, "machine %d has no data; it may be stopped%s\n", c.Machine, c.vote(&now.Status))
			return nil
		case now.Machines[at].Obstacle != "":
			return errors.New(now.Machines[at].Obstacle)
		case left != last:
			fmt.Fprintf(std.Out, "machine %d has %s\n", c.Machine, plural(left, "replica", "replicas"))
			changed, printed = time.Now(), ""
		case movesAwait(now.Status) != printed && time.Since(changed) > movesQuiet:
			printed = movesAwait(now.Status)
			fmt.Fprintf(std.Out, "waiting for %s\n", printed)
		}
		last = left
	}
}
