package main

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// drain asks the machine with the newest configuration, and says what it has come to.
func TestDrain(t *testing.T) {
	data, o := withAbsent(t)
	first := o.status
	has := func(status farmsql.MachineStatus, replicas ...int) farmsql.Status {
		s := first
		s.Machines = []farmsql.MachineStatus{{Machine: 0}, status}
		s.Regions = nil
		for _, r := range replicas {
			s.Regions = append(s.Regions, farmsql.RegionStatus{Region: r, Primary: 1, Backups: []int{0}})
		}
		return s
	}
	draining := farmsql.MachineStatus{Machine: 1, IsDraining: true}
	mixed := has(draining, 1)
	mixed.Protocol = 2
	mixed.Machines = []farmsql.MachineStatus{{Machine: 0, ProtocolMax: 2}, {Machine: 1, ProtocolMax: 3}, {Machine: 2, ProtocolMax: 1}}
	last := mixed
	last.Machines = mixed.Machines[:2]
	oldest := has(draining, 1)
	oldest.Protocol = 0
	stuck := draining
	stuck.Obstacle = "farmsql: no other machine has room"
	founder, alone := has(draining), has(draining)
	founder.Founders = []farmsql.FounderStatus{{Machine: 1}, {Machine: 7}, {Machine: 8}}
	alone.Founders = []farmsql.FounderStatus{{Machine: 0}, {Machine: 1}}
	other := has(draining)
	other.Founders = []farmsql.FounderStatus{{Machine: 0}}
	for _, x := range []struct {
		name   string
		status farmsql.Status
		args   []string
		code   int
		text   string
	}{
		{"without data", has(draining), nil, 0, "machine 1 has no data; it may be stopped"},
		{"keeps the configuration", founder, nil, 0, "one of the 3 that keep the configuration, of which a majority must stay: when it is stopped for good, have another take its place with farmsql forget --machine 1\n"},
		{"keeps the configuration, as all", alone, nil, 0, "must stay: let another machine join first, and when it is stopped"},
		{"does not keep the configuration", other, nil, 0, "it may be stopped\n"},
		{"undone", has(draining, 1), []string{"--undo"}, 0, "machine 1 may have data again"},
		{"not waited for", has(draining, 1), []string{"--no-wait"}, 0, "machine 1 is being drained"},
		{"stuck", has(stuck, 1), nil, 1, "no other machine has room"},
		{"taken back", has(farmsql.MachineStatus{Machine: 1}, 1), nil, 1, "somebody has taken it back"},
		{"gone", has(farmsql.MachineStatus{Machine: 2}), nil, 1, "machine 1 is no member any more"},
		{"among machines of earlier programs", mixed, nil, 1, "speaks version 2 of the protocol, and version 3 is needed for regions to move: start machines 0 2 with this farmsql"},
		{"with one machine of an earlier program", last, nil, 1, "start machine 0 with this farmsql"},
		{"at a program of before versions", oldest, nil, 1, "version 3 is needed for regions to move: start it, and all others"},
		{"in one process", farmsql.Status{Source: farmsql.StatusOfProcess, Configuration: 9}, nil, 1, "none can be drained"},
	} {
		o.set(x.status)
		code, out, errs := execute(t, "", append([]string{"drain", "--data", data, "--machine", "1"}, x.args...)...)
		if code != x.code || !strings.Contains(out+errs, x.text) {
			t.Errorf("%s: status %d: %s%s", x.name, code, out, errs)
		}
	}
	if want := []drainRequest{{1, false}, {1, false}, {1, false}, {1, false}, {1, true}, {1, false}, {1, false}, {1, false}, {1, false}}; !reflect.DeepEqual(o.drains, want) {
		t.Errorf("asked for %v", o.drains)
	}
	o.set(has(draining, 1))
	o.err = errors.New("not today")
	if code, _, errs := execute(t, "", "drain", "--data", data, "--machine", "1"); code != 1 || !strings.Contains(errs, "drain machine 1: machine-1: not today") {
		t.Errorf("status %d: %s", code, errs)
	}
	if code, _, _ := execute(t, "", "drain", "--data", data); code != cli.ExitUsage {
		t.Errorf("without a machine: status %d", code)
	}
	if code, _, errs := execute(t, "", "drain", "--data", t.TempDir(), "--machine", "1"); code != 1 || !strings.Contains(errs, "no process answers") {
		t.Errorf("status %d: %s", code, errs)
	}
}

// A machine that starts cannot be asked.
func TestDrainOfAStartingMachine(t *testing.T) {
	data := t.TempDir()
	defer mustServeStatus(t, machineFolder(data, 4), farmsql.Status{Source: farmsql.StatusOfMachine, Machine: 4, Starting: "waits for rain"}).Close()
	if code, _, errs := execute(t, "", "drain", "--data", data, "--machine", "1"); code != 1 || !strings.Contains(errs, "it waits for rain") {
		t.Errorf("status %d: %s", code, errs)
	}
}

// drain goes on printing what is left, until nothing is.
func TestDrainProgress(t *testing.T) {
	data, o := withAbsent(t)
	s := o.status
	s.Machines = []farmsql.MachineStatus{{Machine: 0}, {Machine: 1, IsDraining: true}}
	s.Regions = []farmsql.RegionStatus{{Region: 1, Primary: 1}, {Region: 2, Primary: 0, Backups: []int{1}}}
	o.set(s)
	s.Regions = nil
	o.become(s, 3)
	code, out, errs := execute(t, "", "drain", "--data", data, "--machine", "1")
	if code != 0 || !strings.Contains(out, "machine 1 has 2 replicas\n") || !strings.Contains(out, "machine 1 has no data") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
}

// drain says what the moves wait for if nothing changes.
func TestDrainThatWaits(t *testing.T) {
	defer func(was time.Duration) { movesQuiet = was }(movesQuiet)
	movesQuiet = 0
	data, o := withAbsent(t)
	s := o.status
	s.Machines = []farmsql.MachineStatus{{Machine: 0}, {Machine: 1, IsDraining: true}}
	s.Regions = []farmsql.RegionStatus{{Region: 1, Primary: 1}}
	s.MovesAwait = "region 7, which is unavailable"
	o.set(s)
	s.Regions = nil
	o.become(s, 4)
	code, out, errs := execute(t, "", "drain", "--data", data, "--machine", "1")
	if code != 0 || strings.Count(out, "waiting for region 7, which is unavailable\n") != 1 {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
}
