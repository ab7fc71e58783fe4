package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// TestPaper6_5_Figure16 runs a short version of the experiment of section 6.5, and shows that it
// works with all keepers. The figures belong into docs/benchmarks.md, and cannot be asserted.
func TestPaper6_5_Figure16(t *testing.T) {
	cfg := Config{Leases: []time.Duration{10 * time.Millisecond, 200 * time.Millisecond}, Duration: 250 * time.Millisecond}
	res, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range res.Rows {
		names = append(names, r.Variant)
		if len(r.Counts) != 2 {
			t.Errorf("%s: %v", r.Variant, r.Counts)
		}
	}
	if !slices.Equal(names, Variants()) || !slices.Equal(res.Leases, []string{"10ms", "200ms"}) {
		t.Errorf("%v for %v", names, res.Leases)
	}
	if c := res.Conditions; c.Machines != 3 || c.CPU == "" || c.Workload != "leases" || c.Began.IsZero() {
		t.Errorf("%+v", c)
	}
	var out bytes.Buffer
	if err := res.Print(&out); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
}

// A clumsy keeper loses leases at a known rate.
type clumsy struct {
	lease.Keeper
	cfg    lease.Config
	closed error
}

func (c *clumsy) Configure(rdma.MachineID, []call.Peer) { c.cfg.Expired(1) } // before it is measured
func (c *clumsy) Valid() bool {
	c.cfg.Expired(1)
	return true
}
func (c *clumsy) Close() error { return c.closed }

// with runs f with another variant in place of the first.
func with(t *testing.T, v variant, f func()) {
	t.Helper()
	was := variants
	defer func() { variants = was }()
	variants = []variant{v}
	f()
}

// A hooked context calls f whenever a caller of Done is about to wait for its end.
type hooked struct {
	context.Context
	f func()
}

func (h hooked) Done() <-chan struct{} {
	h.f()
	return h.Context.Done()
}

// A lease that runs out before the measured time does not count. One that runs out within it counts
// for its lease time. Run reports an error at the end.
func TestCounts(t *testing.T) {
	errClosed := errors.New("closed")
	var lose func()
	v := variant{"clumsy", always, func(uint64) func(call.Peer, lease.Config) (lease.Keeper, error) {
		return func(self call.Peer, cfg lease.Config) (lease.Keeper, error) {
			if cfg.Length == 2*time.Second && self.Machine == 2 {
				lose = func() { cfg.Expired(0) }
			}
			return &clumsy{cfg: cfg, closed: errClosed}, nil
		}
	}}
	cfg := Config{Leases: []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, Duration: 5 * tick / 2}
	waits := 0
	counts, err := measure(hooked{context.Background(), func() { lose(); waits++ }}, v, cfg)
	if !errors.Is(err, errClosed) || waits != 3 || !slices.Equal(counts, []int64{0, 3, 0}) {
		t.Errorf("%v after %d waits, %v", counts, waits, err)
	}
}

// Run refuses configurations that cannot be measured, and reports errors.
func TestRefused(t *testing.T) {
	second := []time.Duration{time.Second}
	for name, cfg := range map[string]Config{
		"no lease time":   {Duration: time.Second},
		"no duration":     {Leases: second},
		"a lease of zero": {Leases: []time.Duration{time.Second, 0}, Duration: time.Second},
		"unknown":         {Leases: second, Duration: time.Second, Variants: []string{"calls", "smoke"}},
	} {
		if _, err := Run(context.Background(), cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	errStart := errors.New("not today")
	missing := variant{"missing", func() bool { return false }, nil}
	with(t, missing, func() {
		if _, err := Run(context.Background(), Config{Leases: second, Duration: time.Second, Variants: []string{"missing"}}); !errors.Is(err, ErrConfig) {
			t.Errorf("not here: %v", err)
		}
	})
	failing := variant{"failing", always, func(uint64) func(call.Peer, lease.Config) (lease.Keeper, error) {
		return func(call.Peer, lease.Config) (lease.Keeper, error) { return nil, errStart }
	}}
	with(t, failing, func() {
		if _, err := Run(context.Background(), Config{Leases: second, Duration: time.Second}); !errors.Is(err, errStart) {
			t.Errorf("does not start: %v", err)
		}
	})
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(canceled, Config{Leases: second, Duration: time.Second, Variants: []string{"calls"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	start := callCluster(0)
	k, err := start(call.Peer{Machine: 1, Incarnation: 1}, lease.Config{Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := start(call.Peer{Machine: 1, Incarnation: 2}, lease.Config{Clock: clock.System{}}); !errors.Is(err, rdma.ErrMachineTaken) {
		t.Errorf("taken: %v", err)
	}
}

func exampleResult() *Result {
	return &Result{
		Conditions: bench.Conditions{Machines: 3, Others: 0.5, CPU: "a processor"}, Seconds: 60, Leases: []string{"5ms", "100ms"},
		Rows: []Row{{"calls", []int64{1234, 7}}, {"realtime", []int64{0, 0}}},
	}
}

func TestOutput(t *testing.T) {
	res := exampleResult()
	var out, encoded bytes.Buffer
	if err := errors.Join(res.Print(&out), res.WriteJSON(&encoded)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1234", "realtime", "100ms", "60 s each", "kept 0.5 of them busy", "a processor"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	var back Result
	if err := json.Unmarshal(encoded.Bytes(), &back); err != nil || back.Rows[0].Counts[0] != 1234 || back.Leases[1] != "100ms" {
		t.Errorf("%+v, %v", back, err)
	}
	res.Conditions.Others = -1
	if s := res.describe(); !strings.Contains(s, "is not known") {
		t.Error(s)
	}
}

func TestPlot(t *testing.T) {
	base := filepath.Join(t.TempDir(), "leases")
	res := exampleResult()
	if err := res.Plot(base); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{".svg", ".png"} {
		if b, err := os.ReadFile(base + format); err != nil || len(b) < 1000 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	points, err := res.points(res.Rows[0])
	if err != nil || len(points) != 2 || points[0].X != 5 || points[0].Y != 12340 || points[1].X != 100 {
		t.Errorf("%v, %v", points, err)
	}
	if err := res.Plot(filepath.Join(base, "nowhere")); err == nil {
		t.Error("a folder that is not there")
	}
	res.Rows = res.Rows[1:] // nothing ran out
	if err := res.Plot(base); err != nil {
		t.Error(err)
	}
	for _, l := range []string{"soon", "-1s"} {
		res.Leases[0] = l
		if err := res.Plot(base); err == nil {
			t.Errorf("lease time %q", l)
		}
	}
	if low, high := decades([]float64{5, 100}); low != 1 || high != 100 {
		t.Errorf("from %v to %v", low, high)
	}
	if low, high := decades([]float64{10}); low != 10 || high != 100 {
		t.Errorf("from %v to %v", low, high)
	}
}
