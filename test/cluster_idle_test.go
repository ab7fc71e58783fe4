package test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClusterIdles: five idle machines together use hardly any processor time. The
// goal is 1 % of a core; what is asserted leaves room for a busy computer.
func TestClusterIdles(t *testing.T) {
	duration := 4 * time.Second
	if nightly {
		duration = 30 * time.Second
	}
	f := newFleet(t, 5, 3, "")
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f}
	l.prepare() // something to keep
	time.Sleep(time.Second)
	before, begin := f.processorTime(), time.Now()
	time.Sleep(duration)
	used, took := f.processorTime()-before, time.Since(begin)
	share := 100 * used.Seconds() / took.Seconds()
	t.Logf("five idle machines used %.2f %% of a core, for %v", share, took.Round(time.Millisecond))
	if share > 5 {
		t.Errorf("five idle machines use %.2f %% of a core, want at most 1 %%, or 5 %% on a busy computer", share)
	}
}

// processorTime is what all processes have used.
func (f *fleet) processorTime() time.Duration {
	const tick = time.Second / 100 // USER_HZ
	var ticks int64
	for _, m := range f.machines {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid))
		if err != nil {
			f.t.Fatal(err)
		}
		// After the name, which may hold spaces: utime and stime are fields 14 and 15.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		for _, s := range fields[11:13] {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				f.t.Fatal(err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * tick
}
