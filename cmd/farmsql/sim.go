package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/simtest"
	"github.com/farmsql/farmsql/internal/sqlsim"
)

type simCommand struct {
	Seed     uint64   `placeholder:"N" help:"The first seed. Without one it is drawn."`
	Minutes  float64  `placeholder:"M" help:"Go on with the following seeds for so long, instead of a single run."`
	Runs     uint64   `placeholder:"N" help:"Go on with the following seeds for so many runs."`
	Machines int      `placeholder:"N" help:"Simulate so many machines, 3 to 90, instead of as many as the seed draws."`
	Overlap  bool     `name:"overlapping" help:"Have faults come at any time, whatever is left of those before."`
	Liveness bool     `help:"With --overlapping: have faults stay for good in the end, and those machines go on that suffice."`
	Without  []string `placeholder:"KIND" help:"With --overlapping: leave out a kind of fault, by the name that is printed. Several are separated by commas."`
	SQL      bool     `name:"sql" help:"Have clients besides that run SQL statements."`
	Spare    bool     `help:"With --overlapping: leave a majority of the machines alone, and with it a full replica of every region."`
	Parallel int      `default:"1" placeholder:"N" help:"Do so many runs at a time."`
	Trace    bool     `help:"Print every event of the simulated network."`
}

const (
	simMachinesMin = 3
	simMachinesMax = 90
)

// Help is shown by sim --help.
func (simCommand) Help() string {
	return `
Runs clusters in a simulator, with a virtual clock, a random workload and random faults, and
checks that transactions are strictly serializable, that nothing acknowledged is lost, that
replicas agree, and that the cluster goes on after faults. A seed determines the whole run: a seed
that fails will fail again. Prints a line for each seed, with a hash of all that happened in its run
and of what its clients saw, by which runs of one build can be compared; then the number of runs,
what they did and which faults were injected. Exits 1 at the first run that violates anything.`
}

// simGCPercent makes garbage collection rarer than usual: a run's garbage is
// collected when it ends. Runs take a fifth less time.
const simGCPercent = 400

// Run runs seeds until one fails or the time is up.
func (c *simCommand) Run(std cli.Streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.Seed == 0 {
		c.Seed = 1 + rand.Uint64N(1<<40)
	}
	s := &simRuns{command: c, std: std, next: c.Seed, ended: make(map[uint64]string), printed: c.Seed}
	if c.Minutes > 0 {
		s.until = time.Now().Add(time.Duration(c.Minutes * float64(time.Minute)))
	}
	if c.Minutes == 0 && c.Runs == 0 {
		c.Runs = 1
	}
	defer debug.SetGCPercent(debug.SetGCPercent(simGCPercent))
	var wg sync.WaitGroup
	for range c.Parallel {
		wg.Go(s.work)
	}
	wg.Wait()
	fmt.Fprintf(std.Out, "%s: %d runs from seed %d on: %v\n", version(), s.runs, c.Seed, s.total)
	return s.failure
}

func (c *simCommand) validate() error {
	switch {
	case c.Machines != 0 && (c.Machines < simMachinesMin || c.Machines > simMachinesMax):
		return cli.UsageError(fmt.Sprintf("--machines is %d, must be from %d to %d", c.Machines, simMachinesMin, simMachinesMax))
	case (c.Spare || c.Liveness || len(c.Without) > 0) && !c.Overlap:
		return cli.UsageError("--spare, --liveness and --without need --overlapping")
	case c.Parallel < 1:
		return cli.UsageError(fmt.Sprintf("--parallel is %d, must be at least 1", c.Parallel))
	case c.Minutes < 0:
		return cli.UsageError(fmt.Sprintf("--minutes is %v, must not be negative", c.Minutes))
	}
	for _, name := range c.Without {
		if _, ok := simtest.FaultNamed(name); !ok {
			return cli.UsageError(fmt.Sprintf("--without: there is no fault %q", name))
		}
	}
	return nil
}

// simRuns is the state of one command's runs.
type simRuns struct {
	command *simCommand
	std     cli.Streams
	until   time.Time

	mu      sync.Mutex
	next    uint64 // the next seed to run
	runs    uint64
	total   simtest.Result
	failure error
	// ended has, by seed, the output lines of runs that have ended before a run with a lower seed;
	// printed is the next seed to print.
	ended   map[uint64]string
	printed uint64
}

// work executes runs, one after the other.
func (s *simRuns) work() {
	for {
		seed, ok := s.begin()
		if !ok {
			return
		}
		o := s.command.options(seed, s.std)
		s.end(o, simtest.Run(o))
		runtime.GC() // unmaps the run's memory
	}
}

// begin returns the next seed to run. ok is false if there has been a failure, or if the runs or
// the time are used up.
func (s *simRuns) begin() (seed uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.command
	begun := s.next - c.Seed
	isLast := c.Runs > 0 && begun >= c.Runs
	isLate := begun > 0 && !s.until.IsZero() && time.Now().After(s.until) // the first seed always runs, however short the time is
	if s.failure != nil || isLast || isLate {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// end counts and prints the result of a run. The first failure ends the command.
func (s *simRuns) end(o simtest.Options, r simtest.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs++
	s.total.Add(r)
	s.print(r)
	if r.Err != nil && s.failure == nil {
		fmt.Fprintf(s.std.Out, "%v\n%v\n", o, r.Err)
		s.failure = fmt.Errorf("seed %d: a violation; replay it with: farmsql sim %s", o.Seed, s.command.replay(o.Seed))
	}
}

// print prints one line per seed, in order of seeds, so that the output of two
// commands can be compared line by line.
func (s *simRuns) print(r simtest.Result) {
	s.ended[r.Seed] = r.Line()
	for {
		line, ok := s.ended[s.printed]
		if !ok {
			return
		}
		fmt.Fprintln(s.std.Out, line)
		delete(s.ended, s.printed)
		s.printed++
	}
}

func (c *simCommand) options(seed uint64, std cli.Streams) simtest.Options {
	o := simtest.Draw(seed)
	if c.Machines != 0 {
		o = o.With(c.Machines)
	}
	if c.Overlap {
		o = c.overlap(o.Overlapping())
	}
	if c.SQL {
		o = sqlsim.WithSQL(o)
	}
	if c.Trace {
		o.World.Trace = func(at time.Duration, what string) { fmt.Fprintln(std.Out, at, what) }
	}
	return o
}

// overlap returns the options with the faults that the command's flags ask for.
func (c *simCommand) overlap(o simtest.Options) simtest.Options {
	o.Overlap.Spare = o.Overlap.Spare || c.Spare
	o.Overlap.Core = o.Overlap.Core || c.Liveness
	for _, name := range c.Without {
		f, _ := simtest.FaultNamed(name)
		o.Overlap.Kinds = slices.DeleteFunc(o.Overlap.Kinds, func(k simtest.Fault) bool { return k == f })
	}
	return o
}

// replay returns the flags that repeat the run of a seed.
func (c *simCommand) replay(seed uint64) string {
	args := []string{fmt.Sprintf("--seed %d", seed)}
	if c.Machines != 0 {
		args = append(args, fmt.Sprintf("--machines %d", c.Machines))
	}
	if c.Overlap {
		args = append(args, "--overlapping")
	}
	if c.SQL {
		args = append(args, "--sql")
	}
	if c.Spare {
		args = append(args, "--spare")
	}
	if c.Liveness {
		args = append(args, "--liveness")
	}
	if len(c.Without) > 0 {
		args = append(args, fmt.Sprintf("--without %q", strings.Join(c.Without, ",")))
	}
	return strings.Join(args, " ")
}
