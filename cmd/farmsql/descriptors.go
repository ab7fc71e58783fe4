package main

import (
	"fmt"
	"log/slog"
	"sort"
	"syscall"

	"github.com/farmsql/farmsql/sql/wire"
)

// ownDescriptors is the number of files that a farmsql process needs for itself: its folder,
// its listeners, the runtime, and files that are open briefly.
const ownDescriptors = 32

// peerDescriptors is the number of files that a machine of a cluster needs for the others:
// two sockets, and a file being mapped, for each machine of a cluster of usual size.
const peerDescriptors = 3 * 16

// connectionsFor returns how many of the wanted clients can be connected under the process's limit
// of open files, which Go has raised as far as allowed. It fails if there is no room for even one.
func connectionsFor(wanted int, isCluster bool, log *slog.Logger) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	return connectionsUnder(limit.Cur, wanted, isCluster, log)
}

// connectionsUnder returns the number of clients that the limit of open files allows, at most
// wanted. It fails if the limit does not allow even one.
func connectionsUnder(limit uint64, wanted int, isCluster bool, log *slog.Logger) (int, error) {
	own := uint64(ownDescriptors)
	if isCluster {
		own += peerDescriptors
	}
	needed := own + clientDescriptors(wanted)
	if limit >= needed {
		return wanted, nil
	}
	if limit < own+clientDescriptors(1) {
		return 0, fmt.Errorf("the limit of open files is %d, and farmsql needs %d for itself and its clients: raise it (ulimit -n %d)",
			limit, needed, needed)
	}
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
