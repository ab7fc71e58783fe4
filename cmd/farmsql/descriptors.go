package main

import (
	"fmt"
	"log/slog"
	"syscall"
)

// ownDescriptors is how many files a process of farmsql needs for itself: its folder,
// its listeners, the runtime, and what is open for a moment.
const ownDescriptors = 32

// peerDescriptors is how many a machine of a cluster needs for the others: a socket each way
// and a file that is being mapped, of as many machines as a cluster has as a rule.
const peerDescriptors = 3 * 16

// connectionsFor returns how many clients may be connected, of those that are wanted,
// under the process's limit of open files; Go has raised it as far as it may be. It
// fails if there is not even room for one.
func connectionsFor(wanted int, isCluster bool, log *slog.Logger) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("limit of open files: %w", err)
	}
	return connectionsUnder(limit.Cur, wanted, isCluster, log)
}

func connectionsUnder(limit uint64, wanted int, isCluster bool, log *slog.Logger) (int, error) {
	own := uint64(ownDescriptors)
	if isCluster {
		own += peerDescriptors
	}
	switch {
	case limit >= own+uint64(wanted):
		return wanted, nil
	case limit <= own:
		return 0, fmt.Errorf("the limit of open files is %d, and farmsql needs %d for itself and one for each client: raise it (ulimit -n %d)",
			limit, own, own+uint64(wanted))
	}
	log.Warn("fewer clients may be connected than --max-connections says: the limit of open files (ulimit -n) is too low",
		"limit", limit, "needed", own+uint64(wanted), "connections", limit-own)
	return int(limit - own), nil
}
