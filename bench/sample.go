package bench

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"github.com/farmsql/farmsql/txn"
	"golang.org/x/sys/unix"
)

// A sample has the values of counters at one moment.
type sample struct {
	at  time.Time
	txn txn.Stats // counters of all machines together
	// own is the processor time of this process. all is that of all processes of the computer.
	own, all time.Duration
	// allocations is how often this process has allocated on the Go heap, and allocatedBytes
	// how many bytes.
	allocations, allocatedBytes uint64
	// server is the processor time of TargetConfig.ServerProcesses, unless one of them
	// has ended.
	server    time.Duration
	serverErr error
}

// takeSample reads the clock and the processor times.
func takeSample() sample { return sample{at: time.Now(), own: ownTime(), all: computerTime()} }

// sample takes a sample of this process and its machines.
func (t *Target) sample() sample {
	s := takeSample()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.allocations, s.allocatedBytes = m.Mallocs, m.TotalAlloc
	s.server, s.serverErr = processorTime(t.cfg.ServerProcesses)
	for _, i := range t.Here() {
		m := t.Machine(i).Stats()
		for r, n := range m.Aborts {
			s.txn.Aborts[r] += n
		}
		s.txn.Commits += m.Commits
		s.txn.Retries += m.Retries
		s.txn.LocalReads += m.LocalReads
		s.txn.RemoteReads += m.RemoteReads
		s.txn.Messages += m.Messages
		s.txn.Records += m.Records
	}
	return s
}

// residentBytes returns the memory of this process, with its share of shared memory; 0 if the
// system does not tell it.
func residentBytes() int64 {
	rollup, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(rollup) {
		f := bytes.Fields(line)
		if len(f) == 3 && string(f[0]) == "Pss:" {
			kb, _ := strconv.ParseInt(string(f[1]), 10, 64) // 0 if it is not a number
			return kb << 10
		}
	}
	return 0
}

// ownTime returns the processor time of this process.
func ownTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// tick is the unit of /proc/stat on all Linux platforms that Go supports.
const tick = 10 * time.Millisecond

// computerTime returns how long the processors have worked for all processes; 0 if the system
// does not tell it.
func computerTime() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	return busyTime(stat)
}

// Fields of the line "cpu" of /proc/stat that are not work, counted from the name.
const (
	statIdle   = 4
	statIOWait = 5
	// statGuest is the field for the time of guests, which is part of the time of users.
	statGuest = 9
)

// busyTime adds up the busy times in the first line of /proc/stat. Guest times are part of the user
// times, and do not count again. A line that cannot be read is 0.
func busyTime(stat []byte) (busy time.Duration) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	for i, f := range bytes.Fields(line) {
		if i == 0 || i == statIdle || i == statIOWait || i >= statGuest {
			continue
		}
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0
		}
		busy += time.Duration(n) * tick
	}
	return busy
}

// otherProcessors returns how many processors other processes kept busy between two samples; -1 if
// unknown. own is the time of the processes that do not count as others.
func otherProcessors(before, after sample, own time.Duration) float64 {
	took := after.at.Sub(before.at)
	if after.all == 0 || before.all == 0 || took <= 0 {
		return -1
	}
	return max(0, (after.all-before.all-own).Seconds()) / took.Seconds()
}
