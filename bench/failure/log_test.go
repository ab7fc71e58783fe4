package failure

import (
	"fmt"
	"testing"
	"time"
)

// at returns the moment that is ms milliseconds after the failure in these tests.
func at(ms float64) time.Time {
	return time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC).Add(time.Duration(ms * float64(time.Millisecond)))
}

// stamp returns the same moment as at, in the form in which machines log it.
func stamp(ms float64) string { return at(ms).Format(time.RFC3339Nano) }

// led is the log line of the leading machine when all regions are active.
func led(ms float64, id int) string {
	return fmt.Sprintf(`{"time":%q,"level":"INFO","msg":"reconfigured","machine":0,"configuration":%d,"dead":[2],"took":12000000,"steps":"configuration 6: probed after 300µs, stored 1.5ms, acknowledged 9ms, committed 9.5ms, all regions active 12ms"}`, stamp(ms), id)
}

// storedWith is the log line of the leading machine when it has stored a configuration.
func storedWith(ms float64, id int, members string) string {
	return fmt.Sprintf(`{"time":%q,"msg":"configuration stored","configuration":%d,"machines":%s,"regions":"2 refilled"}`, stamp(ms), id, members)
}

func logOf(lines ...string) *Log {
	l := new(Log)
	for _, line := range lines {
		l.Add(0, line)
	}
	return l
}

func TestLog(t *testing.T) {
	l := logOf(
		`panic: not JSON`, `{"some":"JSON"}`, `{"time":"soon","msg":"reconfigured"}`,
		fmt.Sprintf(`{"time":%q,"msg":"leases","length":100000000,"kept by":"thread"}`, stamp(-5000)),
		storedWith(-910, 3, "[0,1,3,4]"), led(-900, 3), // the failure before
		fmt.Sprintf(`{"time":%q,"msg":"reconfigured","dead":null,"joined":2,"took":5,"steps":"x"}`, stamp(-800)),
		fmt.Sprintf(`{"time":%q,"msg":"machine suspected","machine":3,"suspect":4}`, stamp(3)), // not killed
		storedWith(30, 5, "[0,1,3,4]"), led(40, 5),
		fmt.Sprintf(`{"time":%q,"msg":"machine suspected","machine":3,"suspect":2}`, stamp(26)),
		storedWith(50, 6, "[0,3,4]"), // replaced before its regions are active
		storedWith(55, 7, "[0,3]"), led(70, 7),
	)
	if len(l.events) != 11 {
		t.Fatalf("%+v", l.events)
	}
	if kept := l.since(time.Time{}, leasesKept); len(kept) != 1 || kept[0].Length != 100*time.Millisecond || kept[0].KeptBy != "thread" {
		t.Errorf("leases: %+v", kept)
	}
	for _, c := range []struct {
		victims   []int
		ok        bool
		allActive time.Time
	}{{[]int{2}, true, at(40)}, {[]int{1, 2}, true, at(70)}, {[]int{2, 4}, true, at(70)}, {[]int{2, 3}, false, time.Time{}}} {
		r, ok, err := l.withoutAll(c.victims, at(0))
		if err != nil || ok != c.ok || !r.allActive.Equal(c.allActive) {
			t.Errorf("%v: %+v, %v, %v", c.victims, r, ok, err)
		}
	}
	r, _, _ := l.withoutAll([]int{2}, at(0))
	if r != (reconfiguration{at(28), at(28.3), at(29.5), at(37.5), at(40)}) {
		t.Errorf("steps: %+v", r)
	}
	if first := l.firstSuspicion([]int{2}, at(0), &r); !first.Equal(at(26)) {
		t.Errorf("suspected at %v", first)
	}
	if first := l.firstSuspicion([]int{1}, at(0), &r); !first.Equal(at(28)) {
		t.Errorf("nobody said it, but the leader began at %v", first)
	}
	l.forget(at(50))
	if len(l.events) != 4 || len(l.since(at(-9999), leasesKept)) != 1 {
		t.Errorf("left: %+v", l.events)
	}
}

func TestLogWithoutSteps(t *testing.T) {
	for _, steps := range []string{"", "all is well", "configuration 6: probed after 1x, stored 1ms, acknowledged 1ms, committed 1ms, all regions active 1ms"} {
		l := logOf(storedWith(30, 5, "[0,1]"), fmt.Sprintf(`{"time":%q,"msg":"reconfigured","configuration":5,"steps":%q}`, stamp(40), steps))
		if _, ok, err := l.withoutAll([]int{2}, at(0)); ok || err == nil {
			t.Errorf("%q: %v, %v", steps, ok, err)
		}
	}
}
