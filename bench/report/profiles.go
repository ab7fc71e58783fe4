package report

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/costs"
)

// profiles are the profiled experiments. A machine that is a process has its own profile.
var profiles = []variant{
	{"TATP, 1 machine", profiled("profile-tatp", "tatp --subscribers 1000000")},
	{"TPC-C, 1 machine", profiled("profile-tpcc", "tpcc --warehouses 1")},
	{"TATP, 3 machines", profiled("profile-tatp-shm-3", "tatp --subscribers 300000"+three)},
	{"TPC-C, 3 machines", profiled("profile-tpcc-shm-3", "tpcc --warehouses 3"+three)},
}

func profiled(name, args string) experiment {
	return experiment{name: name, args: args + worker + " --warm-up 1s --duration 10s", once: true, isProfiled: true}
}

const (
	// costMin is the least share of the processor time, in one of the set-ups, for which a
	// cost gets its own row.
	costMin = 0.02
	// lockMin is the least wait for locks, in microseconds of a transaction, that the text
	// mentions.
	lockMin = 0.005
	// largest is how many of a set-up's costs are highlighted, and how many places are named where
	// memory is allocated or a lock is waited for.
	largest = 3
)

// A profiledRun is the measurement of one of the profiles.
type profiledRun struct {
	variant
	result *bench.Result
	files  []string     // the files of the profiles of processor time, one for each process
	costs  []costs.Part // the largest cost first, without costs.Rest
	total  int64        // the weight of all samples
}

// profiles writes the costs of transactions.
func (p *page) profiles() error {
	var runs []*profiledRun
	for _, v := range profiles {
		if len(p.runs[v.name]) == 0 {
			p.line("%s: %s.\n", v.label, notMeasured)
			continue
		}
		run, err := p.profiledRun(v)
		if err != nil {
			return fmt.Errorf("report: %s: %w", v.name, err)
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil
	}
	p.costs(runs)
	for _, run := range runs {
		if err := p.allocationsAndLocks(run); err != nil {
			return fmt.Errorf("report: %s: %w", run.name, err)
		}
	}
	p.line("")
	return nil
}

// profiledRun reads the profiles and the result of a variant's first run.
func (p *page) profiledRun(v variant) (*profiledRun, error) {
	files, err := p.o.profileFiles(turn{v.experiment, 1})
	if err != nil {
		return nil, err
	}
	c, err := costs.Read(costs.ProcessorTime, files...)
	if err != nil {
		return nil, err
	}
	parts := slices.DeleteFunc(c.Costs(), func(p costs.Part) bool { return p.Name == costs.Rest })
	return &profiledRun{v, p.runs[v.name][0].results[0], files, parts, c.Total}, nil
}

// profileFiles returns the names of a run's processor profiles, one file for each process.
func (o *Options) profileFiles(t turn) ([]string, error) {
	all, err := o.allProfiles(t)
	if err != nil {
		return nil, err
	}
	// The files of other processes have a number after that name, profiles of other kinds a word.
	file := o.file(t, profileEnding)
	all = slices.DeleteFunc(all, func(name string) bool { return strings.Trim(strings.TrimPrefix(name, file), ".0123456789") != "" })
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is missing: remove the result to measure it again", file)
	}
	return all, nil
}

// allProfiles returns all files whose names begin with the name of a run's profile.
func (o *Options) allProfiles(t turn) (all []string, err error) {
	file := o.file(t, profileEnding)
	entries, err := os.ReadDir(filepath.Dir(file))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(file)) {
			all = append(all, filepath.Join(filepath.Dir(file), e.Name()))
		}
	}
	return all, err
}

// removeProfiles removes the files of an earlier run, which may have had more processes.
func (o *Options) removeProfiles(t turn) error {
	all, err := o.allProfiles(t)
	for _, file := range all {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// costs writes the table of costs, as shares of a transaction's time, and their explanations.
func (p *page) costs(runs []*profiledRun) {
	header, total := []string{"µs of a transaction (% of its processor time)"}, []string{"all"}
	for _, run := range runs {
		header, total = append(header, run.label), append(total, number(run.result.Processor))
	}
	rows, why := [][]string{total}, []string(nil)
	left := slices.Repeat([]float64{1}, len(runs)) // the share of each run that no row has yet
	for _, c := range costs.All() {
		parts := make([]float64, len(runs))
		for i, run := range runs {
			parts[i] = run.part(c)
		}
		if slices.Max(parts) < costMin {
			continue
		}
		for i := range left {
			left[i] -= parts[i]
		}
		rows, why = append(rows, costRow(c.Name, runs, parts)), append(why, fmt.Sprintf("- %s: %s", c.Name, c.Why))
	}
	p.table(header, append(rows, costRow(costs.Rest, runs, left)))
	p.line("The %d largest of each are bold.\n\n%s\n", largest, strings.Join(why, "\n"))
}

// costRow returns the row of a cost, with its share of each run's processor time.
func costRow(name string, runs []*profiledRun, parts []float64) []string {
	row := []string{name}
	for i, run := range runs {
		row = append(row, run.cell(name, parts[i]))
	}
	return row
}

// cell returns a share of the processor time for the table; empty if it is negligible.
func (r *profiledRun) cell(name string, part float64) string {
	text := fmt.Sprintf("%s (%.1f)", number(part*r.result.Processor), 100*part)
	switch {
	case part < 0.0005:
		return ""
	case r.isLargest(name):
		return "**" + text + "**"
	}
	return text
}

// part returns a cost's share of the processor time.
func (r *profiledRun) part(c costs.Cost) float64 {
	for _, part := range r.costs {
		if part.Name == c.Name {
			return float64(part.Weight) / float64(r.total)
		}
	}
	return 0
}

func (r *profiledRun) isLargest(name string) bool {
	return slices.ContainsFunc(r.costs[:min(largest, len(r.costs))], func(p costs.Part) bool { return p.Name == name })
}

// allocationsAndLocks writes where a run allocated memory and waited for locks.
func (p *page) allocationsAndLocks(run *profiledRun) error {
	allocated, err := costs.Read(costs.Objects, bench.ProfilesOf(run.files, bench.ProfileAllocs)...)
	if err == nil {
		err = allocated.Subtract(costs.Objects, bench.ProfilesOf(run.files, bench.ProfileAllocsBase)...)
	}
	if err != nil {
		return err
	}
	waited, err := costs.Read(costs.Waited, bench.ProfilesOf(run.files, bench.ProfileMutex)...)
	if err != nil {
		return err
	}
	res, locks := run.result, "no locks"
	if µs := float64(waited.Total) / 1e3 / float64(max(run.result.Total.Count, 1)); µs >= lockMin {
		locks = fmt.Sprintf("locks for %s µs%s", number(µs), places(waited))
	}
	p.line("- %s (%s): %s transactions a second. A transaction makes %s allocations of %s bytes together%s. It waits for %s.",
		run.label, originText(max(1, res.Spread.Runs), &res.Conditions), number(res.Total.PerSecond), number(res.Allocations), number(res.AllocatedBytes), places(allocated), locks)
	return nil
}

// places names the functions with the largest parts of a profile.
func places(profile *costs.Profile) string {
	var named []string
	for _, part := range profile.Places() {
		if share := float64(part.Weight) / float64(profile.Total); len(named) < largest && share >= costMin {
			named = append(named, fmt.Sprintf("%.0f %% in `%s`", 100*share, part.Name))
		}
	}
	if len(named) == 0 {
		return ""
	}
	return ", " + strings.Join(named, ", ")
}
