package growth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
)

// script makes a program that stands in for farmsql.
func script(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "farmsql")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	return file
}

// sleeps is a machine that serves nobody.
const sleeps = "exec sleep 1000"

// newTestMachines returns machines that are scripts.
func newTestMachines(t *testing.T, cfg Config) *machines {
	t.Helper()
	folder, err := os.MkdirTemp("", "fg") // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	cfg.Data = folder
	cfg = cfg.withDefaults()
	m, err := newMachines(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.remove(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestMeasureFails(t *testing.T) {
	const address = "farmsql is ready on 127.0.0.1:1: connect"
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"no program":    {Config{Program: "/no/such/program"}, "no such file"},
		"no folder":     {Config{Program: "/no/such/program", Data: "/no/such/folder"}, "/no/such/folder"},
		"ends":          {Config{Program: script(t, "echo it is broken >&2", "exit 3")}, `machine 0 has ended by itself (exit status 3); the last that it logged: "it is broken"`},
		"never ready":   {Config{Program: script(t, sleeps), Patience: 50 * time.Millisecond}, "waited for it to serve"},
		"no invitation": {Config{Program: script(t, sleeps), Replicas: 3, Patience: 50 * time.Millisecond}, "waited for its invitation"},
		"no number":     {Config{Program: script(t, `echo "serve --join abc"`, sleeps), Replicas: 3, Patience: 50 * time.Millisecond}, "machine 1 to join"},
		"no join": {Config{Program: script(t, `case "$*" in *raft:*) echo "serve --join abc"; exec sleep 1000;; esac`, "echo refused >&2", "exit 1"), Replicas: 3},
			`machine 1 has ended by itself (exit status 1); the last that it logged: "refused"`},
		"serves nobody": {Config{Program: script(t, "echo "+address, sleeps)}, "127.0.0.1:1"},
	} {
		c.cfg.AnyBuild = true
		_, err := Measure(t.Context(), c.cfg, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.cfg.Patience != 0 && !errors.Is(err, ErrPatience) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServeFails(t *testing.T) {
	m := &measurement{clients: newClients(1, 1), workload: func(*bench.Target) (bench.Workload, error) { return nil, errBroken }}
	if err := m.serve(t.Context(), 0, "127.0.0.1:1"); err == nil || errors.Is(err, errBroken) {
		t.Errorf("nobody listens: %v", err)
	}
	db, err := farmsql.Open(farmsql.Config{Volatile: true, RegionSize: 4 * farmsql.MiB, LogSize: farmsql.MiB, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = db.Serve(t.Context(), l) }() // until db closes
	if err := m.serve(t.Context(), 0, l.Addr().String()); !errors.Is(err, errBroken) || len(m.clients.endpoints) > 0 {
		t.Errorf("a workload that cannot be made: %v", err)
	}
	if err := m.endpoints[0].target.Close(); err != nil {
		t.Error(err)
	}
}

// A machine that was evicted says so in its log.
func TestEvictions(t *testing.T) {
	m := newTestMachines(t, Config{Program: script(t, `echo 'level=WARN msg="coming back" reason=evicted' >&2`)})
	p, err := m.start()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.awaitEnd(t.Context()); err != nil || m.evictions() != 1 {
		t.Errorf("%d evictions: %v", m.evictions(), err)
	}
}

func TestJoinFails(t *testing.T) {
	for want, program := range map[string]string{
		"farmsql token: exit status 1: no key": script(t, "echo no key", "exit 1"),
		"no token in what":                     script(t, "echo nothing"),
		"machine 0 has ended by itself":        script(t, `case "$1" in token) echo "farmsql serve --join xyz";; esac`),
	} {
		m := newTestMachines(t, Config{Program: program})
		if _, _, err := m.join(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestDrainFails(t *testing.T) {
	m := newTestMachines(t, Config{Program: script(t, "echo no room", "exit 1")})
	if err := m.drain(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "farmsql drain: exit status 1: no room") {
		t.Error(err)
	}
}

func TestStopFails(t *testing.T) {
	bad := newTestMachines(t, Config{Program: script(t, "trap 'echo torn >&2; exit 2' TERM", "echo ' --join x'", "while :; do sleep 0.01; done")})
	deaf := newTestMachines(t, Config{Program: script(t, "trap '' TERM", "echo ' --join x'", "while :; do sleep 0.01; done")})
	for want, m := range map[string]*machines{
		`did not stop in good order: exit status 2; the last that it logged: "torn"`: bad, "does not stop": deaf,
	} {
		for _, stop := range []func(context.Context) error{func(ctx context.Context) error { return m.stop(ctx, 0) }, m.end} {
			m.all = nil
			p, err := m.start()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.awaitLine(t.Context(), p.token, "its traps"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := t.Context(), func() {}
			if m == deaf {
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
			}
			if err := stop(ctx); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			cancel()
			p.kill()
		}
	}
}

// sayStatus answers in place of a machine, with what status returns.
func sayStatus(t *testing.T, p *process, status func() any) {
	t.Helper()
	if err := os.MkdirAll(p.folder(), 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(p.folder(), "status.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = json.NewEncoder(c).Encode(status()) // the other side may have gone
			c.Close()
		}
	}()
}

func TestStatus(t *testing.T) {
	m := newTestMachines(t, Config{Program: script(t, sleeps)})
	var all []*process
	for range 3 {
		p, err := m.start()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if _, err := m.view(); err == nil || !strings.Contains(err.Error(), "status of machine 0") {
		t.Errorf("nobody answers: %v", err)
	}
	cm := 0
	view := func(machine int) func() any {
		return func() any {
			s := farmsql.Status{Machine: machine}
			for i := range all {
				s.Machines = append(s.Machines, farmsql.MachineStatus{Machine: i, IsCM: i == cm})
			}
			return s
		}
	}
	sayStatus(t, all[0], view(0))
	sayStatus(t, all[1], func() any { return "nonsense" })
	sayStatus(t, all[2], view(2))
	for _, cm = range []int{0, 2} {
		if s, err := m.view(); err != nil || s.Machine != cm {
			t.Errorf("the view of machine %v, want %d: %v", s, cm, err)
		}
	}
	if _, err := all[1].status(); err == nil || !strings.Contains(err.Error(), "status of machine 1") {
		t.Errorf("nonsense: %v", err)
	}
	if err := m.died(); err != nil {
		t.Error(err)
	}
	all[2].kill()
	if err := m.died(); err == nil || !strings.Contains(err.Error(), "machine 2 has ended by itself") {
		t.Error(err)
	}
}

// A step that waits for the machines to be even notes their shares when nothing is left to move, and the
// folders have what the status says.
func TestEvenOut(t *testing.T) {
	m := newTestMachines(t, Config{Program: script(t, sleeps)})
	p, err := m.start()
	if err != nil {
		t.Fatal(err)
	}
	looks := 0
	sayStatus(t, p, func() any {
		s := farmsql.Status{Replicas: 1, Machines: []farmsql.MachineStatus{{IsCM: true}}, Regions: []farmsql.RegionStatus{{Region: 1}}}
		if looks++; looks < 3 {
			s.Regions[0].Move = &farmsql.MoveStatus{From: 1}
		}
		return s
	})
	x := &measurement{cfg: m.cfg, machines: m, clients: newClients(1, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), quiet+time.Second)
	if err := x.evenOut("at last", 1)(ctx); err == nil || !strings.Contains(err.Error(), "regions to move at last") || !strings.Contains(err.Error(), "1 machines, 1 regions, 0 of them move, 0 replicas") {
		t.Errorf("without the region's file: %v", err)
	}
	cancel()
	if err := os.WriteFile(filepath.Join(p.folder(), "region-1.mem"), make([]byte, 8192), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := x.evenOut("at last", 1)(t.Context()); err != nil || len(x.evenness) != 1 || len(x.evenness[0].Machines) != 1 {
		t.Fatalf("%v, %+v", err, x.evenness)
	}
	if got := x.evenness[0].Machines[0]; got.Replicas != 1 || got.Primaries != 1 || got.Bytes < 8192 {
		t.Errorf("%+v", got)
	}
	p.kill()
	if err := x.evenOut("at last", 1)(t.Context()); err == nil || !strings.Contains(err.Error(), "has ended by itself") {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		w    *fakeWorkload
		want error
	}{
		{&fakeWorkload{committed: 5}, nil},
		{&fakeWorkload{committed: 7}, nil},
		{&fakeWorkload{committed: 4}, bench.ErrInconsistent},
		{&fakeWorkload{committed: 8}, bench.ErrInconsistent},
		{&fakeWorkload{committed: 5, check: errBroken}, errBroken},
	} {
		m := &measurement{
			cfg: &Config{Back: 1}, endpoints: []*endpoint{{workload: c.w}}, work: &work{acknowledged: map[int]int{0: 5}, doubtful: map[int]int{0: 2}},
		}
		if err := m.check(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%d committed: %v, want %v", c.w.committed, err, c.want)
		}
	}
	notCounted := struct{ bench.Workload }{&fakeWorkload{}}
	m := &measurement{cfg: &Config{Back: 1}, endpoints: []*endpoint{{workload: notCounted}}}
	if err := m.check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPollFails(t *testing.T) {
	if err := bench.Poll(t.Context(), "nothing", func() (bool, error) { return false, errBroken }); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if err := bench.Poll(ctx, "the end", func() (bool, error) { return false, nil }); !errors.Is(err, errBroken) || fmt.Sprint(err) != "bench: waited for the end: broken" {
		t.Error(err)
	}
}
