package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type moveCommand struct {
	Data   string `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder, whose processes are asked (${default})."`
	Region int    `required:"" placeholder:"R" help:"The region. The others of its group move along."`
	From   int    `required:"" placeholder:"A" help:"The machine that the replica leaves."`
	To     int    `required:"" placeholder:"B" help:"The machine that gets the replica."`
	NoWait bool   `help:"Do not wait until the replica has moved."`
}

// Help is shown by move --help.
func (moveCommand) Help() string {
	return `
Moves one replica of a region from a machine to another, while everything is in use; if the first is
the region's primary, the second becomes it. The region has all its replicas all the time. Regions that
were made near it, to which farmsql status gives the same group with --json, move along. move waits until
the replica has moved; moves that are under way, and replicas that are being filled, come first, and it
says which. It may be ended at any time; if the move has begun, or begins within seconds, the machines go on. The replica then stays
where it is, however uneven the machines are, until it is moved again, its machine is drained, or
fails. Exits 1 if the replica cannot be moved: the other machine must have room, and be in a failure
domain without another replica of the region.`
}

// Run makes the cluster move the replica, and waits until it has moved. While other moves come
// first, it prints that and repeats the order.
func (c *moveCommand) Run(std cli.Streams) error {
	printed := ""
	for {
		err := c.order()
		var waits waitingError
		switch {
		case err == nil:
			return c.await(std)
		case !errors.As(err, &waits):
			return err
		}
		// Other moves, or replicas being filled, may take any time.
		if text := strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error()); text != printed {
			fmt.Fprintf(std.Out, "waiting: %s\n", text)
			printed = text
		}
		time.Sleep(orderPoll)
	}
}

// orderPoll is the time between two attempts to give an order. The machines remember the order for longer than that.
const orderPoll = 20 * time.Millisecond

// order gives the order once, to the machine with the newest view.
func (c *moveCommand) order() error {
	best, err := askNewest(c.Data)
	if err != nil {
		return err
	}
	if err := checkMoves(best.Status, "none has data of its own to move"); err != nil {
		return err
	}
	if err := askOperator(best.folder, operatorRequest{Move: &moveRequest{c.Region, c.From, c.To}}); err != nil {
		return fmt.Errorf("move region %d: %s: %w", c.Region, filepath.Base(best.folder), err)
	}
	return nil
}

// await waits until the move is over, and prints the result. With NoWait it only prints the present
// state. It prints once that the target is being filled, if that takes a while.
func (c *moveCommand) await(std cli.Streams) error {
	isTold := false
	for begun := time.Now(); ; time.Sleep(movesPoll) {
		now, err := askNewest(c.Data)
		if err != nil {
			return err
		}
		if now.Configuration == 0 {
			continue // the machine that answers is starting
		}
		isOver, err := c.isOver(now.Status)
		switch {
		case err != nil:
			return err
		case isOver:
			fmt.Fprintf(std.Out, "region %d is at machine %d\n", c.Region, c.To)
			return nil
		case c.NoWait:
			fmt.Fprintf(std.Out, "region %d moves from machine %d to machine %d\n", c.Region, c.From, c.To)
			return nil
		case !isTold && time.Since(begun) > movesQuiet:
			fmt.Fprintf(std.Out, "machine %d is being filled; the machines go on if this is ended\n", c.To)
			isTold = true
		}
	}
}

// isOver reports whether the replica has moved: machine From has no part of the region that is
// still needed. It fails if the move has ended in another way. A pinned replica at the target does
// not mean that the move succeeded. If another machine fails while the target is filled, the region
// needs the target's replica, and keeps it pinned.
func (c *moveCommand) isOver(s farmsql.Status) (bool, error) {
	at := slices.IndexFunc(s.Regions, func(r farmsql.RegionStatus) bool { return r.Region == c.Region })
	if at < 0 {
		return false, fmt.Errorf("region %d is lost: its machines have failed", c.Region)
	}
	r := s.Regions[at]
	has := func(m int) bool { return r.Primary == m || slices.Contains(r.Backups, m) }
	switch {
	case r.Move != nil && r.Move.From == c.From && r.Move.To == c.To:
		return false, nil
	case !has(c.To):
		return false, fmt.Errorf("region %d does not move to machine %d any more: that machine has failed, or has no room; its log says more, and farmsql status shows where the region is", c.Region, c.To)
	case has(c.From):
		return false, fmt.Errorf("region %d is still at machine %d, and at machine %d, too: the move is over, since another of the region's machines has failed; repeat it when farmsql status shows nothing that is being filled", c.Region, c.From, c.To)
	case slices.Contains(r.Filling, c.To):
		return false, fmt.Errorf("machine %d has failed or left; region %d is at machine %d in its place, and that is still being filled: farmsql status says when it has everything", c.From, c.Region, c.To)
	}
	return true, nil
}
