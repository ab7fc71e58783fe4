package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type refoundCommand struct {
	Data   string  `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder of a machine that keeps the configuration (${default})."`
	Saves  string  `placeholder:"FOLDER" help:"Its --saves, if it has one."`
	Newest *uint64 `placeholder:"REVISION" help:"Required: the newest revision of the configuration that any machine knows, from the logs and the status of all."`
	Lost   []int   `placeholder:"N" help:"Members that are lost for good, too, besides those that keep the configuration; and of these, those that cannot be asked from here, and are switched off."`
	Older  bool    `help:"Go on although this machine has an older configuration than --newest, or than its own memory, and let in machines with newer memory: CHANGES THAT WERE ACKNOWLEDGED MAY BE LOST, AND DATA DAMAGED."`
	Undo   bool    `help:"Put back what this machine had, because the others are back: possible until it has kept the configuration alone."`
	Yes    bool    `help:"Do not ask, for scripts."`
}

// Help is shown by refound --help.
func (refoundCommand) Help() string {
	return `
The last resort for a cluster made with serve --cluster raft:, when a MAJORITY of the machines that
keep the configuration is lost for good. As long as enough of them might come back, wait for them.
If all of them are lost, the cluster is: a machine that does not keep the configuration cannot go on.

FIRST make sure that the lost machines are OFF, and not only out of reach of this one: if they still
run together, they go on, and everything that they acknowledge from then on is lost.

refound makes the machine of the folder, which must not run, the only one that keeps the
configuration. The others that did are not members any more, and nobody waits for them.
Run it at the machine that has the newest configuration, and at ONE machine only; without --newest
it only shows what the machine has. --newest is the highest revision in "configuration applied",
"configuration changed" and "configuration kept" in the logs of ALL machines, also of those that are
lost if their logs are anywhere, and in farmsql status of those that run.

A newer configuration, known only to lost machines, may have evicted a machine or created regions.
Going on with the older one would treat that machine's stale data as current and DELETE those
regions. So it is refused without --older.

NEVER start one of the lost machines again with its old folder where it cannot reach this one, or
while this one does not run. Where it can, it is told, and may be a member again: with its memory.
Afterwards start this machine; others that have stopped, too. Regions whose replicas are all lost wait
for their machines; farmsql forget gives them up. Let new machines join (farmsql token): as many as are
missing get votes. Until three have votes, the loss of this machine is that of the configuration.

If the others are back before this machine has kept the configuration alone, --undo takes refound back.
Exits 1 if nothing was done.`
}

// Run shows what would be lost, asks for confirmation, and makes the machine the only founder.
func (c *refoundCommand) Run(std cli.Streams) error {
	if c.Undo {
		return c.undo(std.Out)
	}
	r, err := farmsql.BeginRefounding(c.Data, c.Saves, c.Lost)
	if err != nil {
		return err
	}
	defer r.Close()
	c.explain(std.Out, r)
	if c.Newest == nil {
		return cli.UsageError("--newest is missing: the newest revision of the configuration that any machine knows; look at all of them")
	}
	lost, err := r.Check(context.Background(), *c.Newest, c.Older)
	if errors.Is(err, farmsql.ErrOlder) {
		return fmt.Errorf("%w: refound the machine that has it; if none is left, --older gives up what was committed since", err)
	}
	if err != nil {
		return err
	}
	for _, l := range lost {
		fmt.Fprintf(std.Out, "  Machine %d was not found at %s: %v\n", l.Machine, l.Address, l.Reason)
	}
	if !c.Yes && !c.confirmed(std, r) {
		return errors.New("not confirmed: nothing was done")
	}
	if err := r.Refound(context.Background(), *c.Newest, c.Older); err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "machine %d alone keeps the configuration: start it, and others that have stopped\n", r.Machine)
	return nil
}

// undo undoes an earlier refound.
func (c *refoundCommand) undo(out io.Writer) error {
	if c.Newest != nil || len(c.Lost) > 0 || c.Older {
		return cli.UsageError("--undo takes back what was done with other flags: give it with --data and --saves only")
	}
	if err := farmsql.UndoRefounding(c.Data, c.Saves); err != nil {
		return err
	}
	fmt.Fprintln(out, "undone: start this machine, and it keeps the configuration with the others again")
	return nil
}

// explain describes what refound will do, and what is lost by it.
func (c *refoundCommand) explain(out io.Writer, r *farmsql.Refounding) {
	fmt.Fprintf(out, "machine %d has revision %d of the configuration: number %d, of machines %s\n", r.Machine, r.Revision, r.Configuration, list(r.Members))
	if r.Newer != "" {
		fmt.Fprintf(out, "  Its own memory has %s, which is of A LATER CONFIGURATION.\n", r.Newer)
	}
	if len(r.Others) > 0 {
		fmt.Fprintf(out, "  It will keep the configuration ALONE. So far it does with machines %s, which never will again, and are refused as such.\n", list(r.Others))
	}
	if r.Next != nil {
		fmt.Fprintf(out, "  Machine %d was about to keep the configuration. It stays a member, but never will: let another machine join for that.\n", *r.Next)
	}
	fmt.Fprintf(out, "  The cluster goes on with machines %s. A majority of these is needed: give others that are lost with --lost.\n", list(r.Left))
	if len(r.Unavailable) > 0 {
		fmt.Fprintf(out, "  Regions UNAVAILABLE until one of the other machines is back with its memory, or farmsql forget gives them up: %s\n", list(r.Unavailable))
	}
	fmt.Fprintf(out, "  ALL LATER CHANGES OF THE CONFIGURATION ARE LOST. If there was one after revision %d, data that was acknowledged may be lost, too, without any further warning.\n", r.Revision)
}

// confirmed asks the user to confirm, and reports whether the user has. The user answers for what a
// program cannot find out here: that the other machines are really gone, and not only out of reach.
func (c *refoundCommand) confirmed(std cli.Streams, r *farmsql.Refounding) bool {
	want := fmt.Sprintf("refound machine %d", r.Machine)
	if len(r.Others) > 0 {
		want += fmt.Sprintf(", %s switched off", list(r.Others))
	}
	fmt.Fprintf(std.Out, "If all of that is true, type %q; anything else changes nothing: ", want)
	line, err := bufio.NewReader(std.In).ReadString('\n')
	if err != nil {
		fmt.Fprintln(std.Out) // end the line of the question
	}
	return strings.TrimSpace(line) == want
}
