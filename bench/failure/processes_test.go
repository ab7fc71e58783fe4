package failure

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/tatp"
	"github.com/farmsql/farmsql/internal/invariant"
)

// Environment variables of a process of the test binary that is a machine.
const (
	asMachine = "FARMSQL_FAILURE_TEST_MACHINE"
	asFolder  = "FARMSQL_FAILURE_TEST_FOLDER"
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

// ofSQL are three machines that serve MySQL.
var ofSQL = bench.TargetConfig{
	API: bench.SQL, Machines: 3, Replicas: 2, Workers: 1, Transport: bench.TransportSHM, RegionSize: 4 * farmsql.MiB,
	RecoveryPace: farmsql.PaceAggressive,
}

// beMachine is the whole life of a machine.
func beMachine() error {
	machine, err := strconv.Atoi(os.Getenv(asMachine))
	if err != nil {
		return err
	}
	cfg := bench.MachineConfig{Target: ofSQL, Folder: os.Getenv(asFolder), Machine: machine, Log: slog.New(slog.NewJSONHandler(os.Stderr, nil))}
	return bench.ServeMachine(context.Background(), cfg, func(t *bench.Target) (bench.Workload, error) {
		return tatp.New(t, tatp.Config{Subscribers: 100, Seed: 1})
	}, os.Stdin, os.Stdout)
}

// Over MySQL, too, the clients of the survivors go on. Measure checks that the data are the result
// of their work, and that they meet only conflicts.
func TestSQL(t *testing.T) {
	if invariant.Enabled {
		t.Skip("machines of a cluster cannot share memory in race builds")
	}
	log := new(Log)
	cl, err := bench.OpenCluster(t.Context(), bench.ClusterConfig{Target: ofSQL, Log: log.Add, Command: func(machine int, folder string) *exec.Cmd {
		p := exec.Command(os.Args[0])
		p.Env = append(os.Environ(), asMachine+"="+strconv.Itoa(machine), asFolder+"="+folder)
		return p
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := cl.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c := Config{Target: ofSQL, Threads: 2, Before: 200 * time.Millisecond, After: 300 * time.Millisecond, Seed: 1, AnyBuild: true}
	res, err := Measure(t.Context(), cl, log, c)
	if err != nil {
		t.Fatal(err)
	}
	if r := &res.Runs[0]; len(r.Killed) != 1 || r.Before <= 0 || r.Suspected <= 0 || r.AllActive < r.Committed || r.Recovered == nil || r.FilledBytes == 0 {
		t.Errorf("%+v", r)
	}
	if n, isTold := res.Runs[0].Aborts["lock wait (1205)"]; isTold || res.Runs[0].Aborts == nil {
		t.Errorf("%d times 1205, which conflicts never are: %v", n, res.Runs[0].Aborts)
	}
	active := int(1000*res.Timeline.Events[0].Seconds + res.Runs[0].AllActive)
	after := 0
	for _, n := range res.Timeline.PerMillisecond[active:] {
		after += int(n)
	}
	if after == 0 {
		t.Error("nothing ended after all regions were active")
	}
	var b strings.Builder
	if err := res.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TATP, sql, 3 machines, 2 replicas, 100 subscribers: a machine killed", "with its clients, which come to a port of it"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
}
