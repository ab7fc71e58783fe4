package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Fields of /proc/PID/stat after the name, which is in parentheses.
const (
	statParent     = 1
	statTimesFirst = 11 // first of the fields for the time in user and in system mode, of the process and of children that it has waited for
	statTimes      = 4  // number of those fields
)

// A processStat is a process's entry in /proc.
type processStat struct {
	parent int
	taken  time.Duration // processor time of the process, and of the children that it has waited for
}

// processorTime returns the processor time of processes and all their descendants. It includes
// descendants that have ended: their time counts for the parent that has waited for them.
func processorTime(pids []int) (taken time.Duration, err error) {
	if len(pids) == 0 {
		return 0, nil
	}
	all, err := processStats()
	if err != nil {
		return 0, err
	}
	counted := make(map[int]bool)
	for _, pid := range pids {
		if _, ok := all[pid]; !ok {
			return 0, fmt.Errorf("bench: the server's process %d is not there", pid)
		}
		counted[pid] = true
	}
	for pid, p := range all {
		if descends(all, pid, counted) {
			taken += p.taken
		}
	}
	return taken, nil
}

// descends reports whether a process is one of roots, or a descendant of one of them.
func descends(all map[int]processStat, pid int, roots map[int]bool) bool {
	for range len(all) { // parents read at different times could form a cycle
		if roots[pid] {
			return true
		}
		p, ok := all[pid]
		if !ok {
			return false
		}
		pid = p.parent
	}
	return false
}

// processStats returns the entries of all processes, by number.
func processStats() (map[int]processStat, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	all := make(map[int]processStat)
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended since the folder was read
		}
		pid, p, err := parseStat(stat)
		if err != nil {
			return nil, fmt.Errorf("bench: %s: %w", file, err)
		}
		all[pid] = p
	}
	return all, nil
}

// parseStat parses the content of a process's stat file in /proc.
func parseStat(stat []byte) (pid int, p processStat, err error) {
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')') // a name can contain both
	if begin < 0 || end < begin {
		return 0, p, fmt.Errorf("no name in %q", stat)
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < statTimesFirst+statTimes {
		return 0, p, fmt.Errorf("%d fields in %q", len(fields), stat)
	}
	number := func(b []byte) int {
		n, bad := strconv.Atoi(string(bytes.TrimSpace(b)))
		err = errors.Join(err, bad)
		return n
	}
	pid, p.parent = number(stat[:begin]), number(fields[statParent])
	for _, f := range fields[statTimesFirst : statTimesFirst+statTimes] {
		p.taken += time.Duration(number(f)) * tick
	}
	return pid, p, err
}
