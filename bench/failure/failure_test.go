package failure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// fake pretends to be five machines in three failure domains; only the time is real. A killed
// machine is suspected after 2 ms, and replaced after 5 ms.
type fake struct {
	log *Log

	mu     sync.Mutex
	c      *cluster.Configuration
	killed []int
	// suspended are the machines that are suspended and will be killed later.
	suspended []int
	begun     time.Time
	died      time.Time // the first of the run
	runs      int
	// Errors to return.
	start, kill, wait, check, restart, load error
	neverWhole, neverActive, neverBack      bool
	neverEven                               bool
	noSteps, lose                           bool
}

func newFake() *fake {
	f := &fake{log: new(Log), c: &cluster.Configuration{Replicas: 2, CM: 1}}
	for m := range rdma.MachineID(5) {
		f.c.AddMember(cluster.Member{Machine: m, FailureDomain: 1 + int(m)%3, Incarnation: 1})
	}
	for i, p := range []rdma.MachineID{1, 3, 3, 2} {
		f.c.Regions = append(f.c.Regions, cluster.Placement{Region: region.ID(i + 1), Primary: p, Backups: []rdma.MachineID{(p + 1) % 5}})
	}
	f.log.Add(0, fmt.Sprintf(`{"time":%q,"msg":"leases","length":100000000,"kept by":"thread"}`, time.Now().Format(time.RFC3339Nano)))
	return f
}

// config is one for a fake.
func (f *fake) config() Config {
	return Config{
		Target: bench.TargetConfig{Machines: 5, Replicas: 2, Domains: 3}, Before: 20 * time.Millisecond,
		After: 40 * time.Millisecond, Patience: 200 * time.Millisecond,
	}
}

func (f *fake) Start(context.Context, bench.Options) (running, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.died = time.Now(), time.Time{}
	f.runs++
	return f, f.start
}

func (f *fake) Measured() time.Time { return f.begun }

func (f *fake) Stop() {}

// Wait returns a result in which the others did a thousand transactions a second until the kill,
// and again from 10 ms after it.
func (f *fake) Wait(context.Context) (*bench.Result, error) {
	series := slices.Repeat([]uint32{1}, int(time.Since(f.begun).Milliseconds()))
	killed, end := int(f.died.Sub(f.begun).Milliseconds()), len(series)
	if !f.neverBack {
		end = min(killed+10, end)
	}
	if killed > 0 {
		clear(series[min(killed, end):end])
	}
	return &bench.Result{PerMillisecond: series, Conditions: bench.Conditions{Workload: fmt.Sprint("run ", f.runs), Machines: 5, Replicas: 2, Duration: endless.Seconds()}}, f.wait
}

func (f *fake) say(in time.Duration, text string) {
	f.log.Add(0, fmt.Sprintf(`{"time":%q,%s}`, time.Now().Add(in).Format(time.RFC3339Nano), text))
}

// Kill logs the lines that the others would log.
func (f *fake) Kill(machine int) (time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.kill != nil {
		return now, f.kill
	}
	if i := slices.Index(f.suspended, machine); i >= 0 { // the others have said all of it
		f.suspended = slices.Delete(f.suspended, i, i+1)
		return now, nil
	}
	if len(f.killed) == 0 {
		f.died = now
	}
	f.killed = append(f.killed, machine)
	if f.neverActive {
		return now, nil
	}
	steps := "configuration 6: probed after 300µs, stored 1ms, acknowledged 2ms, committed 2ms, all regions active 3ms"
	if f.noSteps {
		steps = "none"
	}
	f.say(2*time.Millisecond, fmt.Sprintf(`"msg":"machine suspected","suspect":%d`, machine))
	left := slices.DeleteFunc([]int{0, 1, 2, 3, 4}, func(m int) bool { return slices.Contains(f.killed, m) })
	members, _ := json.Marshal(left)
	f.say(4*time.Millisecond, fmt.Sprintf(`"msg":"configuration stored","configuration":%d,"machines":%s`, 5+len(f.killed), members))
	f.say(6*time.Millisecond, fmt.Sprintf(`"msg":"reconfigured","configuration":%d,"took":3000000,"steps":%q`, 5+len(f.killed), steps))
	f.say(20*time.Millisecond, `"msg":"replica filled","region":3,"bytes":1000,"took":8000000`)
	f.say(30*time.Millisecond, `"msg":"replica filled","region":4,"bytes":500,"took":18000000`)
	if f.lose {
		f.c.Lost = []region.ID{2}
	}
	return now, nil
}

// Suspend is like Kill, but for a machine that will be killed later.
func (f *fake) Suspend(machine int) (time.Time, error) {
	at, err := f.Kill(machine)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suspended = append(f.suspended, machine)
	return at, err
}

func (f *fake) Restart(_ context.Context, machine int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killed = slices.DeleteFunc(f.killed, func(m int) bool { return m == machine })
	f.say(time.Hour, `"msg":"replica filled","region":3,"bytes":9999,"took":1`) // not of the run
	f.say(0, `"msg":"replica filled","region":3,"bytes":10,"of":1000,"took":1`)
	return f.restart
}

func (f *fake) Check(context.Context) error { return f.check }

func (f *fake) Configuration() (*cluster.Configuration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.c.Clone()
	if f.neverWhole {
		c.Regions[0].Filling = []rdma.MachineID{2}
	}
	if f.neverEven {
		c.Speaks = protocol.Handovers
		for id := region.ID(5); id < 25; id++ {
			c.Regions = append(c.Regions, cluster.Placement{Region: id, Group: id, Primary: 3, Backups: []rdma.MachineID{4}})
		}
	}
	return c, f.load
}

func TestMeasure(t *testing.T) {
	for kind, want := range map[Kind][]int{Machine: {3}, CM: {1}, Domain: {0, 3}} {
		f := newFake()
		c := f.config()
		c.Kill, c.Runs = kind, 3
		res, err := measure(t.Context(), f, f.log, c)
		if err != nil {
			t.Fatal(err)
		}
		if res.Kind != kind || res.Domains != 3 || res.Pace != "slow" || res.LeaseMilliseconds != 100 || res.LeaseKeptBy != "thread" || len(res.Runs) != 3 {
			t.Errorf("%+v", res)
		}
		for i, r := range res.Runs {
			if !slices.Equal(r.Killed, want) {
				t.Errorf("%s: killed %v, want %v", kind, r.Killed, want)
			}
			if r.Before != 1000 || r.Suspected <= 0 || r.Probed <= r.Suspected || r.Stored <= r.Probed || r.Committed <= r.Stored || r.AllActive <= r.Committed || r.Whole < r.AllActive+40 {
				t.Errorf("%s: steps %+v", kind, r)
			}
			if n := 2 * len(want); r.FilledReplicas != n || r.FilledBytes != int64(750*n) || len(r.timeline.Filled) != n {
				t.Errorf("%s: %+v", kind, r)
			}
			if b := r.Return; b.Replicas != len(want) || b.Read != int64(10*len(want)) || b.Held != int64(1000*len(want)) || b.Whole <= 0 || b.Whole >= r.Whole {
				t.Errorf("%s: back with %+v", kind, b)
			}
			if *r.RecoveryStarted >= *r.Recovered || *r.Throughput < r.Suspected+windowMS-1 {
				t.Errorf("%s: throughput back after %v, recovery from %v to %v", kind, *r.Throughput, *r.RecoveryStarted, *r.Recovered)
			}
			if r.conditions.Workload != fmt.Sprint("run ", i+1) {
				t.Errorf("%s: conditions %+v", kind, r.conditions)
			}
		}
		m := res.Timeline.Run
		if res.Conditions.Workload != fmt.Sprint("run ", m+1) || len(res.Timeline.PerMillisecond) < 60 || len(res.Timeline.Events) != 9 || res.Timeline.Events[0].Text != "killed" {
			t.Errorf("%s: timeline %+v", kind, res.Timeline)
		}
		if got, want := res.Conditions.Duration, float64(len(res.Timeline.PerMillisecond))/1000; got != want {
			t.Errorf("%s: measured for %v s, there are %v", kind, got, want)
		}
		for _, d := range res.Distribution {
			if d.Runs != 3 || d.Minimum > d.Median || d.Median > d.P90 || d.P90 > d.Maximum || d.Minimum <= 0 {
				t.Errorf("%s: %+v", kind, d)
			}
		}
	}
}

// A run kills the machines that it has stopped before it ends, whether or not it succeeds.
func TestStopped(t *testing.T) {
	f := newFake()
	c := f.config()
	c.Way = Stop
	res, err := measure(t.Context(), f, f.log, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.suspended) > 0 || res.Distribution[0].Name != "stopped to suspected" || res.Timeline.Events[0].Text != "stopped" || !strings.Contains(res.title(), "a machine stopped") {
		t.Errorf("%v were not killed; %+v; %s", f.suspended, res, res.title())
	}
	f = newFake()
	c.Patience, f.neverActive = 10*time.Millisecond, true
	if _, err := measure(t.Context(), f, f.log, c); !errors.Is(err, ErrPatience) || len(f.suspended) > 0 {
		t.Errorf("error %v, %v were not killed", err, f.suspended)
	}
}

// The result reports a throughput that does not come back, and data that nobody can recover.
func TestNeverBack(t *testing.T) {
	f := newFake()
	f.neverBack = true
	res, err := measure(t.Context(), f, f.log, f.config())
	if err != nil {
		t.Fatal(err)
	}
	if r := res.Runs[0]; r.Throughput != nil {
		t.Errorf("back after %v", *r.Throughput)
	}
	res.Runs[0].Recovered, res.Runs[0].RecoveryStarted = nil, nil
	res.Distribution = nil
	res.summarize()
	for _, d := range res.Distribution[2:] {
		if d != (Distribution{Name: d.Name}) {
			t.Errorf("%+v", d)
		}
	}
	var b strings.Builder
	if err := res.Print(&b); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`\| suspected to data recovered +\| +0 \|( +\|){4}`).MatchString(b.String()) { // columns are as wide as the times of other rows
		t.Errorf("%s", &b)
	}
}

func TestMeasureFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		with func(*fake)
		want error
		says string
	}{
		"start":         {func(f *fake) { f.start = broken }, broken, "run 1"},
		"kill":          {func(f *fake) { f.kill = broken }, broken, ""},
		"wait":          {func(f *fake) { f.wait = broken }, broken, ""},
		"check":         {func(f *fake) { f.check = bench.ErrInconsistent }, bench.ErrInconsistent, "no result"},
		"restart":       {func(f *fake) { f.restart = broken }, broken, ""},
		"configuration": {func(f *fake) { f.load = broken }, broken, ""},
		"lost":          {func(f *fake) { f.lose = true }, ErrLost, "[2]"},
		"never whole":   {func(f *fake) { f.neverWhole = true }, ErrPatience, "replicas"},
		"never even":    {func(f *fake) { f.neverEven = true }, ErrPatience, "even"},
		"never active":  {func(f *fake) { f.neverActive = true }, ErrPatience, "active"},
		"no steps":      {func(f *fake) { f.noSteps = true }, nil, `no steps in "none"`},
	} {
		f := newFake()
		c.with(f)
		_, err := measure(t.Context(), f, f.log, f.config())
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, before := range []time.Duration{20 * time.Millisecond, time.Hour} { // in the middle of await, of a run
		f := newFake()
		f.neverWhole = before < time.Hour
		c := f.config()
		c.Before, c.Patience = before, time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if _, err := measure(ctx, f, f.log, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("stopped: %v", err)
		}
		cancel()
	}
	if _, err := Measure(t.Context(), nil, nil, Config{Runs: -1}); !errors.Is(err, ErrConfig) {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	good := Config{Target: bench.TargetConfig{Machines: 5, Replicas: 3}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for says, change := range map[string]func(*Config){
		`"fire" (--by)`:     func(c *Config) { c.Way = "fire" },
		`"fire" (--kill)`:   func(c *Config) { c.Kill = "fire" },
		"--runs":            func(c *Config) { c.Runs = -1 },
		"warm-up of -1s":    func(c *Config) { c.WarmUp = -time.Second },
		"10ms before":       func(c *Config) { c.Before = 10 * time.Millisecond },
		"-1s after":         func(c *Config) { c.After = -time.Second },
		`over "local" (--t`: func(c *Config) { c.Target.Transport = bench.TransportLocal },
		"takes data":        func(c *Config) { c.Target.Replicas = 1 },
		"the 1 that are":    func(c *Config) { c.Target.Machines, c.Target.Replicas = 2, 2 },
		"the 2 that are":    func(c *Config) { c.Kill, c.Target.Domains = Domain, 2 },
		"the 0 that are":    func(c *Config) { c.Kill, c.Target.Machines = Domain, 0 },
		"--machines, --dom": func(c *Config) { c.Kill, c.Target.Machines, c.Target.Domains = Domain, 6, 2 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

// The JSON object has the names in the package's documentation.
func TestJSON(t *testing.T) {
	f := newFake()
	res, err := measure(t.Context(), f, f.log, f.config())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := res.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var all struct {
		Runs         []map[string]any
		Distribution []map[string]any
		Timeline     map[string]any
	}
	var top map[string]any
	if err := errors.Join(json.Unmarshal([]byte(b.String()), &all), json.Unmarshal([]byte(b.String()), &top)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		has  map[string]any
		want string
	}{
		{top, "conditions kind way pace domains leaseMilliseconds leaseKeptBy runs distribution timeline"},
		{all.Runs[0], "killed beforePerSecond suspected probed stored committed allActive throughput recoveryStarted recovered whole filledReplicas filledBytes return aborts"},
		{all.Runs[0]["return"].(map[string]any), "whole filledReplicas readBytes heldBytes"},
		{all.Distribution[0], "name runs minimum median p90 maximum"},
		{all.Timeline, "run perMillisecond events filled"},
	} {
		names := strings.Fields(c.want)
		for _, name := range names {
			if _, ok := c.has[name]; !ok {
				t.Errorf("no %s in %v", name, c.has)
			}
		}
		if len(c.has) != len(names) {
			t.Errorf("%d names, want %v", len(c.has), names)
		}
	}
}

func TestMedian(t *testing.T) {
	run := func(throughput float64) Run {
		r := Run{Suspected: 10}
		if throughput > 0 {
			r.Throughput = &throughput
		}
		return r
	}
	for _, c := range []struct {
		runs []Run
		want int
	}{
		{[]Run{run(50)}, 0},
		{[]Run{run(90), run(50), run(70)}, 2},
		{[]Run{run(0), run(50), run(70)}, 2}, // never is the longest
		{[]Run{run(0), run(0), run(70)}, 0},
		{[]Run{run(20), run(40), run(30), run(10)}, 0},
	} {
		if got := (&Result{Runs: c.runs}).median(); got != c.want {
			t.Errorf("%v: %d, want %d", c.runs, got, c.want)
		}
	}
	if d := distributionOf("x", []float64{5, 1, 4, 2, 3}); d != (Distribution{"x", 5, 1, 3, 5, 5}) {
		t.Errorf("%+v", d)
	}
}

func TestPrintAndPlot(t *testing.T) {
	f := newFake()
	c := f.config()
	c.Kill = Domain
	res, err := measure(t.Context(), f, f.log, c)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := res.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"one of 3 failure domains killed, slow data recovery", "lease 100 ms, kept by a thread", "killed to suspected", "the median run, 1 of 1: [0 3] killed",
		"0.0 ms killed", "all regions active", "80 % of the throughput", "4 replicas filled, 0.0 MB",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	dir := t.TempDir()
	if err := res.Plot(filepath.Join(dir, "p")); err != nil {
		t.Error(err)
	}
	for _, ending := range []string{".svg", ".png"} {
		if found, _ := filepath.Glob(filepath.Join(dir, "p"+ending)); len(found) != 1 {
			t.Errorf("no p%s", ending)
		}
	}
	if err := res.Plot(filepath.Join(dir, "no", "such")); err == nil {
		t.Error("plotted into no folder")
	}
	if err := res.Print(brokenWriter{}); err == nil {
		t.Error("printed to nobody")
	}
	if err := res.WriteJSON(brokenWriter{}); err == nil {
		t.Error("written to nobody")
	}
	res.Runs[0].timeline.Filled, res.Timeline.Filled = nil, nil
	if err := res.Plot(filepath.Join(dir, "nothing filled")); err != nil {
		t.Error(err)
	}
	res.Timeline.PerMillisecond = nil
	if err := res.Plot(filepath.Join(dir, "nothing measured")); err == nil {
		t.Error("plotted nothing")
	}
	if got := milliseconds(12_340); got != "12.3 s" {
		t.Error(got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("full") }
