package farmsql

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
)

func TestStatusOfOneProcess(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Machines, cfg.Replicas = 3, 2
	s := mustOpen(t, cfg).Status()
	if s.Source != StatusOfProcess || len(s.Machines) != 3 || s.Replicas != 2 || len(s.Regions) == 0 || s.Lease != nil || s.Recovery.IsGoing {
		t.Errorf("%+v", s)
	}
	for _, r := range s.Regions {
		if len(r.Backups) != 1 || len(r.Filling) != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func TestStatusOfAMachine(t *testing.T) {
	c := &cluster.Configuration{
		ID: 5, Revision: 9, Replicas: 3, CM: 1, NextRegion: 3,
		Regions: []cluster.Placement{{Region: 1, Primary: 1, Backups: []rdma.MachineID{2}, Filling: []rdma.MachineID{2}}},
		Lost:    nil,
	}
	c.AddMember(cluster.Member{Machine: 1, FailureDomain: failureDomainMax + 2, Incarnation: 7})
	c.AddMember(cluster.Member{Machine: 2, FailureDomain: 4, Incarnation: 8, Address: "shm:x/2", Zone: "host/domain 4", Protocol: protocol.Own})
	s := statusOf(farm.Status{
		Configuration: c, IsRecovering: true, Suspects: []rdma.MachineID{2}, Joining: []rdma.MachineID{3},
		Leases: []lease.Lease{{Machine: 2, Left: -5 * time.Millisecond, Held: time.Millisecond}},
	})
	one, two := s.Machines[0], s.Machines[1]
	switch {
	case !one.IsCM || one.FailureDomain != 0 || one.GrantedMS != nil:
		t.Errorf("machine 1: %+v", one)
	case two.IsCM || !two.IsSuspected || two.FailureDomain != 4 || *two.GrantedMS != -5 || *two.HeldMS != 1:
		t.Errorf("machine 2: %+v", two)
	case one.Address != "" || one.ProtocolMin != 1 || one.ProtocolMax != 1 || two.Address != "shm:x/2" || two.Zone != "host/domain 4" || two.ProtocolMax != int(protocol.Own.Max) || s.Protocol != 1:
		t.Errorf("%+v", s)
	case !s.Recovery.IsGoing || s.Recovery.FillingReplicas != 1 || s.Joining[0] != 3:
		t.Errorf("%+v", s)
	}
}

func TestStoredStatus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration")
	if _, err := StoredStatus("file://" + path); err == nil || !strings.Contains(err.Error(), "no configuration") {
		t.Errorf("nothing stored: %v", err)
	}
	if _, err := StoredStatus("nonsense"); err == nil {
		t.Error("a bad address is taken")
	}
	c := &cluster.Configuration{ID: 1, Revision: 1, Replicas: 1, NextRegion: 1}
	c.AddMember(cluster.Member{Machine: 0, Incarnation: 7})
	if err := cluster.NewFileStore(path).CompareAndSwap(0, c); err != nil {
		t.Fatal(err)
	}
	s, err := StoredStatus("file://" + path)
	if err != nil || s.Source != StatusStored || s.Configuration != 1 || len(s.Machines) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A folder is not opened with a configuration other than its own: its content would be lost.
func TestFolderOfAnotherInstance(t *testing.T) {
	plain, clustered := t.TempDir(), t.TempDir()
	if err := mustOpen(t, small(plain)).Close(); err != nil {
		t.Fatal(err)
	}
	cfg := small(plain)
	cfg.Cluster = "file://" + filepath.Join(plain, "configuration")
	if db, err := Open(cfg); !errors.Is(err, ErrOtherFolder) {
		t.Errorf("as a machine of a cluster: %v, %v", db, err)
	}
	cfg = small(clustered)
	cfg.Cluster, cfg.SharedFolder = "file://"+filepath.Join(clustered, "configuration"), t.TempDir()
	db, err := Open(cfg)
	if errors.Is(err, nvram.ErrPrivate) {
		t.Skip("the rest needs machines that share memory, which race builds have on the heap")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err := Open(small(clustered)); !errors.Is(err, ErrOtherFolder) {
		t.Errorf("as a process with all machines: %v, %v", db, err)
	}
	if db, err := Open(small(machineFolder(clustered, 0))); !errors.Is(err, ErrOtherFolder) {
		t.Errorf("the folder of a machine as one of an instance: %v, %v", db, err)
	}
	elsewhere := cfg
	elsewhere.Cluster += "-that-is-none"
	if db, err := Open(elsewhere); !errors.Is(err, membership.ErrOtherCluster) {
		t.Errorf("with the configuration gone: %v, %v", db, err)
	}
	s := mustOpen(t, cfg).Status() // nothing has happened to it
	if s.Source != StatusOfMachine || s.Configuration != 2 || len(s.Regions) == 0 || s.Lease == nil || !s.Lease.IsValid {
		t.Errorf("%+v", s)
	}
}

// The status says how many regions do not have their new number of replicas, and what is in the way.
func TestStatusOfAResize(t *testing.T) {
	c := &cluster.Configuration{ID: 5, Revision: 9, Replicas: 2, CM: 1, NextRegion: 2, Speaks: protocol.Own.Max}
	for id := range rdma.MachineID(3) {
		c.AddMember(cluster.Member{Machine: id, FailureDomain: int(id), Incarnation: 7, Memory: uint64(id) + 1, Protocol: protocol.Own})
	}
	for range 6 {
		c, _, _ = c.Place(1, 0)
	}
	if s := statusOf(farm.Status{Configuration: c}); s.Resize != nil || s.Replicas != 2 {
		t.Errorf("%+v", s)
	}
	resized, err := c.Resize(3)
	if err != nil {
		t.Fatal(err)
	}
	growing, _ := resized.MoveOn(false)
	if s := statusOf(farm.Status{Configuration: growing}); s.Replicas != 3 || s.Resize == nil || *s.Resize != (ResizeStatus{Regions: 6}) || !strings.Contains(s.MovesAwait, "being filled") {
		t.Errorf("%+v", s)
	}
	if s := statusOf(farm.Status{Configuration: growing}); len(s.Short) != 6 || s.Short[5] != 7 {
		t.Errorf("%+v", s)
	}
	if s := statusOf(farm.Status{Configuration: resized, MovesAwait: "a check"}); s.MovesAwait != "a check" {
		t.Errorf("moves wait for %q", s.MovesAwait)
	}
	lost, _ := c.Without([]rdma.MachineID{0}, 1)
	if s := statusOf(farm.Status{Configuration: lost}); s.Resize != nil || len(s.Short) == 0 || !strings.Contains(s.MovesAwait, "being filled") {
		t.Errorf("regions are being filled that lack a replica: %+v", s)
	}
	if s := statusOf(farm.Status{Configuration: c, MovesAwait: "a check"}); len(s.Short) > 0 || s.MovesAwait != "" {
		t.Errorf("nothing is wanted: %+v", s)
	}
	failed, _ := resized.Without([]rdma.MachineID{2}, 1)
	if s := statusOf(farm.Status{Configuration: failed}); s.Resize == nil || !strings.Contains(s.Resize.Obstacle, "in 2 failure domains, and 3 replicas need as many") {
		t.Errorf("%+v", s)
	}
}

// The status says which machines are drained, what moves, and why what should move does not.
func TestStatusOfMoves(t *testing.T) {
	c := &cluster.Configuration{ID: 5, Revision: 9, Replicas: 2, CM: 1, NextRegion: 2, Speaks: protocol.Own.Max}
	for id := range rdma.MachineID(3) {
		c.AddMember(cluster.Member{Machine: id, FailureDomain: int(id), Incarnation: 7, Memory: uint64(id) + 1, Protocol: protocol.Own})
	}
	c, _, err := c.Place(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	drained, err := c.Drain(1)
	if err != nil {
		t.Fatal(err)
	}
	moving, _ := drained.MoveOn(false)
	s := statusOf(farm.Status{Configuration: moving})
	if m := s.Machines[1]; !m.IsDraining || m.Obstacle != "" || s.Machines[0].IsDraining {
		t.Errorf("%+v", s.Machines)
	}
	if !strings.Contains(s.MovesAwait, "region 2, which moves from machine 1") || s.BalanceInMS != 0 {
		t.Errorf("moves wait for %q, balance in %v ms", s.MovesAwait, s.BalanceInMS)
	}
	if s := statusOf(farm.Status{Configuration: moving.Undrain(1), BalanceIn: time.Minute}); s.MovesAwait != "" || s.BalanceInMS != 60000 {
		t.Errorf("moves wait for %q, balance in %v ms", s.MovesAwait, s.BalanceInMS)
	}
	if move := s.Regions[0].Move; move == nil || move.From != 1 || move.To == 1 || s.ReplicasAt(1) != 1 || s.ReplicasAt(move.To) != 1 {
		t.Errorf("%+v", s.Regions)
	}
	ordered, _, err := c.Obey(cluster.Order{Region: 2, Move: cluster.Move{From: 1, To: rdma.MachineID(s.Regions[0].Move.To)}})
	if err != nil {
		t.Fatal(err)
	}
	if r := statusOf(farm.Status{Configuration: ordered}).Regions[0]; len(r.Pinned) != 1 || r.Pinned[0] != s.Regions[0].Move.To || r.Group != 2 || len(s.Regions[0].Pinned) > 0 {
		t.Errorf("%+v, without an order %+v", r, s.Regions[0])
	}
	fewer, _ := drained.Without([]rdma.MachineID{2}, 1)
	if s := statusOf(farm.Status{Configuration: fewer}); !strings.Contains(s.Machines[1].Obstacle, "start machines that are away, or add one, first") {
		t.Errorf("%+v", s.Machines[1])
	}
}
