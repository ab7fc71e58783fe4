package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// Options select experiments, and say where the results are.
type Options struct {
	// Program is the command line of farmsql-bench, before its arguments.
	Program []string
	// Unguided is the command line of the program built without a profile, which shows what the
	// profile adds. If it is nil, Measure builds the program for the experiments that need it.
	Unguided []string
	// Folder is the folder of the results. It is created if necessary.
	Folder string
	// Runs is the number of runs of each experiment; the experiments take turns.
	Runs int
	// Only has names or groups of experiments. If it is empty, all experiments run
	// except the large ones, which take many minutes each, or most of the memory. Large
	// adds these.
	Only  []string
	Large bool
	// Quick makes each experiment take a moment. Its results mean nothing, and have their
	// own files.
	Quick bool
	// Progress receives messages about the progress of the runs.
	Progress io.Writer
}

// ErrOptions is wrapped by all errors about Options.
var ErrOptions = errors.New("report: no such report")

func (o *Options) validate() error {
	if o.Runs < 1 {
		return fmt.Errorf("%w: %d runs", ErrOptions, o.Runs)
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(suite(), func(e experiment) bool { return e.isAskedFor([]string{name}) }) {
			return fmt.Errorf("%w: there is no experiment %s; there are %s", ErrOptions, name, strings.Join(groups(), ", "))
		}
	}
	return nil
}

func groups() (names []string) {
	for _, e := range suite() {
		if g := e.group(); !slices.Contains(names, g) {
			names = append(names, g)
		}
	}
	return names
}

// A turn is one run of an experiment.
type turn struct {
	experiment
	n int // number of the run, from 1
}

// turns returns the runs in their order: all experiments once, then all again but for those of which one
// run is enough.
func (o *Options) turns() (ts []turn) {
	for n := 1; n <= o.Runs; n++ {
		for _, e := range suite() {
			isAsked := e.isAskedFor(o.Only) || (o.Large && e.isLarge)
			if isAsked && (n == 1 || !e.once) {
				ts = append(ts, turn{e, n})
			}
		}
	}
	return ts
}

// ErrFailed is the error of Measure if experiments failed; the error names them.
var ErrFailed = errors.New("report: experiments failed")

// Measure runs the experiments that have no result.
func Measure(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Folder, 0o777); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	ts := o.turns()
	if err := o.buildUnguided(ctx, ts); err != nil {
		return err
	}
	var failed []string
	for i, t := range ts {
		label := fmt.Sprintf("%d of %d: %s, run %d", i+1, len(ts), t.name, t.n)
		if o.has(t) {
			continue
		}
		begin := time.Now()
		err := o.run(ctx, t)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		took := fmt.Sprintf("%.1f s", time.Since(begin).Seconds())
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s, run %d (%v)", t.name, t.n, err))
			took += ", FAILED: " + err.Error()
		}
		if _, err := fmt.Fprintf(o.Progress, "%s: %s\n", label, took); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%w: %s", ErrFailed, strings.Join(failed, "; "))
	}
	return nil
}

// profileEnding is appended to the name of a run for its profiles.
const profileEnding = ".profile"

// file returns the name of a run's file.
func (o *Options) file(t turn, ending string) string {
	name := t.name + "." + strconv.Itoa(t.n)
	if o.Quick {
		name += ".quick"
	}
	return filepath.Join(o.Folder, name+ending)
}

// has reports whether a run has a result for its present command line, with which the log
// begins.
func (o *Options) has(t turn) bool {
	if _, err := os.Stat(o.file(t, ".json")); err != nil {
		return false
	}
	log, err := os.ReadFile(o.file(t, ".log"))
	line, _, _ := strings.Cut(string(log), "\n")
	return err == nil && line == o.heading(t)
}

// heading returns the command line of a run, with fixed names for farmsql and for the
// folder of the results, wherever they are.
func (o *Options) heading(t turn) string {
	named := *o
	named.Program, named.Folder = []string{"farmsql", "bench"}, resultsFolder
	named.Unguided = []string{"farmsql", "bench", "(built with -pgo=off)"}
	return strings.Join(t.command(&named, t.n), " ")
}

const (
	// limit is the time after which an experiment counts as hanging.
	limit = 30 * time.Minute
	// stopping is the time that a program may take to clean up after it was told to end.
	stopping = 20 * time.Second
)

// run runs an experiment. It leaves a result only if it succeeds.
func (o *Options) run(ctx context.Context, t turn) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, part := o.file(t, ".json"), o.file(t, ".part")
	if err := errors.Join(removeIfThere(result), o.removeProfiles(t)); err != nil {
		return err
	}
	argv := t.command(o, t.n)
	if t.isProfiled {
		argv = append(argv, "--profile", o.file(t, profileEnding))
	}
	if t.tool != goTest {
		argv = append(argv, "--json", part)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopping
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	watch := bench.StartWatch()
	err := cmd.Run()
	if writeErr := os.WriteFile(o.file(t, ".log"), []byte(o.heading(t)+"\n"+said.String()), 0o666); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %s", err, lastLine(said.String())), removeIfThere(part))
	}
	if t.tool == goTest {
		if err := writeOutput(part, output{watch.Conditions(), said.String()}); err != nil {
			return err
		}
	}
	return os.Rename(part, result)
}

// An output is the printed text of a program that writes no result itself.
type output struct {
	Conditions bench.Conditions `json:"conditions"`
	Text       string           `json:"text"`
}

func writeOutput(file string, out output) error {
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o666)
}

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// lastLine returns the last line of a text: programs print the reason of a failure there.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
