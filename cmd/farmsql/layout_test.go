package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/rdma"
)

// The layout is that of the flags, until there is an instance, whose own it is then.
func TestLayoutOf(t *testing.T) {
	folder := t.TempDir()
	workers := farmsql.DefaultWorkers()
	path := filepath.Join(folder, "configuration.json")
	file := "file://" + path
	cases := []struct {
		name         string
		cfg          farmsql.Config
		want, stored layout
	}{
		{
			"defaults", farmsql.Config{Folder: folder},
			layout{1, 1, workers, farm.DefaultLogBytes(1, workers), false, false, false}, layout{4, 4, 5, 4 << 20, false, false, false},
		},
		{
			"one process", farmsql.Config{Folder: folder, Machines: 3, Replicas: 3, Workers: 64, LogSize: farmsql.MiB},
			layout{3, 3, 64, 1 << 20, false, false, false}, layout{4, 4, 5, 4 << 20, false, false, false},
		},
		{
			"cluster", farmsql.Config{Folder: folder, Cluster: file, Replicas: 3, Workers: 64},
			layout{1, 3, 64, farm.DefaultLogBytes(3, 64), true, false, false}, layout{1, 4, 5, 4 << 20, true, false, false},
		},
		{
			"ZooKeeper", farmsql.Config{Folder: folder, Cluster: "zk://127.0.0.1:1/x", Replicas: 2, Workers: 2},
			layout{1, 2, 2, 32 << 20, true, false, false}, layout{1, 2, 2, 32 << 20, true, false, false},
		},
	}
	for _, c := range cases {
		if got := layoutOf(c.cfg); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	next := &cluster.Configuration{ID: 1, Revision: 1, Cluster: 7, Replicas: 3, Workers: 5, RegionBytes: 1 << 20, LogBytes: 4 << 20}
	for m := range rdma.MachineID(4) {
		next.AddMember(cluster.Member{Machine: m, FailureDomain: int(m), Incarnation: uint64(m) + 1})
	}
	if err := cluster.NewFileStore(path).CompareAndSwap(0, next); err != nil {
		t.Fatal(err)
	}
	raft := filepath.Join(t.TempDir(), "data")
	joining := layoutOf(farmsql.Config{Folder: raft, Join: "token", Workers: 2})
	if want := (layout{1, 1, 2, 32 << 20, true, true, false}); joining != want {
		t.Errorf("a machine that joins: %+v, want %+v", joining, want)
	}
	s := join.Settings{Replicas: 3, Workers: 5, RegionBytes: 1 << 20, LogBytes: 4 << 20, Founders: 3}
	if err := os.MkdirAll(raft, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := join.Found(filepath.Join(raft, farmsql.PeerFolder), "127.0.0.1:1", s, time.Hour); err != nil {
		t.Fatal(err)
	}
	if got, want := layoutOf(farmsql.Config{Folder: raft}), (layout{1, 3, 5, 4 << 20, true, true, false}); got != want {
		t.Errorf("a machine that has joined: %+v, want %+v", got, want)
	}
	for _, c := range cases {
		if got := layoutOf(c.cfg); got != c.stored {
			t.Errorf("%s, stored: %+v, want %+v", c.name, got, c.stored)
		}
	}
}
