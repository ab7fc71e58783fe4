package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// move asks the machine with the newest configuration, and says what it has come to.
func TestMove(t *testing.T) {
	data, o := withAbsent(t)
	first := o.status
	at := func(r farmsql.RegionStatus) farmsql.Status {
		s := first
		s.Regions = []farmsql.RegionStatus{{Region: 1}, r}
		return s
	}
	moving := farmsql.RegionStatus{Region: 7, Primary: 0, Backups: []int{1}, Move: &farmsql.MoveStatus{From: 0, To: 1}, Pinned: []int{1}}
	moved := farmsql.RegionStatus{Region: 7, Primary: 1, Pinned: []int{1}}
	older := at(moving)
	older.Protocol, older.Machines = 2, []farmsql.MachineStatus{{Machine: 0, ProtocolMax: 2}}
	for _, x := range []struct {
		name   string
		status farmsql.Status
		args   []string
		code   int
		text   string
	}{
		{"moved", at(moved), nil, 0, "region 7 is at machine 1\n"},
		{"moved and not held there", at(farmsql.RegionStatus{Region: 7, Primary: 2, Backups: []int{1}}), nil, 0, "region 7 is at machine 1\n"},
		{"moved before, not waited for", at(moved), []string{"--no-wait"}, 0, "region 7 is at machine 1\n"},
		{"another machine has failed", at(farmsql.RegionStatus{Region: 7, Primary: 0, Backups: []int{1}, Filling: []int{1}, Pinned: []int{1}}), nil, 1, "region 7 is still at machine 0, and at machine 1, too: the move is over"},
		{"another has failed when the target was filled", at(farmsql.RegionStatus{Region: 7, Primary: 0, Backups: []int{1}}), nil, 1, "region 7 is still at machine 0, and at machine 1, too: the move is over"},
		{"the machine that it left has failed", at(farmsql.RegionStatus{Region: 7, Primary: 2, Backups: []int{1}, Filling: []int{1}, Pinned: []int{1}}), nil, 1, "machine 0 has failed or left; region 7 is at machine 1 in its place, and that is still being filled"},
		{"it goes elsewhere", at(farmsql.RegionStatus{Region: 7, Primary: 0, Backups: []int{2}, Move: &farmsql.MoveStatus{From: 0, To: 2}}), nil, 1, "does not move to machine 1 any more"},
		{"unavailable", at(farmsql.RegionStatus{Region: 7, Primary: -1, Away: []int{0}}), nil, 1, "does not move to machine 1 any more"},
		{"not waited for", at(moving), []string{"--no-wait"}, 0, "region 7 moves from machine 0 to machine 1\n"},
		{"over", at(farmsql.RegionStatus{Region: 7}), nil, 1, "does not move to machine 1 any more"},
		{"lost", first, nil, 1, "region 7 is lost"},
		{"among earlier programs", older, nil, 1, "start machine 0 with this farmsql"},
		{"in one process", farmsql.Status{Source: farmsql.StatusOfProcess, Configuration: 9}, nil, 1, "none has data of its own to move"},
	} {
		o.set(x.status)
		code, out, errs := execute(t, "", append([]string{"move", "--data", data, "--region", "7", "--from", "0", "--to", "1"}, x.args...)...)
		if code != x.code || !strings.Contains(out+errs, x.text) {
			t.Errorf("%s: status %d: %s%s", x.name, code, out, errs)
		}
	}
	if want := (moveRequest{7, 0, 1}); len(o.moves) != 11 || !reflect.DeepEqual(o.moves[0], want) {
		t.Errorf("asked for %v", o.moves)
	}
	o.set(at(moving))
	o.err = errors.New("not today")
	if code, _, errs := execute(t, "", "move", "--data", data, "--region", "7", "--from", "0", "--to", "1"); code != 1 || !strings.Contains(errs, "move region 7: machine-1: not today") {
		t.Errorf("status %d: %s", code, errs)
	}
	if code, _, _ := execute(t, "", "move", "--data", data, "--region", "7", "--from", "0"); code != cli.ExitUsage {
		t.Errorf("without a target: status %d", code)
	}
	if code, _, errs := execute(t, "", "move", "--data", t.TempDir(), "--region", "7", "--from", "0", "--to", "1"); code != 1 || !strings.Contains(errs, "no process answers") {
		t.Errorf("status %d: %s", code, errs)
	}
}

// move repeats an order that other moves come before, and says each reason once, also with --no-wait. Other
// errors end it.
func TestMoveThatComesLater(t *testing.T) {
	data, o := withAbsent(t)
	s := o.status
	s.Regions = []farmsql.RegionStatus{{Region: 7, Backups: []int{1}, Move: &farmsql.MoveStatus{From: 0, To: 1}, Pinned: []int{1}}}
	o.set(s)
	first := fmt.Errorf("the move waits for region 1: %w", context.DeadlineExceeded)
	second := fmt.Errorf("the move waits for region 2: %w", context.DeadlineExceeded)
	o.waits = []error{first, first, second}
	code, out, errs := execute(t, "", "move", "--data", data, "--region", "7", "--from", "0", "--to", "1", "--no-wait")
	if code != 0 || len(o.moves) != 4 || strings.Count(out, "machine-1: the move waits for region 1\n") != 1 ||
		strings.Count(out, "waiting: move region 7: machine-1: the move waits for region 2\n") != 1 || !strings.Contains(out, "region 7 moves from") {
		t.Errorf("status %d after %d orders: %s%s", code, len(o.moves), out, errs)
	}
	o.waits, o.err = []error{first}, errors.New("not any more")
	if code, out, errs := execute(t, "", "move", "--data", data, "--region", "7", "--from", "0", "--to", "1"); code != 1 || !strings.Contains(errs, "not any more") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	o.err = errors.New(unknownRequest)
	if code, _, errs := execute(t, "", "move", "--data", data, "--region", "7", "--from", "0", "--to", "1"); code != 1 || !strings.Contains(errs, "machine-1: runs an earlier program") {
		t.Errorf("at an earlier program: status %d: %s", code, errs)
	}
}

// move waits for what is being filled, and says so.
func TestMoveThatLasts(t *testing.T) {
	defer func(was time.Duration) { movesQuiet = was }(movesQuiet)
	movesQuiet = 0
	data, o := withAbsent(t)
	s := o.status
	s.Regions = []farmsql.RegionStatus{{Region: 7, Backups: []int{1}, Move: &farmsql.MoveStatus{From: 0, To: 1}, Pinned: []int{1}}}
	o.set(s)
	s.Regions = []farmsql.RegionStatus{{Region: 7, Primary: 1, Pinned: []int{1}}}
	o.become(s, 4)
	code, out, errs := execute(t, "", "move", "--data", data, "--region", "7", "--from", "0", "--to", "1")
	if code != 0 || strings.Count(out, "machine 1 is being filled") != 1 || !strings.Contains(out, "region 7 is at machine 1\n") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
}
