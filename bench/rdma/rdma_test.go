package rdma

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/rdma"
)

// brief measures all experiments of providers for a moment, or as long as FARMSQL_BENCH_TURN says.
func brief(t *testing.T, maxX int, names ...string) *Result {
	t.Helper()
	if invariant.Enabled {
		t.Skip("a build with the race detector or with invariants is not measured")
	}
	turn := time.Millisecond
	if s := os.Getenv("FARMSQL_BENCH_TURN"); s != "" {
		var err error
		if turn, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	res, err := Run(context.Background(), Config{Providers: names, MaxX: maxX, Turn: turn})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// complete checks that a result has all rows up to maxX.
func complete(t *testing.T, res *Result, maxX int, names ...string) {
	t.Helper()
	for _, name := range names {
		for _, e := range experiments {
			for _, series := range e.series {
				for _, x := range e.xs {
					isThere := slices.ContainsFunc(res.Rows, func(r Row) bool {
						return r.Experiment == e.name && r.Provider == name && r.Series == series && r.X == x && r.PerSecond > 0
					})
					if want := x <= maxX && (series != send || x <= rdma.DatagramBytesMax); isThere != want {
						t.Errorf("%s, %s, %s, %d: measured %v", name, e.name, series, x, isThere)
					}
				}
			}
		}
	}
}

// find returns a row.
func find(t *testing.T, res *Result, provider, experiment, series string, x int) Row {
	t.Helper()
	i := slices.IndexFunc(res.Rows, func(r Row) bool {
		return r.Experiment == experiment && r.Provider == provider && r.Series == series && r.X == x
	})
	if i < 0 {
		t.Fatalf("no row of %s, %s, %s, %d", provider, experiment, series, x)
	}
	return res.Rows[i]
}

// All experiments run on all providers, and count: a batch of 16 over TCP is one call, a doorbell between processes is a doorbell.
func TestRun(t *testing.T) {
	res := brief(t, 4096, "local", "shm", "tcp")
	complete(t, res, 4096, "local", "shm", "tcp")
	if r := find(t, res, "tcp", "batch", read, 16); r.Calls < 0.06 || r.Calls > 0.07 {
		t.Errorf("%+v", r)
	}
	if r := find(t, res, "tcp", "sequencer", message, 1024); r.Calls < 1.9/1024 || r.Calls > 2.1/1024 { // the request and its reply
		t.Errorf("%+v", r)
	}
	if r := find(t, res, "tcp", "sequencer", fetch, 1024); r.Calls < 0.9/batchMax || r.Calls > 1.1/batchMax {
		t.Errorf("%+v", r)
	}
	if r := find(t, res, "shm", "size", writeRing, 64); r.Doorbells != 1 || r.Calls != 0 {
		t.Errorf("%+v", r)
	}
}

// Over verbs a batch has one doorbell, what fits travels inside its request, and few completions are wanted. The result is printed, for
// bench rdma --from: that is how what a virtual machine has measured becomes tables and plots.
func TestOverVerbs(t *testing.T) {
	if !slices.Contains(Providers(), "verbs") {
		t.Skip("no RDMA device: go run ./test/vm ./bench/rdma -test.v -test.run TestOverVerbs")
	}
	const maxX = 1 << 14
	res := brief(t, maxX, "verbs")
	complete(t, res, maxX, "verbs")
	if r := find(t, res, "verbs", "batch", read, 16); r.Doorbells < 0.06 || r.Doorbells > 0.07 || r.Requests != 1 || r.Signalled > 0.07 {
		t.Errorf("READs in batches of 16: %+v", r)
	}
	if in, out := find(t, res, "verbs", "size", write, 128), find(t, res, "verbs", "size", write, 136); in.Inlined != 1 || out.Inlined != 0 || in.Requests != 2 {
		t.Errorf("WRITEs of 128 bytes: %+v; of 136: %+v", in, out)
	}
	if !res.IsSoft {
		t.Log("a real card")
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(res); err != nil {
		t.Fatal(err)
	}
	t.Logf("result: %s", b.String())
}

// Run refuses what it cannot measure, and returns the error of an operation that fails.
func TestRefused(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no time":       {},
		"no provider":   {Turn: 1, Providers: []string{"pigeon"}},
		"no experiment": {Turn: 1, Experiments: []string{"luck"}},
	} {
		if _, err := Run(context.Background(), cfg); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(canceled, Config{Turn: 1, Providers: []string{"local"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	errShut, errJoin, errOpen := errors.New("shut"), errors.New("join"), errors.New("open")
	nobody := provider{name: "nobody", open: func() (func(rdma.MachineID) (rdma.NIC, error), func() error, error) {
		return func(rdma.MachineID) (rdma.NIC, error) { return nil, errJoin }, func() error { return errShut }, nil
	}}
	if _, err := newNetwork(nobody, 1, 4096); !errors.Is(err, errJoin) || !errors.Is(err, errShut) {
		t.Errorf("nobody joins: %v", err)
	}
	nowhere := provider{name: "nowhere", open: func() (func(rdma.MachineID) (rdma.NIC, error), func() error, error) {
		return nil, nil, errOpen
	}}
	if _, err := newNetwork(nowhere, 1, 4096); !errors.Is(err, errOpen) {
		t.Errorf("no network: %v", err)
	}
	p, err := providerOf("local")
	if err != nil {
		t.Fatal(err)
	}
	outside := load{batch: 1, outstanding: 1, wanted: 1, post: func(q rdma.Queue, _, tag uint64) (bool, error) { return q.Read(1, key, largest, make([]byte, 8), tag) }}
	if err := (&bed{p, time.Millisecond, new(Row)}).two(outside); !errors.Is(err, rdma.ErrRange) {
		t.Errorf("outside of memory: %v", err)
	}
}

// A sequencer that gives out a number twice, or leaves one out, is noticed.
func TestNumbersAreChecked(t *testing.T) {
	p, err := providerOf("local")
	if err != nil {
		t.Fatal(err)
	}
	for name, step := range map[string]uint64{"twice": 0, "left out": 2} {
		next := uint64(0)
		serve := func(request, reply []byte) {
			putWord(reply, next)
			next += step * binary.LittleEndian.Uint64(request)
		}
		if err := (&bed{p, time.Millisecond, new(Row)}).numbers(3, serve); !errors.Is(err, errTwice) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func example() *Result {
	return &Result{Seconds: 1, IsSoft: true, Rows: []Row{
		{Experiment: "batch", Provider: "verbs", Series: read, X: 1, PerSecond: 1000, Calls: 1, Doorbells: 1, Requests: 1, Signalled: 1},
		{Experiment: "batch", Provider: "verbs", Series: read, X: 16, PerSecond: 2.5e6, Doorbells: 0.0625, Requests: 1, Lost: 3},
		{Experiment: "batch", Provider: "local", Series: read, X: 1, PerSecond: 12345678},
	}}
}

func TestOutput(t *testing.T) {
	var out, page bytes.Buffer
	res := example()
	if err := errors.Join(res.Print(&out), res.WritePage(&page)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"batch: READs of 64", "2500000 (3 lost)", "0.06", "soft-RoCE", "1 run of 1 s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	for _, want := range []string{"| batch | verbs READ | local READ |", "| 16 | 2,500,000 (3 lost) |  |", "| 1 | 1,000 | 12,345,678 |", "| verbs | READ | 16 |  | 0.06 | 1.00 |"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
}

func TestPlot(t *testing.T) {
	base := filepath.Join(t.TempDir(), "rdma")
	if err := example().Plot(base); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{".svg", ".png"} {
		if b, err := os.ReadFile(base + format); err != nil || len(b) < 1000 {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	if err := example().Plot(filepath.Join(base, "nowhere")); err == nil {
		t.Error("a folder that is not there")
	}
}
