package main

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
If the machines keep the configuration themselves (--cluster raft:), more of them do so when there are more
replicas, and resize waits for that, too. Exits 1 if regions cannot have that many: there must be as many
failure domains of machines that are not being drained, and room. That a machine has no room is often found
out only when a region is to get there: then it keeps what it has. All machines must run this program.`
}

// Run makes the cluster change the number, and waits until all regions have it.
func (c *resizeCommand) Run(std cli.Streams) error {
	best, err := askNewest(c.Data)
	if err != nil {
		return err
	}
	if err := checkSpeaks(best.Status, protocol.Resizes, "the number of replicas to change", "they keep the number of replicas that they have: start its machines as processes of their own"); err != nil {
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

// confirmed asks the user to confirm that one replica is enough, and reports whether the user has.
func (c *resizeCommand) confirmed(std cli.Streams) bool {
	const want = "resize to 1 replica"
	fmt.Fprintf(std.Out, "With one replica each machine that stops makes its regions unavailable, and what is in its memory only is lost with it.\nTo go on, type %q; anything else changes nothing: ", want)
	line, err := bufio.NewReader(std.In).ReadString('\n')
	if err != nil {
		fmt.Fprintln(std.Out) // end the line of the question
	}
	return strings.TrimSpace(line) == want
}

// obstaclePatience is how long an obstacle may last that only somebody else can remove. Then await
// fails. A machine that is being restarted may be away for this long. Tests make it short.
var obstaclePatience = 20 * time.Second

// await waits until all regions have the new number of replicas, and then for the machines that are
// to keep the configuration. It prints the number of regions that are done whenever that changes.
// If it stays the same for a while, await prints what the other regions wait for. It fails if an
// obstacle remains.
func (c *resizeCommand) await(std cli.Streams) error {
	changed, printed := time.Now(), ""
	for last := -1; ; time.Sleep(movesPoll) {
		now, err := askNewest(c.Data)
		if err != nil {
			return err
		}
		if now.Configuration == 0 {
			continue // the machine that answers is starting
		}
		if now.Replicas != c.Replicas {
			return fmt.Errorf("regions get %s now: somebody has asked for another number", plural(now.Replicas, "replica", "replicas"))
		}
		total, left := len(now.Regions), regionsToResize(now.Status)
		if left == 0 {
			fmt.Fprintf(std.Out, "all %s %s\n", plural(total, "region has", "regions have"), c.replicas())
			return c.awaitFounders(std)
		}
		if left != last {
			fmt.Fprintf(std.Out, "%d of %s %s\n", total-left, plural(total, "region has", "regions have"), c.replicas())
			last, changed, printed = left, time.Now(), ""
			continue
		}
		obstacle := obstacleTo(now.Status)
		if obstacle != "" && time.Since(changed) > obstaclePatience {
			return fmt.Errorf("%s; the machines go on when that has changed", obstacle)
		}
		what := "waiting for " + movesAwait(now.Status)
		if obstacle != "" {
			what = "waiting: " + obstacle
		}
		if what != printed && time.Since(changed) > movesQuiet {
			fmt.Fprintln(std.Out, what)
			printed = what
		}
	}
}

// regionsToResize returns the number of regions that do not have all of their replicas yet, or have
// replicas that are not complete.
func regionsToResize(s farmsql.Status) int {
	if s.Resize == nil {
		return len(s.Short)
	}
	return s.Resize.Regions
}

// obstacleTo returns why regions cannot get their replicas; "" if nothing prevents it.
func obstacleTo(s farmsql.Status) string {
	isUnavailable := func(r farmsql.RegionStatus) bool { return r.Primary < 0 }
	switch {
	case s.Resize != nil:
		return s.Resize.Obstacle
	case isOnlyFilling(s) && cmOf(s) != s.Machine:
		return fmt.Sprintf("%s filled, as far as machine %d knows, but that they are it is told only with the next change of the configuration: ask machine %d, the configuration manager",
			plural(len(s.Short), "region is still being", "regions are still being"), s.Machine, cmOf(s))
	case s.MovesAwait != "" || slices.ContainsFunc(s.Regions, isUnavailable): // the machines are at work, or wait for one
		return ""
	}
	return fmt.Sprintf("%s fewer than %d replicas, since machines are away or have no room: start those, make room, or add machines",
		plural(len(s.Short), "region has", "regions have"), s.Replicas)
}

// isOnlyFilling reports whether every region has all of its replicas, so that only filling them is left.
func isOnlyFilling(s farmsql.Status) bool {
	return !slices.ContainsFunc(s.Regions, func(r farmsql.RegionStatus) bool { return r.Primary < 0 || 1+len(r.Backups) < s.Replicas })
}

// foundersPatience is how long the number of machines that keep the configuration may stay the
// same, while it is to grow. Each further machine takes some seconds. Tests make it short.
var foundersPatience = 30 * time.Second

// awaitFounders waits until enough machines keep the configuration for this number of replicas.
// Until then, the loss of a machine may stop the cluster even if no data are lost. If there are too
// few machines, awaitFounders prints that.
func (c *resizeCommand) awaitFounders(std cli.Streams) error {
	changed, last := time.Now(), -1 // last is the latest number that was printed; -1 if none was
	for ; ; time.Sleep(movesPoll) {
		now, err := askNewest(c.Data)
		if err != nil {
			return err
		}
		n, wanted := len(now.Founders), now.FoundersWanted
		switch {
		case (n == 0 && last < 0) || (wanted <= n && n > 0): // the configuration is kept elsewhere, or enough machines keep it
			if last > 0 {
				fmt.Fprintf(std.Out, "%d machines keep the configuration\n", n)
			}
			return nil
		case n > 0 && n >= len(now.Machines):
			fmt.Fprintf(std.Out, "NOTE: %s the configuration, and %d should: as long as there are no more machines, the loss of one may be that of the cluster\n",
				plural(n, "machine keeps", "machines keep"), wanted)
			return nil
		case n > 0 && n != last:
			fmt.Fprintf(std.Out, "%s the configuration, %d are to\n", plural(n, "machine keeps", "machines keep"), wanted)
			changed, last = time.Now(), n
		case time.Since(changed) > foundersPatience:
			return fmt.Errorf("%s the configuration, and %d should: the loss of one may be that of the cluster, whatever replicas there are; farmsql status (founders) and the logs say more",
				plural(last, "machine keeps", "machines keep"), wanted)
		}
	}
}
