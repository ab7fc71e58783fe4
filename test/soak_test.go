package test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// soakTime returns the duration of TestSoak: FARMSQL_SOAK, or seconds, or minutes at night.
func soakTime(t *testing.T) time.Duration {
	if text := os.Getenv("FARMSQL_SOAK"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if nightly {
		return 20 * time.Minute
	}
	return 20 * time.Second
}

// soakKinds are the server's resources that must not grow, in the order of soakSample. The last
// quarter of the time may exceed the quarter before by a share, and by an additional amount: the
// variation of a quarter in a short run.
var soakKinds = []struct {
	name, unit string
	part       float64
	more       int64
}{
	// The collector lets the heap grow to twice the memory in use, and gives it back late.
	{"resident", "MB", 0.15, 48},
	{"resident and not of the folder", "MB", 0.15, 48},
	// The memory in use at a collection, including that of running statements.
	{"Go heap in use", "MB", 0.15, 12},
	// Blocks of a size are given back when all objects in them are free.
	{"folder on disk", "MB", 0.10, 16},
	// These belong to clients: as many as come at once.
	{"descriptors", "", 0.10, 16},
	{"threads", "", 0.10, 8},
}

type soakSample [6]int64

// TestSoak runs for FARMSQL_SOAK (20 s; 20 minutes in the nightly mode). Clients come and go, write
// and delete rows of all sizes, create, alter, truncate and drop tables, and run statements of all
// kinds. After the first half of the time, none of the server's resources may grow. Then all
// clients leave, and only the goroutines of an unused server may remain.
func TestSoak(t *testing.T) {
	t.Setenv("GODEBUG", "gctrace=1") // which says what of the heap is in use
	idle := start(t, t.TempDir(), layouts[0].flags()...)
	before := idle.goroutines(t)
	folder := t.TempDir()
	s, err := launch(folder, layouts[0].flags()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	w := newSoak(t, s)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, work := range w.workers() {
		all.Go(func() { w.repeat(work, stop) })
	}
	samples := s.soak(t, folder, soakTime(t))
	close(stop)
	all.Wait()
	w.report()
	flat(t, samples)
	w.close()
	if after := s.goroutines(t); after > before+2 {
		t.Errorf("%d goroutines with nobody connected, and %d of a server that nobody has used\n%s", after, before, lastBytes(s.stderr.String()))
	}
	t.Setenv("GODEBUG", "")
	check(t, folder)
}

// soak samples the server's resources until the time is over.
func (s *server) soak(t *testing.T, folder string, long time.Duration) []soakSample {
	t.Helper()
	const samples = 200
	var all []soakSample
	tick := time.NewTicker(long / samples)
	defer tick.Stop()
	for range samples {
		select {
		case <-tick.C:
			all = append(all, s.soakSample(t, folder))
		case <-s.exited:
			t.Fatalf("serve: %v\n%s", s.err, crashText(s.stderr.String()))
		}
	}
	return all
}

var liveHeap = regexp.MustCompile(`gc \d+ @.* \d+->\d+->(\d+) MB`)

func (s *server) soakSample(t *testing.T, folder string) soakSample {
	t.Helper()
	var live int64
	log := s.stderr.String()
	if found := liveHeap.FindAllStringSubmatch(log[max(0, len(log)-4000):], -1); found != nil {
		live, _ = strconv.ParseInt(found[len(found)-1][1], 10, 64) // digits
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return soakSample{residentBytes(t, s, "VmRSS") >> 20, residentBytes(t, s, "RssAnon") >> 20, live, onDisk(t, folder) >> 20, int64(len(fds)), int64(len(threads))}
}

// onDisk returns the bytes of storage of a folder's files, without their holes.
func onDisk(t *testing.T, folder string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that goes meanwhile
		}
		info, err := d.Info()
		if err != nil {
			return nil // likewise
		}
		const block = 512
		bytes += info.Sys().(*syscall.Stat_t).Blocks * block
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// flat fails the test if anything grows in the second half of the samples.
func flat(t *testing.T, samples []soakSample) {
	t.Helper()
	n := len(samples)
	for i, k := range soakKinds {
		largest := func(part []soakSample) (most int64) {
			for _, s := range part {
				most = max(most, s[i])
			}
			return most
		}
		quarters := make([]int64, 4)
		for q := range quarters {
			quarters[q] = largest(samples[q*n/4 : (q+1)*n/4])
		}
		t.Logf("%s, at most in each quarter: %d %s", k.name, quarters, k.unit)
		if limit := quarters[2] + int64(float64(quarters[2])*k.part) + k.more; quarters[3] > limit {
			t.Errorf("%s: %d %s in the last quarter, and %d in the one before it, which allows %d", k.name, quarters[3], k.unit, quarters[2], limit)
		}
	}
}

// goroutines ends the server with SIGQUIT, which makes it print its goroutines. It returns their
// number after the clients have left.
func (s *server) goroutines(t *testing.T) int {
	t.Helper()
	time.Sleep(2 * time.Second) // the server has to see that they have left
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-s.exited:
	case <-time.After(startTimeout):
		t.Fatal("serve did not end on SIGQUIT")
	}
	log := s.stderr.String()
	at := strings.LastIndex(log, "SIGQUIT: goroutines")
	if at < 0 {
		t.Fatalf("no goroutines in\n%s", lastBytes(log))
	}
	// Each begins with its number and state; workers of the collector come and go.
	found := regexp.MustCompile(`(?m)^goroutine \d+ .*\n.*`).FindAllString(log[at:], -1)
	return len(slices.DeleteFunc(found, func(g string) bool { return strings.Contains(g, "GC worker") }))
}

func lastBytes(s string) string { return s[max(0, len(s)-6000):] }

var crashLine = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault address|SIG[A-Z]+: )`)

// crashText returns the log of a crashed server from the reason of the crash on; the stack after it
// may be longer than lastBytes. For a server that has not crashed it returns the last bytes.
func crashText(log string) string {
	at := crashLine.FindStringIndex(log)
	if at == nil {
		return lastBytes(log)
	}
	return log[at[0]:min(len(log), at[0]+12000)]
}

// A crash's reason stands before a stack of any length.
func TestCrashText(t *testing.T) {
	stack := strings.Repeat("goroutine 1 [running]:\n", 1000)
	for _, reason := range []string{"panic: txn: broken", "fatal error: concurrent map writes", "SIGQUIT: quit"} {
		if got := crashText("gc 1 @0.1s\n" + reason + "\n\n" + stack); !strings.HasPrefix(got, reason+"\n") {
			t.Errorf("%q begins a crash's text, not %q", got[:40], reason)
		}
	}
	if got := crashText("begin" + stack + "end"); !strings.HasSuffix(got, "end") {
		t.Errorf("without a crash, %q is not the end", got[len(got)-20:])
	}
}
