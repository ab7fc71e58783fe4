package farmsql

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
)

// withAway returns a configuration of machine 0 in which regions wait: 2 and 4 for machine
// 1, 3 for machine 1 or 2.
func withAway() *cluster.Configuration {
	one, two := cluster.Memory{Machine: 1, Token: 7}, cluster.Memory{Machine: 2, Token: 8}
	c := &cluster.Configuration{Cluster: 5, ID: 9, Revision: 12, Replicas: 2, NextRegion: 5, Regions: []cluster.Placement{
		{Region: 1, Primary: 0},
		{Region: 2, Primary: 1, Away: []cluster.Memory{one, {Machine: 1, Token: 9}}},
		{Region: 3, Primary: 2, Away: []cluster.Memory{two, one}, Backups: []rdma.MachineID{0}, Filling: []rdma.MachineID{0}},
		{Region: 4, Primary: 1, Away: []cluster.Memory{one}},
	}}
	c.Root.Addr = region.MakeAddr(2, 64)
	c.AddMember(cluster.Member{Machine: 0, Incarnation: 7})
	return c
}

func TestStatusOfUnavailableRegions(t *testing.T) {
	s := statusOf(farm.Status{Configuration: withAway()})
	for i, want := range []RegionStatus{
		{Region: 1, Primary: 0, Backups: []int{}, Filling: []int{}, Away: []int{}},
		{Region: 2, Primary: -1, Backups: []int{}, Filling: []int{}, Away: []int{1}},
		{Region: 3, Primary: -1, Backups: []int{0}, Filling: []int{0}, Away: []int{1, 2}},
		{Region: 4, Primary: -1, Backups: []int{}, Filling: []int{}, Away: []int{1}},
	} {
		if !reflect.DeepEqual(s.Regions[i], want) {
			t.Errorf("%+v, not %+v", s.Regions[i], want)
		}
	}
	if s.Root != 2 {
		t.Errorf("root in region %d", s.Root)
	}
	var said []string
	for _, a := range s.Absences() {
		said = append(said, a.String())
	}
	if want := []string{"until machine 1 is back with its memory: regions 2 4", "until machine 1 or 2 is back with its memory: region 3"}; !reflect.DeepEqual(said, want) {
		t.Errorf("%q", said)
	}
	for machine, want := range map[int][2][]int{0: {nil, nil}, 1: {{2, 3, 4}, {2, 4}}, 2: {{3}, nil}} {
		if all, only := s.Awaited(machine); !reflect.DeepEqual([2][]int{all, only}, want) {
			t.Errorf("machine %d: %v, %v", machine, all, only)
		}
	}
}

// What a cluster that does not run would be without is not left out of a save or a check.
func TestStoppedClusterWithRegionsAway(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "configuration")
	if err := cluster.NewFileStore(path).CompareAndSwap(0, withAway()); err != nil {
		t.Fatal(err)
	}
	o := Offline{Data: []string{folder}, Cluster: "file://" + path}
	_, saving := Save(o, filepath.Join(folder, "save"))
	db, opening := OpenStopped(t.Context(), o, Config{})
	if opening == nil {
		_ = db.Close()
	}
	for _, err := range []error{saving, opening} {
		if !errors.Is(err, ErrAway) ||
			!strings.Contains(err.Error(), "regions 2 4 wait for machine 1; region 3 waits for machine 1 or 2, whose memory is not part of the configuration") ||
			!strings.Contains(err.Error(), "start the cluster with it first") {
			t.Errorf("%v", err)
		}
	}
}

// The operator can be used before the machine is a member, says what the machine waits for, and
// ends before the folder is released.
func TestOperatorOfAMachine(t *testing.T) {
	skipOnHeap(t)
	folder := t.TempDir()
	cfg := small(folder)
	cfg.Cluster, cfg.SharedFolder = "file://"+filepath.Join(folder, "configuration"), filepath.Join(folder, "shared")
	var o *Operator
	ended := 0
	cfg.Opening = func(x *Operator) (func() error, error) {
		o = x
		if s := o.Status(); s.Source != StatusOfMachine || !strings.HasPrefix(s.Starting, "reads its memory") {
			t.Errorf("%+v", s)
		}
		if err := o.Forget(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), "reads its memory") {
			t.Errorf("%v", err)
		}
		return func() error {
			ended++
			if _, err := cfg.openFolder(0); err == nil {
				t.Error("the folder is given back already")
			}
			return nil
		}, nil
	}
	cfg.starting = func(db *DB, s startStep) {
		if s := o.Status(); s.Starting != "waits for the catalog" || s.Configuration == 0 {
			t.Errorf("%+v", s)
		}
		o.failed(errors.New("it rains"))
		if s := o.Status(); s.Starting != "waits for the catalog: it rains" {
			t.Errorf("%+v", s)
		}
	}
	db := mustOpen(t, cfg)
	if s := db.Status(); s.Starting != "" || s.Lease == nil || s.Ended != "" {
		t.Errorf("%+v", s)
	}
	if err := db.Forget(t.Context(), 1, nil); !errors.Is(err, membership.ErrNotAwaited) {
		t.Errorf("nobody waits: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s := o.Status(); ended != 1 || s.Ended == "" || s.Starting != "" {
		t.Errorf("ended %d times: %+v", ended, s)
	}
	if err := o.Forget(t.Context(), 1, nil); err == nil {
		t.Error("after the end somebody waits for a machine")
	}
}

// If Config.Opening fails, so does opening, in either kind of instance.
func TestOpeningFails(t *testing.T) {
	skipOnHeap(t)
	for _, isCluster := range []bool{false, true} {
		folder := t.TempDir()
		cfg, deaf := small(folder), errors.New("deaf")
		if isCluster {
			cfg.Cluster, cfg.SharedFolder = "file://"+filepath.Join(folder, "configuration"), filepath.Join(folder, "shared")
		}
		cfg.Opening = func(*Operator) (func() error, error) { return nil, deaf }
		if db, err := Open(cfg); !errors.Is(err, deaf) {
			t.Errorf("%v, %v", db, err)
		}
		cfg.Opening = nil
		if err := mustOpen(t, cfg).SQL().Ping(); err != nil {
			t.Errorf("once more: %v", err)
		}
	}
}

func TestMoveWithoutACluster(t *testing.T) {
	if err := mustOpen(t, small(t.TempDir())).Move(t.Context(), 1, 0, 1); !errors.Is(err, ErrNoCluster) {
		t.Errorf("a move between machines of one process: %v", err)
	}
	if err := newOperator(Config{Cluster: "file:///x"}).Move(t.Context(), 1, 0, 1); err == nil || !strings.Contains(err.Error(), "move region 1: this machine reads its memory") {
		t.Errorf("a move asked for before there is a machine: %v", err)
	}
}

func TestResizeWithoutACluster(t *testing.T) {
	if err := mustOpen(t, small(t.TempDir())).Resize(t.Context(), 1); !errors.Is(err, ErrNoCluster) {
		t.Errorf("other numbers of replicas at machines of one process: %v", err)
	}
	if err := newOperator(Config{Cluster: "file:///x"}).Resize(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "resize to 3 replicas: this machine reads its memory") {
		t.Errorf("asked for before there is a machine: %v", err)
	}
}

// A number that no machine or region can have is not taken for another one.
func TestNumbersOfAnOperator(t *testing.T) {
	o := newOperator(Config{Cluster: "file:///x"})
	for text, err := range map[string]error{
		"no region 4294967297: name one": o.Move(t.Context(), 1<<32+1, 0, 1),
		"no region -1":                   o.Move(t.Context(), -1, 0, 1),
		"no machine 65536: the numbers of machines are 0 to 1023": o.Move(t.Context(), 1, 65536, 1),
		"no machine 65537":                     o.Move(t.Context(), 1, 0, 65537),
		"no machine -2":                        o.Drain(t.Context(), -2, false),
		"no machine 1024":                      o.Forget(t.Context(), 1024, nil),
		"farmsql: 0 replicas: must be 1 to 64": o.Resize(t.Context(), 0),
		"65 replicas: must be 1 to 64":         o.Resize(t.Context(), 65),
	} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
	if err := checkRegion(math.MaxUint32); err != nil {
		t.Error(err)
	}
}

// When the time for a request is over, its error still says what it has waited for.
func TestWhatARequestWaitsFor(t *testing.T) {
	o := newOperator(Config{})
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	busy := fmt.Errorf("%w: busy", recovery.ErrNotCM)
	if err := o.again(ctx, func(context.Context) error { return busy }); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "busy: context deadline exceeded") {
		t.Errorf("%v", err)
	}
	if err := o.again(ctx, context.Context.Err); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing but the time: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	attempts := 0
	err := o.again(ctx, func(context.Context) error {
		if attempts++; attempts == 1 {
			return busy
		}
		cancel()
		return context.DeadlineExceeded // as of a call that has a bound of its own
	})
	if !errors.Is(err, context.Canceled) || !errors.Is(err, recovery.ErrNotCM) || attempts != 2 {
		t.Errorf("after %d attempts: %v", attempts, err)
	}
	lost := errors.New("lost")
	if err := o.again(t.Context(), func(context.Context) error { return lost }); !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
}

func TestForgetInOneProcess(t *testing.T) {
	if err := mustOpen(t, small(t.TempDir())).Forget(t.Context(), 1, nil); !errors.Is(err, ErrNoCluster) {
		t.Errorf("%v", err)
	}
}
