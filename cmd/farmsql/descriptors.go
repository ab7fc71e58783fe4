package main

import (
	"fmt"
	"log/slog"
	"sort"
	"syscall"

	"github.com/farmsql/farmsql/sql/wire"
)

const (
	// processDescriptors is the number of files that a farmsql process needs whatever it holds: its
	// folders, its listeners, the runtime, and files that are open briefly.
	processDescriptors = 32 + healthConnections
	// replicaDescriptors is a number of files for replicas and large transactions. Each replica
	// takes one file, of up to 2 GiB by default; each large transaction takes one for its memory
	// beside the logs.
	replicaDescriptors = 64
	// usualPeers is the number of machines for which a machine of a cluster keeps files free, since
	// others can join at any time.
	usualPeers = 16
	// peerDescriptors is the number of files that a machine needs for each other process: two
	// sockets, and a file being mapped.
	peerDescriptors = 3
	// workerDescriptors is the number of files that a worker needs for each machine of the instance:
	// its log; its message queue or, for its own machine, the word for credits; and the log of its
	// previous life, until that is recovered.
	workerDescriptors = 3
	// linkDescriptors is the number of sockets that a worker over TCP needs for each other machine: a
	// connection of its own, and one that it has accepted.
	linkDescriptors = 2
	// cardDescriptors is the number of files that a worker with an RDMA card needs besides: its channel of
	// completions, twice. For each other machine it has the memory from which it sends.
	cardDescriptors = 2
)

// descriptors returns the number of files that the process needs for itself.
func (l layout) descriptors() uint64 {
	peers := l.peers
	n := processDescriptors + replicaDescriptors
	if l.isCluster {
		peers = max(peers, usualPeers)
		n += peerDescriptors * peers
	}
	if l.isTCP {
		n += linkDescriptors * (l.workers + 1) * peers // one more for the prober, which is not a worker
	}
	if l.isVerbs {
		n += (peers + cardDescriptors) * (l.workers + 1)
	}
	return uint64(n + l.machines*l.workers*peers*workerDescriptors)
}

// connectionsFor returns how many of the wanted clients can be connected under the process's limit
// of open files, which Go has raised as far as allowed. It fails if there is no room for even one.
func connectionsFor(wanted int, l layout, log *slog.Logger) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	return connectionsUnder(limit.Cur, wanted, l, log)
}

// connectionsUnder returns the number of clients that the limit of open files allows, at most
// wanted. It fails if the limit does not allow even one.
func connectionsUnder(limit uint64, wanted int, l layout, log *slog.Logger) (int, error) {
	own := l.descriptors()
	needed := own + clientDescriptors(wanted)
	if limit >= needed {
		return wanted, nil
	}
	if limit < own+clientDescriptors(1) {
		return 0, fmt.Errorf("the limit of open files is %d, and farmsql needs %d for itself and its clients: raise it (ulimit -n %d)",
			limit, needed, needed)
	}
	// The largest number of clients that fits: the first for which one more does not.
	connections := sort.Search(wanted, func(n int) bool { return own+clientDescriptors(n+1) > limit })
	log.Warn("fewer clients may be connected than --max-connections says: the limit of open files (ulimit -n) is too low",
		"limit", limit, "needed", needed, "connections", connections)
	return connections, nil
}

// clientDescriptors returns the number of files for clients: one each, one for an
// administrator beyond their limit, and one for each client that has not logged in.
func clientDescriptors(connections int) uint64 {
	return uint64(connections) + 1 + uint64(wire.UnauthenticatedMax(connections))
}
