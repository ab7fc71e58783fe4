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

// resize asks the machine with the newest configuration, and says what it has come to.
func TestResize(t *testing.T) {
	data, o := withAbsent(t)
	first := o.status
	first.Replicas = 3
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
		{"in one process", farmsql.Status{Source: farmsql.StatusOfProcess, Configuration: 9}, nil, 1, "they have as many replicas as they were made with: start its machines as processes of their own"},
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
	defer func(was time.Duration) { drainQuiet = was }(drainQuiet)
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
	drainQuiet = 0
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
	code, _, errs = execute(t, "", "resize", "--data", data, "--replicas", "3")
	if code != 1 || !strings.Contains(errs, "no machine has room; the machines go on when that has changed") {
		t.Errorf("status %d: %s", code, errs)
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
