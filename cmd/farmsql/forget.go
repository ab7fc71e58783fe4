package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type forgetCommand struct {
	Data    string `default:"./farmsql-data" placeholder:"FOLDER" help:"Data folder, whose processes are asked (${default})."`
	Machine int    `required:"" placeholder:"N" help:"The machine whose memory is gone for ever."`
	Yes     bool   `help:"Do not ask, for scripts."`
}

// Help is shown by forget --help.
func (forgetCommand) Help() string {
	return `
A region is unavailable if all machines with an up-to-date replica of it are away. It is not lost:
it is back, with everything in it, when one of these machines is started with its data folder.
If the memory of such a machine is gone for ever, waiting for it is useless. forget shows which
regions would be lost with it, and which also wait for other machines, and asks for confirmation.
The regions that it gives up are LOST FOR EVER. The machine may then join again with an empty folder.
If the machine is one of those that keep the configuration (serve --cluster raft:), and is away, another
member takes its place there, or the next machine that joins. It never gets the place back.
Exits 1 if nothing was done: you did not confirm, nobody waits for the machine, or no process
answers.`
}

// Run shows what would be lost, asks for confirmation, and makes the cluster forget the machine.
func (c *forgetCommand) Run(std cli.Streams) error {
	best, err := askNewest(c.Data)
	if err != nil {
		return err
	}
	all, only := best.Awaited(c.Machine) // the regions that wait for it, and those that wait for no other machine
	if err := c.checkPossible(best, all); err != nil {
		return err
	}
	c.explain(std.Out, best.Status, all, only)
	if !c.Yes && !c.confirmed(std) {
		return errors.New("not confirmed: nothing was done")
	}
	if err := askOperator(best.folder, operatorRequest{Forget: &forgetRequest{c.Machine, only}}); err != nil {
		return fmt.Errorf("forget machine %d: %s: %w", c.Machine, filepath.Base(best.folder), err)
	}
	if s := founderOf(best.Status, c.Machine); s != nil {
		fmt.Fprintf(std.Out, "another machine takes the place of machine %d among those that keep the configuration: see farmsql status\n", c.Machine)
	}
	if len(only) == 0 {
		fmt.Fprintf(std.Out, "nobody waits for machine %d any more; nothing is lost\n", c.Machine)
		return nil
	}
	fmt.Fprintf(std.Out, "nobody waits for machine %d any more; LOST: %s\n", c.Machine, list(only))
	return nil
}

// askNewest asks all machines with a folder in data, and returns the answer with the newest view.
func askNewest(data string) (statusAnswer, error) {
	s := statusCommand{Data: data}
	answers := s.ask()
	good := slices.DeleteFunc(slices.Clone(answers), func(a statusAnswer) bool { return a.err != nil })
	if len(good) == 0 {
		return statusAnswer{}, s.nobody(answers)
	}
	return slices.MaxFunc(good, func(a, b statusAnswer) int { return a.weight() - b.weight() }), nil
}

// checkPossible returns an error if the machine cannot be forgotten. waiting lists the regions that wait
// for its memory.
func (c *forgetCommand) checkPossible(a statusAnswer, waiting []int) error {
	isMember := slices.ContainsFunc(a.Machines, func(m farmsql.MachineStatus) bool { return m.Machine == c.Machine })
	switch {
	case a.Source == farmsql.StatusOfProcess:
		return fmt.Errorf("%w, and there is nothing to forget", farmsql.ErrNoCluster)
	case a.Configuration == 0:
		return fmt.Errorf("machine %d is starting, and knows no configuration yet: it %s", a.Machine, a.Starting)
	case isMember && len(waiting) == 0:
		return fmt.Errorf("machine %d is a member of configuration %d: nobody waits for its memory (farmsql status shows what is missing)", c.Machine, a.Configuration)
	case len(waiting) == 0 && founderOf(a.Status, c.Machine) == nil:
		return fmt.Errorf("nobody waits for machine %d: no region is unavailable for want of it in configuration %d", c.Machine, a.Configuration)
	}
	return nil
}

// explain says what forgetting the machine would do, and what to try first. all are the regions that wait
// for the machine, only those of them that wait for no other.
func (c *forgetCommand) explain(w io.Writer, s farmsql.Status, all, only []int) {
	var machines []int
	for _, m := range s.Machines {
		machines = append(machines, m.Machine)
	}
	fmt.Fprintf(w, "configuration %d, %s, has %s (%s) and %s; %s for machine %d\n", s.Configuration, sourceText(s),
		plural(len(machines), "machine", "machines"), list(machines), plural(len(s.Regions), "region", "regions"),
		plural(len(all), "region waits", "regions wait"), c.Machine)
	if founderOf(s, c.Machine) != nil {
		fmt.Fprintf(w, "  Machine %d keeps the configuration, with machines %s: another member takes its place there, or the next machine that joins\n", c.Machine, list(otherFounders(s, c.Machine)))
	}
	if len(only) > 0 {
		fmt.Fprintf(w, "  LOST FOR EVER if machine %d is forgotten, with everything in them: %s\n", c.Machine, list(only))
	}
	if slices.Contains(only, s.Root) {
		fmt.Fprintf(w, "  Region %d leads to everything else: without it THE WHOLE DATABASE IS LOST\n", s.Root)
	}
	for _, a := range s.Absences() {
		if len(a.Machines) > 1 && slices.Contains(a.Machines, c.Machine) {
			others := slices.DeleteFunc(slices.Clone(a.Machines), func(m int) bool { return m == c.Machine })
			fmt.Fprintf(w, "  not lost, for machine %s has them, too: %s\n", strings.ReplaceAll(list(others), " ", " or "), list(a.Regions))
		}
	}
	fmt.Fprintf(w, "Try first: start machine %d with its data folder. Then it is all back, and nothing is lost.\n", c.Machine)
}

// founderOf returns a machine's entry among those that keep the configuration, or nil if it is none of them.
func founderOf(s farmsql.Status, machine int) *farmsql.FounderStatus {
	i := slices.IndexFunc(s.Founders, func(f farmsql.FounderStatus) bool { return f.Machine == machine })
	if i < 0 {
		return nil
	}
	return &s.Founders[i]
}

// otherFounders returns the other machines that keep the configuration.
func otherFounders(s farmsql.Status, machine int) (others []int) {
	for _, f := range s.Founders {
		if f.Machine != machine {
			others = append(others, f.Machine)
		}
	}
	return others
}

// confirmed asks the user to confirm, and reports whether the user has.
func (c *forgetCommand) confirmed(std cli.Streams) bool {
	want := fmt.Sprintf("forget machine %d", c.Machine)
	fmt.Fprintf(std.Out, "If its memory is gone for ever, type %q; anything else changes nothing: ", want)
	line, err := bufio.NewReader(std.In).ReadString('\n')
	if err != nil {
		fmt.Fprintln(std.Out) // end the line of the question
	}
	return strings.TrimSpace(line) == want
}
