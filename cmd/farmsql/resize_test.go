package main

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// resize asks the machine with the newest configuration, and says what it has come to.
func TestResize(t *testing.T) {
	data, o := withAbsent(t)
	first := o.status
	first.Replicas = 3
	for i := range first.Regions {
		first.Regions[i] = farmsql.RegionStatus{Region: i + 1, Primary: 0, Backups: []int{1, 2}}
	}
	older := first
	older.Protocol, older.Machines = 3, []farmsql.MachineStatus{{Machine: 0, ProtocolMax: 4}, {Machine: 1, ProtocolMax: 3}}
	other := first
	other.Replicas, other.Resize = 2, &farmsql.ResizeStatus{Regions: 1}
	for _, x := range []struct {
		name   string
		status farmsql.Status
		args   []string
		code   int
		text   string
	}{
		{"done", first, nil, 0, "all 4 regions have 3 replicas\n"},
		{"not waited for", first, []string{"--no-wait"}, 0, "regions get 3 replicas\n"},
		{"another number", other, nil, 1, "regions get 2 replicas now: somebody has asked for another number"},
		{"among earlier programs", older, nil, 1, "speaks version 3 of the protocol, and version 4 is needed for the number of replicas to change: start machine 1 with this farmsql"},
		{"in one process", farmsql.Status{Source: farmsql.StatusOfProcess, Configuration: 9}, nil, 1, "they keep the number of replicas that they have: start its machines as processes of their own"},
	} {
		o.set(x.status)
		code, out, errs := execute(t, "", append([]string{"resize", "--data", data, "--replicas", "3"}, x.args...)...)
		if code != x.code || !strings.Contains(out+errs, x.text) {
			t.Errorf("%s: status %d: %s%s", x.name, code, out, errs)
		}
	}
	if want := []int{3, 3, 3}; !reflect.DeepEqual(o.sizes, want) {
		t.Errorf("asked for %v", o.sizes)
	}
	o.set(first)
	o.err = errors.New("not today")
	if code, _, errs := execute(t, "", "resize", "--data", data, "--replicas", "3"); code != 1 || !strings.Contains(errs, "resize to 3 replicas: machine-1: not today") {
		t.Errorf("status %d: %s", code, errs)
	}
	o.err = errors.New(unknownRequest)
	if code, _, errs := execute(t, "", "resize", "--data", data, "--replicas", "3"); code != 1 || !strings.Contains(errs, "machine-1: runs an earlier program") {
		t.Errorf("at an earlier program: status %d: %s", code, errs)
	}
	if code, _, _ := execute(t, "", "resize", "--data", data); code != cli.ExitUsage {
		t.Errorf("without a number: status %d", code)
	}
	if code, _, errs := execute(t, "", "resize", "--data", t.TempDir(), "--replicas", "3"); code != 1 || !strings.Contains(errs, "no process answers") {
		t.Errorf("status %d: %s", code, errs)
	}
}

// Before each region has one replica, resize asks.
func TestResizeToOne(t *testing.T) {
	data, o := withAbsent(t)
	several, one := o.status, o.status
	several.Replicas, one.Replicas = 2, 1
	for _, x := range []struct {
		in   string
		args []string
		now  farmsql.Status
		asks bool
		done bool
	}{
		{"", nil, several, true, false},
		{"yes\n", nil, several, true, false},
		{"resize to 1 replica\n", nil, several, true, true},
		{"", []string{"--yes"}, several, false, true},
		{"", nil, one, false, true},
	} {
		o.set(x.now)
		o.sizes = nil
		code, out, errs := execute(t, x.in, append([]string{"resize", "--data", data, "--replicas", "1", "--no-wait"}, x.args...)...)
		asks := strings.Contains(out, `With one replica each machine that stops makes its regions unavailable`)
		if asks != x.asks || (len(o.sizes) == 1) != x.done || (code == 0) != x.done || !x.done && !strings.Contains(errs, "not confirmed: nothing was done") {
			t.Errorf("%q %v: status %d, asked for %v: %s%s", x.in, x.args, code, o.sizes, out, errs)
		}
	}
}

// resize prints how many regions are done, and what the others wait for if nothing changes. If something is in the
// way that only somebody else can remove, it ends.
func TestResizeProgress(t *testing.T) {
	defer func(was, obstacle time.Duration) { movesQuiet, obstaclePatience = was, obstacle }(movesQuiet, obstaclePatience)
	data, o := withAbsent(t)
	s := o.status
	s.Replicas, s.Resize = 3, &farmsql.ResizeStatus{Regions: 3}
	o.set(s)
	s.Resize = nil
	o.become(s, 3)
	code, out, errs := execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 0 || !strings.Contains(out, "1 of 4 regions have 3 replicas\n") || !strings.Contains(out, "all 4 regions have 3 replicas\n") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	movesQuiet = 0
	s.Resize, s.MovesAwait = &farmsql.ResizeStatus{Regions: 3}, "region 7, which is being filled at machine 1"
	o.set(s)
	s.Resize = nil
	o.become(s, 4)
	code, out, errs = execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 0 || strings.Count(out, "waiting for region 7, which is being filled at machine 1\n") != 1 {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	s.Resize = &farmsql.ResizeStatus{Regions: 3, Obstacle: "farmsql: no machine has room"}
	o.set(s)
	s.Resize = nil
	o.become(s, 4) // as when a machine has been away for a moment
	code, out, errs = execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 0 || strings.Count(out, "waiting: farmsql: no machine has room\n") != 1 {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	obstaclePatience = 0
	s.Resize = &farmsql.ResizeStatus{Regions: 3, Obstacle: "farmsql: no machine has room"}
	o.set(s)
	code, _, errs = execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 1 || !strings.Contains(errs, "no machine has room; the machines go on when that has changed") {
		t.Errorf("status %d: %s", code, errs)
	}
}

// Regions that have fewer replicas than they should are not reported as done, though no resize is going on: machines are
// away, or what is being filled is not complete yet.
func TestResizeOfShortRegions(t *testing.T) {
	defer func(was, obstacle time.Duration) { movesQuiet, obstaclePatience = was, obstacle }(movesQuiet, obstaclePatience)
	movesQuiet, obstaclePatience = 0, 0
	data, o := withAbsent(t)
	s := o.status
	s.Replicas, s.Regions = 3, []farmsql.RegionStatus{{Region: 1, Primary: 0, Backups: []int{1}}, {Region: 2, Primary: 0, Backups: []int{1, 2}}}
	s.Short = []int{1}
	o.set(s)
	code, out, errs := execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 1 || strings.Contains(out, "all") || !strings.Contains(out, "1 of 2 regions have 3 replicas\n") ||
		!strings.Contains(errs, "1 region has fewer than 3 replicas, since machines are away or have no room") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	if code, out, _ := execute(t, "", "status", "--data", data); code != 0 || !strings.Contains(out, "short:    1 region has fewer than 3 complete replicas\n") {
		t.Errorf("status %d: %s", code, out)
	}
	for name, x := range map[string]struct {
		change func(*farmsql.Status)
		text   string
	}{
		"filling":     {func(s *farmsql.Status) { s.MovesAwait = "region 1, which is being filled at machine 2" }, "waiting for region 1, which is being filled at machine 2\n"},
		"unavailable": {func(s *farmsql.Status) { s.Regions[0].Primary = -1; s.MovesAwait = "region 1, which is unavailable" }, "waiting for region 1, which is unavailable\n"},
		"the CM":      {func(s *farmsql.Status) { s.Resize = &farmsql.ResizeStatus{Regions: 1}; s.Machines[0].IsCM = true }, "waiting for machine 0, the configuration manager, whose status may say more\n"},
		"this CM":     {func(s *farmsql.Status) { s.Resize = &farmsql.ResizeStatus{Regions: 1}; s.Machines[1].IsCM = true }, "waiting for the configuration manager\n"},
	} {
		now := s
		now.Regions, now.Machines = slices.Clone(s.Regions), slices.Clone(s.Machines)
		x.change(&now)
		o.set(now)
		now.Short, now.Resize = nil, nil
		o.become(now, 4)
		code, out, errs := execute(t, "", "resize", "--data", data, "--replicas", "3")
		if code != 0 || strings.Count(out, x.text) != 1 || !strings.HasSuffix(out, "all 2 regions have 3 replicas\n") {
			t.Errorf("%s: status %d: %s%s", name, code, out, errs)
		}
	}
}

// Only the CM is told at once that a replica is filled. Another machine must not let resize wait for that for ever, nor say
// that all is done.
func TestResizeAsAnotherMachineSeesIt(t *testing.T) {
	defer func(was, obstacle time.Duration) { movesQuiet, obstaclePatience = was, obstacle }(movesQuiet, obstaclePatience)
	movesQuiet, obstaclePatience = 0, 0
	data, o := withAbsent(t)
	s := o.status
	s.Machine, s.Replicas, s.Short, s.MovesAwait = 1, 3, []int{1}, "region 1, which is being filled at machine 2"
	s.Regions = []farmsql.RegionStatus{{Region: 1, Primary: 0, Backups: []int{1, 2}, Filling: []int{2}}}
	s.Machines = []farmsql.MachineStatus{{Machine: 0, IsCM: true}, {Machine: 1}, {Machine: 2}}
	o.set(s)
	code, out, errs := execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 1 || strings.Contains(out, "all") || !strings.Contains(errs, "1 region is still being filled, as far as machine 1 knows") || !strings.Contains(errs, "ask machine 0, the configuration manager") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	if code, out, _ := execute(t, "", "status", "--data", data); code != 0 || !strings.Contains(out, "complete replicas, as far as machine 1 knows; machine 0, the configuration manager, knows more\n") {
		t.Errorf("status %d: %s", code, out)
	}
}

// Where machines keep the configuration themselves, resize waits until more of them do, and says so if they do not, or
// cannot: three replicas are of no use if one machine alone keeps the configuration.
func TestResizeWaitsForFounders(t *testing.T) {
	defer func(was time.Duration) { foundersPatience = was }(foundersPatience)
	foundersPatience = 0
	data, o := withAbsent(t)
	s := o.status
	s.Replicas, s.Regions = 3, []farmsql.RegionStatus{{Region: 1, Primary: 0, Backups: []int{1, 2}}}
	s.Machines = []farmsql.MachineStatus{{Machine: 0}, {Machine: 1}, {Machine: 2}}
	s.Founders, s.FoundersWanted = []farmsql.FounderStatus{{Machine: 0}}, 3
	o.set(s)
	code, out, errs := execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 1 || !strings.HasSuffix(out, "all 1 region has 3 replicas\n1 machine keeps the configuration, 3 are to\n") ||
		!strings.Contains(errs, "1 machine keeps the configuration, and 3 should: the loss of one may be that of the cluster") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	foundersPatience = time.Hour
	o.set(s)
	done := s
	done.Founders, done.FoundersWanted = []farmsql.FounderStatus{{Machine: 0}, {Machine: 1}, {Machine: 2}}, 0
	o.become(done, 5)
	code, out, errs = execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 0 || !strings.HasSuffix(out, "1 machine keeps the configuration, 3 are to\n3 machines keep the configuration\n") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	s.Machines, s.Founders = s.Machines[:2], done.Founders[:2]
	o.set(s)
	code, out, errs = execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 0 || !strings.Contains(out, "NOTE: 2 machines keep the configuration, and 3 should: as long as there are no more machines") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
}

// The status says how far a resize is.
func TestStatusOfAResize(t *testing.T) {
	data, o := withAbsent(t)
	s := o.status
	s.Replicas, s.Resize = 3, &farmsql.ResizeStatus{Regions: 3, Obstacle: "no machine has room"}
	o.set(s)
	code, out, errs := execute(t, "", "status", "--data", data)
	if code != 0 || !strings.Contains(out, "resize:   regions get 3 replicas; 3 of 4 do not have them yet\n") || !strings.Contains(out, "NOT RESIZING: no machine has room\n") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
}
