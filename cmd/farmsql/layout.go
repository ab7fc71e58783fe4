package main

import (
	"cmp"
	"path/filepath"
	"strings"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/farm"
)

// A layout determines how many files, and how much memory for logs, the machines of a process
// take.
type layout struct {
	machines  int   // of this process
	peers     int   // number of known machines of the instance, including those of this process
	workers   int   // of each machine
	logBytes  int64 // size of each log
	isCluster bool
	isTCP     bool // the machines are on several hosts, and connected over TCP
	isVerbs   bool // the machines use RDMA cards
}

// layoutOf returns the layout of the instance that c opens. If there is no instance yet, it
// returns the layout of the one that c would create.
func layoutOf(c farmsql.Config) layout {
	s := storedLayout(c)
	isRaft := c.Cluster == farmsql.ClusterRaft || c.Join != "" || identityOf(c) != nil
	l := layout{machines: 1, isCluster: c.Cluster != "" || isRaft, isTCP: c.Transport == farmsql.TransportTCP || c.Transport == farmsql.TransportVerbs || isRaft}
	l.isVerbs = c.Transport == farmsql.TransportVerbs
	l.workers = cmp.Or(s.Workers, c.Workers, farmsql.DefaultWorkers())
	if l.isCluster {
		l.peers = max(s.Machines, cmp.Or(s.Replicas, c.Replicas, 1))
	} else {
		l.machines = cmp.Or(s.Machines, c.Machines, 1)
		l.peers = l.machines
	}
	l.logBytes = cmp.Or(s.LogBytes, int64(c.LogSize), farm.DefaultLogBytes(l.peers, l.workers))
	return l
}

// storedLayout returns the settings of the instance that c opens, or zeroes if there is none. It
// does not use the network. If something cannot be read, opening the instance reports that.
func storedLayout(c farmsql.Config) (s farm.Config) {
	if id := identityOf(c); id != nil {
		s.Machines, s.Replicas, s.Workers, s.LogBytes = len(id.Store), id.Replicas, id.Workers, id.LogBytes
		return s
	}
	if c.Cluster == "" {
		s, _, _ = farm.Stored(c.Folder)
		return s
	}
	path, isFile := strings.CutPrefix(c.Cluster, "file://")
	if !isFile {
		return s
	}
	if last, err := cluster.NewFileStore(path).Load(); err == nil && last != nil {
		s.Machines, s.Replicas, s.Workers, s.LogBytes = len(last.Machines), last.Replicas, last.Workers, last.LogBytes
	}
	return s
}

// identityOf returns the identity of a machine of a cluster that keeps its configuration itself,
// otherwise nil. An identity that cannot be read is reported when the machine is opened.
func identityOf(c farmsql.Config) *join.Identity {
	for _, folder := range []string{c.Folder, c.Saves} {
		if id, err := join.Load(filepath.Join(folder, farmsql.PeerFolder)); folder != "" && err == nil && id != nil {
			return id
		}
	}
	return nil
}
