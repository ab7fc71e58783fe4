package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/invariant"
)

// Environment variables that tell a process of the test binary what to be, and which error to make.
const (
	asMachine = "FARMSQL_BENCH_TEST_MACHINE"
	asFolder  = "FARMSQL_BENCH_TEST_FOLDER"
	asMode    = "FARMSQL_BENCH_TEST_MODE"
	asOneOf   = "FARMSQL_BENCH_TEST_MACHINES"
	asOver    = "FARMSQL_BENCH_TEST_TRANSPORT"
)

func TestMain(m *testing.M) {
	if os.Getenv(asMachine) == "" {
		os.Exit(m.Run())
	}
	if err := beMachine(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beMachine is the whole life of a machine.
func beMachine() error {
	machine, err := strconv.Atoi(os.Getenv(asMachine))
	if err != nil {
		return err
	}
	machines, err := strconv.Atoi(os.Getenv(asOneOf))
	if err != nil {
		return err
	}
	cfg := MachineConfig{Target: shared(machines), Folder: os.Getenv(asFolder), Machine: machine, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	cfg.Target.Transport = cmp.Or(os.Getenv(asOver), cfg.Target.Transport)
	mode := os.Getenv(asMode)
	if machine != machines-1 {
		mode = "" // only the last one does what it should not
	}
	return ServeMachine(context.Background(), cfg, func(t *Target) (Workload, error) {
		if mode == "refuse" {
			return nil, errors.New("not this one")
		}
		return &inserts{target: t, mode: mode}, nil
	}, os.Stdin, os.Stdout)
}

// inserts is a workload whose clients insert keys of their own.
type inserts struct {
	target *Target
	mode   string
	tables []*hash.Table
}

func (*inserts) Name() string    { return "inserts" }
func (*inserts) Scale() Scale    { return Scale{100, "keys"} }
func (*inserts) Kinds() []string { return []string{"insert"} }

func (w *inserts) Attach(ctx context.Context) error {
	places, err := w.target.Places(ctx)
	if err != nil {
		return err
	}
	w.tables, err = w.target.Hash(ctx, "inserts", hash.Config{}, places)
	return err
}

func (w *inserts) Load(ctx context.Context, p *Progress) error {
	if err := w.Attach(ctx); err != nil {
		return err
	}
	if err := w.target.Barrier(ctx); err != nil {
		return err
	}
	if w.mode == "no load" {
		return fmt.Errorf("%w: nothing to load", ErrInconsistent)
	}
	stage := p.Stage("loading", 100)
	defer stage.Done()
	for i := range 100 {
		if w.target.IsMine(i) {
			if err := w.insert(ctx, w.target.Here()[0], fmt.Sprint("loaded ", i)); err != nil {
				return err
			}
		}
		stage.Add(1)
	}
	return nil
}

func (w *inserts) insert(ctx context.Context, machine int, key string) error {
	if err := w.tables[machine].PutNow(ctx, []byte(key), []byte(key)); err != nil {
		return err
	}
	return w.target.Count(1)
}

func (w *inserts) NewClient(_ context.Context, th *Thread) (Client, error) {
	if !w.target.Has(th.Machine) {
		return nil, fmt.Errorf("a client of machine %d", th.Machine)
	}
	return &inserter{w: w, th: th}, nil
}

func (w *inserts) Check(ctx context.Context) error {
	counted, uncertain, err := w.target.Counted()
	if err != nil {
		return err
	}
	n := int64(0)
	if err := w.tables[w.target.Here()[0]].Check(ctx, hash.Visitor{Pair: func(_, _ []byte) error { n++; return nil }}); err != nil {
		return err
	}
	if n < counted-uncertain || n > counted+uncertain {
		return fmt.Errorf("%w: %d keys, counted %d, uncertain %d", ErrInconsistent, n, counted, uncertain)
	}
	return nil
}

type inserter struct {
	w  *inserts
	th *Thread
	n  int
}

func (c *inserter) Do(ctx context.Context) (int, error) {
	c.n++
	switch {
	case c.n == 50 && c.w.mode == "end":
		fmt.Fprintln(os.Stderr, "these are its last words")
		os.Exit(7)
	case c.n == 50 && c.w.mode == "fail":
		return 0, fmt.Errorf("%w: a row is torn", ErrInconsistent)
	case c.n == 50 && c.w.mode == "miscount":
		if err := c.w.target.Count(1); err != nil {
			return 0, err
		}
	}
	return 0, c.th.Retry(ctx, func() error { return c.w.insert(ctx, c.th.Machine, fmt.Sprint(c.th.Number, " ", c.n)) })
}

func (*inserter) Close() error { return nil }

// testLog collects the machines' logs.
type testLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *testLog) add(machine int, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprint(machine, ": ", line))
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// shared returns a target of several machines, all of which have replicas.
func shared(machines int) TargetConfig {
	target := smallTarget
	target.Machines, target.Replicas, target.Transport, target.RegionSize = machines, machines, TransportSHM, 4*farmsql.MiB
	return target
}

// clusterOf describes a cluster. mode sets the behaviour of its last machine.
func clusterOf(machines int, mode string) (ClusterConfig, *testLog) {
	log := new(testLog)
	return ClusterConfig{Target: shared(machines), Log: log.add, Command: func(machine int, folder string) *exec.Cmd {
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), asMachine+"="+strconv.Itoa(machine), asFolder+"="+folder, asMode+"="+mode, asOneOf+"="+strconv.Itoa(machines))
		return p
	}}, log
}

// openCluster opens a cluster. When the test ends, it closes the cluster, and checks that nothing
// is left.
func openCluster(t *testing.T, machines int, mode string) (*Cluster, *testLog) {
	t.Helper()
	if invariant.Enabled {
		t.Skip("machines of a cluster cannot share memory in race builds")
	}
	cfg, log := clusterOf(machines, mode)
	c, err := OpenCluster(t.Context(), cfg)
	if err != nil {
		t.Fatalf("%v\n%v", err, log)
	}
	t.Cleanup(func() {
		processes := c.Processes()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.folder); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", c.folder, err)
		}
		for _, p := range processes {
			if p != 0 && !errors.Is(syscall.Kill(p, 0), syscall.ESRCH) {
				t.Errorf("process %d is left", p)
			}
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	return c, log
}

// A machine of a cluster serves MySQL until it closes, and its clients connect there.
func TestMachineServesSQL(t *testing.T) {
	if invariant.Enabled {
		t.Skip("machines of a cluster cannot share memory in race builds")
	}
	cfg := MachineConfig{Target: shared(1), Folder: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	cfg.Target.API = SQL
	target, err := openMember(t.Context(), &cfg)
	if err != nil {
		t.Fatal(err)
	}
	var user, port string
	if err := target.SQL().QueryRow("SELECT USER(), @@port").Scan(&user, &port); err != nil || !strings.HasPrefix(user, "root@") {
		t.Errorf("%q: %v", user, err)
	}
	address := net.JoinHostPort("127.0.0.1", port)
	there, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = there.Close()
	if err := target.serve(t.Context(), target.dbs[0], "nowhere"); err == nil {
		t.Error("serves nowhere")
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", address); err == nil {
		t.Error("serves when closed")
	}
}

func TestCluster(t *testing.T) {
	c, log := openCluster(t, 2, "")
	var shown strings.Builder
	if err := c.Load(t.Context(), NewProgress(&shown)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(shown.String(), "loading: ") || strings.Count(shown.String(), "\n") != 1 {
		t.Errorf("shown: %q", shown.String())
	}
	for range 2 { // the second run's keys are others
		res, err := c.Run(t.Context(), Options{Threads: 2, Transactions: 100, Seed: 1, AnyBuild: true})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, n := range res.PerMillisecond {
			sum += int(n)
		}
		if res.Total.Count != 400 || sum != 400 || res.Kinds[0].Name != "insert" || res.Seconds <= 0 || res.Total.Max <= 0 || res.Processor <= 0 || res.Allocations < 1 {
			t.Errorf("%d transactions, %d in all milliseconds: %+v", res.Total.Count, sum, res)
		}
		if r := res.Reads; r == nil || r.Messages < 0.2 || r.Records == 0 {
			t.Errorf("half of the inserts are shipped, and have records: %+v", r)
		}
		if n := &res.Conditions; n.Processes != 2 || n.Machines != 2 || n.Threads != 2 || n.Workload != "inserts" || n.Scale.N != 100 ||
			!strings.Contains(n.Describe(), "\n2 machines, 2 replicas, transport shm, 1 worker each, 2 threads each, regions in files in /dev/shm, each machine a process with its clients") {
			t.Errorf("%+v\n%s", n, n.Describe())
		}
	}
	if !strings.Contains(log.String(), `"msg":"leases"`) {
		t.Errorf("logged: %v", log)
	}
}

// A machine is killed during the run, and comes back. The run measures the work of the others, and
// the killed machine's commits are not lost.
func TestClusterKill(t *testing.T) {
	c, log := openCluster(t, 3, "")
	if err := c.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	r, err := c.Start(t.Context(), Options{Threads: 2, Duration: time.Hour, Seed: 1, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if err := c.Restart(t.Context(), 2); err == nil {
		t.Error("a machine that runs was started again")
	}
	killed, err := c.Kill(2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kill(2); err == nil {
		t.Error("a machine was killed twice")
	}
	for !strings.Contains(log.String(), `"msg":"reconfigured"`) || !strings.Contains(log.String(), `"dead":[2]`) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second) // of the others' work, also on a busy computer
	r.Stop()
	res, err := r.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := uint32(0) // that ended after the kill
	for _, n := range res.PerMillisecond[killed.Sub(r.Measured()).Milliseconds()+1:] {
		after += n
	}
	if after == 0 || res.Seconds < 0.25 || res.Seconds > 3600/2 {
		t.Errorf("%d of %d transactions after the kill, %.3f s in all", after, res.Total.Count, res.Seconds)
	}
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if p := c.Processes(); p[0] == 0 || p[1] == 0 || p[2] != 0 {
		t.Errorf("processes %v", p)
	}
	if err := c.Restart(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if res, err := c.Run(t.Context(), Options{Transactions: 50, Seed: 2, AnyBuild: true}); err != nil || res.Total.Count != 150 {
		t.Errorf("%v: %+v", err, res)
	}
	for machine := range 3 {
		if _, err := c.Kill(machine); err != nil {
			t.Error(err)
		}
	}
	if err := c.Check(t.Context()); err == nil {
		t.Error("data of no machine were checked")
	}
	if r, err := c.Start(t.Context(), Options{Transactions: 1, AnyBuild: true}); err == nil {
		if _, err := r.Wait(t.Context()); err == nil {
			t.Error("a result of no machine")
		}
	}
}

// An error in a machine's process becomes an error that names the machine.
func TestClusterFails(t *testing.T) {
	for mode, want := range map[string]struct {
		error
		text string
	}{
		"no load":  {ErrInconsistent, "nothing to load"},
		"end":      {nil, `exit status 7); the last it said: "these are its last words"`},
		"fail":     {ErrInconsistent, "a row is torn"},
		"miscount": {ErrInconsistent, "no result"},
	} {
		c, _ := openCluster(t, 2, mode)
		err := c.Load(t.Context(), nil)
		if err == nil {
			o := Options{Transactions: 100, AnyBuild: true}
			if mode == "end" { // the other one is still at it, and has no majority any more
				o = Options{Duration: time.Hour, AnyBuild: true}
			}
			_, err = c.Run(t.Context(), o)
		}
		if err == nil || !strings.Contains(err.Error(), want.text) || want.error != nil && !errors.Is(err, want.error) {
			t.Errorf("%s: %v", mode, err)
		}
		if mode != "miscount" && err != nil && !strings.Contains(err.Error(), "machine 1") {
			t.Errorf("%s: it does not say where: %v", mode, err)
		}
	}
}

func TestClusterIsRefused(t *testing.T) {
	if invariant.Enabled {
		t.Skip("machines of a cluster cannot share memory in race builds")
	}
	cfg, _ := clusterOf(2, "refuse")
	if _, err := OpenCluster(t.Context(), cfg); !errors.Is(err, ErrTarget) || !strings.Contains(err.Error(), "not this one") {
		t.Errorf("a workload is refused: %v", err)
	}
	cfg.Command = func(int, string) *exec.Cmd { return exec.Command("/no/such/program") }
	if _, err := OpenCluster(t.Context(), cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
	cfg.Command = func(int, string) *exec.Cmd { return exec.Command("true") }
	if _, err := OpenCluster(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "has ended (by itself)") {
		t.Errorf("not a machine: %v", err)
	}
	t.Setenv(machineEnv, "0")
	if _, err := OpenCluster(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "ServeMachine") {
		t.Errorf("of a machine of another: %v", err)
	}
	t.Setenv(machineEnv, "")
	cfg.Target.Transport = TransportLocal
	if _, err := OpenCluster(t.Context(), cfg); !errors.Is(err, ErrTarget) {
		t.Errorf("processes over %s: %v", cfg.Target.Transport, err)
	}
	cfg, _ = clusterOf(2, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenCluster(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A machine whose parent has ended leaves nothing.
func TestMachineWithoutParent(t *testing.T) {
	if invariant.Enabled {
		t.Skip("machines of a cluster cannot share memory in race builds")
	}
	folder, err := os.MkdirTemp(memoryFolder, "farmsql-bench-")
	if err != nil {
		t.Fatal(err)
	}
	cfg, _ := clusterOf(2, "") // the other one never comes
	err = ServeMachine(t.Context(), MachineConfig{Target: cfg.Target, Folder: folder}, func(*Target) (Workload, error) { return nil, nil }, strings.NewReader(""), io.Discard)
	if !errors.Is(err, errParentGone) {
		t.Error(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", folder, err)
	}
}

// Measurements of a process arrive unchanged.
func TestPartAsJSON(t *testing.T) {
	p := &part{Record: newRecord(2), Measured: time.Second, Own: time.Minute, Allocations: 3000, AllocatedBytes: 50_000, Aborts: map[string]uint64{"lock": 3}, Reads: &machineCounters{1, 2, 3, 4}}
	for i := range 1000 {
		p.Record.add(i%2, time.Duration(i*i)*time.Microsecond, time.Duration(i)*time.Millisecond, i%3 == 0, 1)
	}
	text, err := json.Marshal(report{Part: p})
	if err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	q := again.Part
	c, kinds := Conditions{}, []string{"odd", "even"}
	want, errWant := p.result(c, kinds)
	got, err := q.result(c, kinds)
	if err := errors.Join(errWant, err); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, got, want)
	}
	both, err := merge([]*part{p, q}).result(c, kinds)
	if err != nil || both.Total.Count != 2000 || both.Seconds != 1 || both.Aborts["lock"] != 6 || both.PerMillisecond[999] != 2 ||
		both.Total.P50 != want.Total.P50 || both.Processor != want.Processor || *both.Reads != *want.Reads ||
		want.Allocations != 3 || want.AllocatedBytes != 50 || both.Allocations != 3 || both.AllocatedBytes != 50 {
		t.Errorf("%v: %+v, each was %+v", err, both, want)
	}
	if err := json.Unmarshal([]byte(`{"part":{"Record":{"Kinds":[{"Latency":"bm9uc2Vuc2U="}]}}}`), &again); err == nil {
		t.Error("nonsense is a histogram")
	}
}
