package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClusterIdles: each of five idle machines wakes up once in a fifth of the lease time to renew
// its leases, for each third of these to beat, too, and for little else, over shared memory and
// over TCP; a store that the machines keep themselves is calm. The goal is 1 % of a core. The test
// only logs the load, because on a busy computer it is several times as high.
func TestClusterIdles(t *testing.T) {
	t.Run("shm", func(t *testing.T) {
		f := newFleet(t, 5, 3, "")
		f.start()
		f.awaitWhole()
		f.idles(1.2)
	})
	t.Run("tcp", func(t *testing.T) {
		f := newFleet(t, 5, 3, "")
		f.peers = newPeers(t)
		f.start()
		f.awaitWhole()
		f.idles(2) // the goroutines of connections wake, too
	})
	t.Run("tcp with a store of its own", func(t *testing.T) {
		f := newJoiningFleet(t, 3, newPeers(t))
		f.start()
		f.awaitWhole()
		f.grow()
		f.grow()
		f.idles(1.6) // 2.2 and more would be heartbeats five times a second
	})
}

// idles does what TestClusterIdles says. Machines may wake up more often than their leases need, by a
// factor, for rare events, and are watched until they have been at rest for some seconds: the work
// that follows a start, and other programs' load, end at some time, but what wakes up a machine
// for ever does not.
func (f *fleet) idles(factor float64) {
	t := f.t
	t.Helper()
	duration := 4 * time.Second
	if nightly {
		duration = 15 * time.Second
	}
	l := &fleetLoad{t: t, fleet: f}
	l.prepare() // something to keep
	most := factor * f.wakeUpsForLeases()
	f.wait(fmt.Sprintf("five idle machines to wake up at most %.0f times a second", most), func() bool {
		wakesBefore, before, begin := f.wakeUps(), f.processorTime(), time.Now()
		time.Sleep(duration)
		wakes, used, took := float64(f.wakeUps()-wakesBefore), f.processorTime()-before, time.Since(begin)
		t.Logf("five idle machines woke up %.0f times a second and used %.2f %% of a core, for %v", wakes/took.Seconds(), 100*used.Seconds()/took.Seconds(), took.Round(time.Millisecond))
		return wakes <= most*took.Seconds()
	})
}

// wakeUpsForLeases returns how often threads of all machines have to wake up in a second. Goroutines
// need more wake-ups, both for leases and for beats: timers wake several of Go's threads.
func (f *fleet) wakeUpsForLeases() float64 {
	f.t.Helper()
	lease, ok := f.machines[0].find(time.Time{}, func(e *event) bool { return e.Message == "leases" })
	if !ok {
		f.t.Fatal("no lease time has been logged")
	}
	renewals := 5 / time.Duration(lease.Length).Seconds() * float64(len(f.machines))
	if lease.KeptBy == "goroutine" {
		renewals *= 10
	}
	const threads = 7 // that a timer wakes
	timers := 1.5 / time.Duration(lease.Length).Seconds() * float64(len(f.machines))
	if lease.KeptBy == "goroutine" {
		return renewals + threads*timers
	}
	return renewals + renewals/3 + threads*timers/9 // timers that reminders of beats make rare
}

// wakeUps returns how often threads of the machines have gone to sleep so far.
func (f *fleet) wakeUps() (n int64) {
	f.t.Helper()
	for _, status := range f.ofThreads("status") {
		_, rest, _ := strings.Cut(status, "\nvoluntary_ctxt_switches:")
		line, _, _ := strings.Cut(rest, "\n")
		n += number(f.t, strings.TrimSpace(line))
	}
	return n
}

// processorTime returns the processor time that the machines' threads have used so far. The kernel counts it in
// nanoseconds; that of a process, in /proc/PID/stat, has 10 ms for its unit, which is 1.25 % of a core for five
// processes in 4 s.
func (f *fleet) processorTime() (sum time.Duration) {
	f.t.Helper()
	for _, schedstat := range f.ofThreads("schedstat") {
		ran, _, _ := strings.Cut(schedstat, " ")
		sum += time.Duration(number(f.t, ran))
	}
	return sum
}

// ofThreads returns what a file of /proc says of each thread of the machines.
func (f *fleet) ofThreads(file string) (list []string) {
	f.t.Helper()
	for _, m := range f.machines {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", m.cmd.Process.Pid, file))
		if err != nil {
			f.t.Fatal(err)
		}
		for _, task := range tasks {
			if b, err := os.ReadFile(task); err == nil { // otherwise the thread has ended
				list = append(list, string(b))
			}
		}
	}
	return list
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
