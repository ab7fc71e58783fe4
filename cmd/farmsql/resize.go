package main

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/protocol"
)

type resizeCommand struct {
	Data     string `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder, whose processes are asked (${default})."`
	Replicas int    `required:"" placeholder:"N" help:"Machines that are to hold each region, one primary and the rest backups."`
	Yes      bool   `help:"Do not ask before each region has one replica, for scripts."`
	NoWait   bool   `help:"Do not wait until all regions have that many replicas."`
}

// Help is shown by resize --help.
func (resizeCommand) Help() string {
	return `
Changes the number of replicas of all regions of a cluster, while everything is in use. To add replicas
takes as long as copying the data; a few regions get them at a time, and each keeps what it has until
then. To take them away takes a moment. resize waits, and prints how many regions are done; it may be
ended at any time, and the machines go on. They also do when some of them are started anew meanwhile,
with whatever --replicas: that counts only for a new cluster. With one replica a machine that stops makes
its regions unavailable until it is back, and if its memory is lost, so are they: resize asks first.
Exits 1 if regions cannot have that many: there must be as many failure domains of machines that are
not being drained, and room. All machines must run this program.`
}

// Run makes the cluster change the number, and waits until all regions have it.
func (c *resizeCommand) Run(std cli.Streams) error {
	best, err := askNewest(c.Data)
	if err != nil {
		return err
	}
	if err := checkSpeaks(best.Status, protocol.Resizes, "the number of replicas to change", "they have as many replicas as they were made with: start its machines as processes of their own"); err != nil {
		return err
	}
	if c.Replicas == 1 && best.Replicas > 1 && !c.Yes && !c.confirmed(std) {
		return errors.New("not confirmed: nothing was done")
	}
	if err := askOperator(best.folder, operatorRequest{Resize: &resizeRequest{c.Replicas}}); err != nil {
		return fmt.Errorf("resize to %s: %s: %w", c.replicas(), filepath.Base(best.folder), err)
	}
	if c.NoWait {
		fmt.Fprintf(std.Out, "regions get %s\n", c.replicas())
		return nil
	}
	return c.await(std)
}

func (c *resizeCommand) replicas() string { return plural(c.Replicas, "replica", "replicas") }

// confirmed asks the user to confirm that there is one replica, and reports whether the user has.
func (c *resizeCommand) confirmed(std cli.Streams) bool {
	const want = "resize to 1 replica"
	fmt.Fprintf(std.Out, "With one replica each machine that stops makes its regions unavailable, and what is in its memory only is lost with it.\nTo go on, type %q; anything else changes nothing: ", want)
	line, err := bufio.NewReader(std.In).ReadString('\n')
	if err != nil {
		fmt.Fprintln(std.Out) // end the line of the question
	}
	return strings.TrimSpace(line) == want
}

// await prints how many regions have the number of replicas, whenever that changes, until all have it, and what the
// others wait for if nothing changes for a while. If what is in the way then does not go away by itself, it fails.
func (c *resizeCommand) await(std cli.Streams) error {
	changed, told := time.Now(), ""
	for last := -1; ; time.Sleep(drainPoll) {
		now, err := askNewest(c.Data)
		if err != nil {
			return err
		}
		if now.Configuration == 0 {
			continue // the machine that answers is starting
		}
		total, left := len(now.Regions), regionsToResize(now.Status)
		isQuiet := time.Since(changed) > drainQuiet
		switch {
		case now.Replicas != c.Replicas:
			return fmt.Errorf("regions get %s now: somebody has asked for another number", plural(now.Replicas, "replica", "replicas"))
		case left == 0:
			fmt.Fprintf(std.Out, "all %s %s\n", plural(total, "region has", "regions have"), c.replicas())
			return nil
		case left != last:
			fmt.Fprintf(std.Out, "%d of %s %s\n", total-left, plural(total, "region has", "regions have"), c.replicas())
			changed, told = time.Now(), ""
		case isQuiet && now.Resize.Obstacle != "":
			return fmt.Errorf("%s; the machines go on when that has changed", now.Resize.Obstacle)
		case isQuiet && now.MovesAwait != told:
			fmt.Fprintf(std.Out, "waiting for %s\n", now.MovesAwait)
			told = now.MovesAwait
		}
		last = left
	}
}

// regionsToResize returns how many regions do not have the number of replicas that they are to have.
func regionsToResize(s farmsql.Status) int {
	if s.Resize == nil {
		return 0
	}
	return s.Resize.Regions
}
