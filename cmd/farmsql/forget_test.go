package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
	"github.com/farmsql/farmsql/internal/protocol"
)

// A fakeOperator records its requests.
type fakeOperator struct {
	mu     sync.Mutex // guards status, next and looks
	status farmsql.Status
	next   *farmsql.Status // what status becomes after looks more calls of Status; nil if it stays
	looks  int
	asked  []forgetRequest
	drains []drainRequest
	moves  []moveRequest
	sizes  []int // numbers of replicas that were asked for
	err    error
	waits  []error // errors of Move before err, each for one call
}

func (o *fakeOperator) Status() farmsql.Status {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.looks--; o.next != nil && o.looks < 0 {
		o.status, o.next = *o.next, nil
	}
	return o.status
}

// become replaces the status once it has been looked at so many times.
func (o *fakeOperator) become(s farmsql.Status, looks int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next, o.looks = &s, looks
}

// set replaces the status.
func (o *fakeOperator) set(s farmsql.Status) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.status = s
}

func (o *fakeOperator) Forget(_ context.Context, machine int, lost []int) error {
	o.asked = append(o.asked, forgetRequest{machine, lost})
	return o.err
}

func (o *fakeOperator) Move(_ context.Context, region, from, to int) error {
	o.moves = append(o.moves, moveRequest{region, from, to})
	if len(o.waits) > 0 {
		err := o.waits[0]
		o.waits = o.waits[1:]
		return err
	}
	return o.err
}

func (o *fakeOperator) Resize(_ context.Context, replicas int) error {
	o.sizes = append(o.sizes, replicas)
	return o.err
}

func (o *fakeOperator) Drain(_ context.Context, machine int, undo bool) error {
	o.drains = append(o.drains, drainRequest{machine, undo})
	return o.err
}

// withAbsent makes machines 0 and 1 serve in a data folder; regions wait for machines 2 and 3. o
// is the operator of machine 1, which has the newest configuration.
func withAbsent(t *testing.T) (data string, o *fakeOperator) {
	t.Helper()
	data = deep(t)
	for i := range 2 {
		if err := os.MkdirAll(machineFolder(data, i), 0o755); err != nil {
			t.Fatal(err)
		}
		o = &fakeOperator{status: farmsql.Status{
			Source: farmsql.StatusOfMachine, Machine: i, Configuration: 5 + i, Protocol: int(protocol.Own.Max), Machines: []farmsql.MachineStatus{{Machine: 0}, {Machine: 1}},
			Regions: []farmsql.RegionStatus{{Region: 1, Primary: 0}, {Region: 2, Primary: -1, Away: []int{2}}, {Region: 3, Primary: -1, Away: []int{2, 3}},
				{Region: 4, Primary: -1, Away: []int{2}, Backups: []int{1}, Filling: []int{1}}},
		}}
		end, err := serveOperator(machineFolder(data, i), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = end() })
	}
	return data, o
}

func TestForgetAsksFirst(t *testing.T) {
	data, o := withAbsent(t)
	o.status.Root = 4
	for in, isDone := range map[string]bool{"": false, "y\n": false, "forget machine 3\n": false, "Forget machine 2\n": false, "forget machine 2\n": true} {
		o.asked = nil
		status, out, errs := execute(t, in, "forget", "--data", data, "--machine", "2")
		for _, want := range []string{
			"configuration 6, as machine 1", "has 2 machines (0 1) and 4 regions; 3 regions wait for machine 2",
			"LOST FOR EVER if machine 2 is forgotten, with everything in them: 2 4\n", "Region 4 leads to everything else", "not lost, for machine 3 has them, too: 3\n",
			"Try first: start machine 2 with its data folder", `type "forget machine 2"`,
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
		switch {
		case isDone && (status != 0 || !reflect.DeepEqual(o.asked, []forgetRequest{{2, []int{2, 4}}}) || !strings.Contains(out, "LOST: 2 4")):
			t.Errorf("status %d, asked for %v\n%s%s", status, o.asked, out, errs)
		case !isDone && (status != 1 || len(o.asked) > 0 || !strings.Contains(errs, "nothing was done")):
			t.Errorf("after %q: status %d, asked for %v\n%s", in, status, o.asked, errs)
		}
	}
}

func TestForgetWithoutAsking(t *testing.T) {
	data, o := withAbsent(t)
	status, out, errs := execute(t, "", "forget", "--data", data, "--machine", "3", "--yes")
	if status != 0 || errs != "" || len(o.asked) != 1 || len(o.asked[0].Lost) > 0 || strings.Contains(out, "type") || !strings.Contains(out, "nothing is lost") {
		t.Errorf("status %d, asked for %v\n%s%s", status, o.asked, out, errs)
	}
	o.err = errors.New("farmsql: not today")
	if status, _, errs = execute(t, "", "forget", "--data", data, "--machine", "3", "--yes"); status != 1 || !strings.Contains(errs, "machine-1: not today") {
		t.Errorf("status %d: %s", status, errs)
	}
}

func TestForgetIsRefused(t *testing.T) {
	data, o := withAbsent(t)
	refused := func(want, data string, args ...string) {
		t.Helper()
		status, _, errs := execute(t, "", append([]string{"forget", "--yes", "--data", data}, args...)...)
		if status != 1 || !strings.Contains(errs, want) || len(o.asked) > 0 {
			t.Errorf("status %d, asked for %v: %s", status, o.asked, errs)
		}
	}
	refused("machine 0 is a member of configuration 6", data, "--machine", "0")
	refused("nobody waits for machine 7", data, "--machine", "7")
	refused("no process answers in", t.TempDir(), "--machine", "2")
	o.status.Source = farmsql.StatusOfProcess
	refused("all machines of the instance are in one process", data, "--machine", "2")
	starting := t.TempDir()
	defer mustServeStatus(t, machineFolder(starting, 4), farmsql.Status{Source: farmsql.StatusOfMachine, Machine: 4, Starting: "waits for rain"}).Close()
	refused("machine 4 is starting, and knows no configuration yet: it waits for rain", starting, "--machine", "2")
	if status, _, _ := execute(t, "", "forget", "--data", data); status != cli.ExitUsage {
		t.Errorf("without a machine: status %d", status)
	}
}

// Only the user of the process may send requests. A request that makes no sense gets an error.
func TestOperatorSocket(t *testing.T) {
	folder := t.TempDir()
	o := &fakeOperator{}
	end, err := serveOperator(folder, o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, operatorSocket)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for said, want := range map[string]string{"hello\n": "the request is none", "{}\n": "asks for nothing", `{"forget":{"machine":1}}`: ""} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(said)); err != nil {
			t.Fatal(err)
		}
		var r operatorReply
		if err := json.NewDecoder(c).Decode(&r); err != nil || r.Done != (want == "") || !strings.Contains(r.Error, want) {
			t.Errorf("%q: %+v, %v", said, r, err)
		}
		_ = c.Close()
	}
	if len(o.asked) != 1 {
		t.Errorf("asked for %v", o.asked)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := serveOperator(filepath.Join(folder, "none"), o); err == nil {
		t.Error("serves in a folder that is not there")
	}
}

func TestStatusShowsWhatIsAway(t *testing.T) {
	data, o := withAbsent(t)
	o.status.Starting = "waits for machine 2"
	status, out, _ := execute(t, "", "status", "--data", data)
	for _, want := range []string{
		"starting: machine 1 waits for machine 2\n", "2       -        -        -\n", "4       -        1        1\n",
		"UNAVAILABLE until machine 2 is back with its memory: regions 2 4\n", "UNAVAILABLE until machine 2 or 3 is back with its memory: region 3\n",
	} {
		if status != 0 || !strings.Contains(out, want) { // machine 0 serves
			t.Errorf("status %d, %q is not in\n%s", status, want, out)
		}
	}
	o.status.Configuration, o.status.Regions = 0, nil // less than machine 0, now
	if _, out, _ = execute(t, "", "status", "--data", data); !strings.Contains(out, "starting: waits for machine 2\n") {
		t.Errorf("%s", out)
	}
	if _, out, _ = execute(t, "", "status", "--data", data, "--machine-id", "1"); !strings.Contains(out, "no configuration yet, as machine 1") {
		t.Errorf("%s", out)
	}
}

// A machine that keeps the configuration can be forgotten although no region waits for it.
func TestForgetFounder(t *testing.T) {
	data, o := withAbsent(t)
	o.status.Founders = []farmsql.FounderStatus{{Machine: 0}, {Machine: 1}, {Machine: 7}}
	status, out, errs := execute(t, "", "forget", "--data", data, "--machine", "7", "--yes")
	for _, want := range []string{"Machine 7 keeps the configuration, with machines 0 1: another member takes its place", "another machine takes the place of machine 7", "nothing is lost"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d: %s%s, want %s", status, out, errs, want)
		}
	}
	if !reflect.DeepEqual(o.asked, []forgetRequest{{Machine: 7}}) {
		t.Errorf("asked for %v", o.asked)
	}
	if status, _, errs = execute(t, "", "forget", "--data", data, "--machine", "1", "--yes"); status != 1 || !strings.Contains(errs, "machine 1 is a member") {
		t.Errorf("status %d: %s", status, errs)
	}
}
