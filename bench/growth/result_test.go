package growth

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/bench"
)

func seconds(s ...float64) (all []time.Duration) {
	for _, x := range s {
		all = append(all, time.Duration(x*float64(time.Second)))
	}
	return all
}

func TestSteps(t *testing.T) {
	w := &work{ends: seconds(2.7, 0.1, 0.2, 0.3, 1.5, 1.6, 3.1, 4.5), failures: []failed{{at: 2500 * time.Millisecond}, {at: 9 * time.Second}}}
	tl := newTally(w, 4900*time.Millisecond)
	if want := []uint32{3, 2, 1, 1}; !reflect.DeepEqual(tl.perSecond, want) {
		t.Errorf("%d by the second, want %d", tl.perSecond, want)
	}
	got := tl.step(stepTimes{"x", time.Second, 3 * time.Second}, 1)
	if want := (Step{"x", 1, 3, 3, 1.5, 1, 0, 1, 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	empty := newTally(&work{}, 3*time.Second)
	if got := empty.step(stepTimes{"x", time.Second, time.Second}, 0); got.Zeros != 1 || got.During != 0 {
		t.Errorf("nothing was done: %+v", got)
	}
	if got := newTally(&work{}, 0).step(stepTimes{"x", 0, time.Second}, 1); got.Zeros != 0 {
		t.Errorf("no second: %+v", got)
	}
}

func TestEvenness(t *testing.T) {
	even := newEvenness("then", 5, 10, []Share{{0, 5, 100, 5}, {1, 5, 110, 6}})
	if !even.isEven() || even.BytesSpread < 0.095 || even.BytesSpread > 0.0953 {
		t.Errorf("%+v", even)
	}
	bytesApart := newEvenness("then", 5, 10, []Share{{0, 5, 100, 5}, {1, 5, 130, 5}})
	primariesApart := newEvenness("then", 5, 10, []Share{{0, 5, 100, 4}, {1, 5, 100, 6}})
	if bytesApart.isEven() || primariesApart.isEven() {
		t.Errorf("%+v, %+v", bytesApart, primariesApart)
	}
	if none := newEvenness("then", 5, 0, []Share{{}, {}}); !none.isEven() {
		t.Errorf("%+v", none)
	}
	r := Result{Evenness: []Evenness{even, bytesApart}}
	if err := r.Uneven(); !errors.Is(err, ErrUneven) || !strings.Contains(err.Error(), "bytes within 26.1 %") {
		t.Error(err)
	}
	r.Evenness = r.Evenness[:1]
	if err := r.Uneven(); err != nil {
		t.Error(err)
	}
}

func TestIsSettled(t *testing.T) {
	settled := func() *farmsql.Status {
		return &farmsql.Status{Replicas: 2, Machines: make([]farmsql.MachineStatus, 3), Regions: []farmsql.RegionStatus{{Primary: 1, Backups: []int{2}}}}
	}
	if !isSettled(settled(), 3) || isSettled(settled(), 4) {
		t.Error("three machines, and nothing to do")
	}
	for name, spoil := range map[string]func(*farmsql.Status){
		"joining":     func(s *farmsql.Status) { s.Joining = []int{3} },
		"recovering":  func(s *farmsql.Status) { s.Recovery.IsGoing = true },
		"to balance":  func(s *farmsql.Status) { s.BalanceInMS = 1 },
		"to drain":    func(s *farmsql.Status) { s.MovesAwait = "region 1" },
		"unavailable": func(s *farmsql.Status) { s.Regions[0].Primary = -1 },
		"filling":     func(s *farmsql.Status) { s.Regions[0].Filling = []int{2} },
		"moving":      func(s *farmsql.Status) { s.Regions[0].Move = new(farmsql.MoveStatus) },
		"short":       func(s *farmsql.Status) { s.Regions[0].Backups = nil },
	} {
		s := settled()
		if spoil(s); isSettled(s, 3) {
			t.Error(name)
		}
	}
	s := settled()
	s.Regions[0].Move, s.Regions[0].Filling = new(farmsql.MoveStatus), []int{2}
	if text := unsettled(s); !strings.Contains(text, "1 of them move, 1 replicas are filled") || !strings.Contains(unsettled(nil), "no machine") {
		t.Error(text)
	}
	if n := primariesAt(settled(), 1); n != 1 {
		t.Errorf("%d primaries", n)
	}
}

// The result is that of its measurement, printed, written and plotted.
func TestResult(t *testing.T) {
	c := Config{Seed: 7}.withDefaults()
	m := &measurement{
		cfg: &c, machines: &machines{old: []*process{{evicted: 2}}}, watch: bench.StartWatch(), endpoints: []*endpoint{{workload: &fakeWorkload{}}}, measured: time.Second, ended: 4 * time.Second,
		steps:   []stepTimes{{"machine 1 joins", 2 * time.Second, 2500 * time.Millisecond}},
		samples: []Sample{{1, []int{5, 0, 0, 0, 0}}, {2, []int{3, 2, 0, 0, 0}}}, evenness: []Evenness{newEvenness("then", 3, 5, []Share{{0, 3, 9e6, 3}, {1, 2, 6e6, 2}})},
		work: &work{
			ends: seconds(0.5, 1.5, 2.2), failures: []failed{{2400 * time.Millisecond, connectionLost}}, aborts: map[string]uint64{"deadlock (1213)": 4},
			longest: wait{time.Second, 500 * time.Millisecond},
		},
	}
	r := m.result()
	var b strings.Builder
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"fake, sql, 1 replica: from 1 to 5 machines, and back to 3", "3 things, 10 clients, seed 7", "durability: tmpfs", "regions of 4MiB in files in /dev/shm",
		"machine 1 joins", "2 transactions in 3 s", "connected anew: connection lost 1", "repeated: deadlock (1213) 4", "no transaction: 0.50 s, from second 1.0", "came back: 2",
		"then: 5 regions; bytes within 40.0 %", "machine 1 6.0 MB in 2 replicas, 2 primaries",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	var text bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var again Result
	if err := json.Unmarshal(text.Bytes(), &again); err != nil || !reflect.DeepEqual(again.Steps, r.Steps) || again.Steps[0].Errors != 1 {
		t.Errorf("%v, %+v", err, again)
	}
	base := filepath.Join(t.TempDir(), "plot")
	if err := r.Plot(base); err != nil {
		t.Fatal(err)
	}
	for _, ending := range []string{".svg", ".png"} {
		if info, err := os.Stat(base + ending); err != nil || info.Size() == 0 {
			t.Error(err)
		}
	}
	r.Samples, r.Conditions.Replicas = nil, 3
	if err := r.Plot(filepath.Join(base, "nowhere")); err == nil {
		t.Error("plotted to nowhere")
	}
	if !strings.Contains(r.title(), "3 replicas") {
		t.Error(r.title())
	}
	r.PerSecond = nil
	if err := r.Plot(base); err == nil {
		t.Error("nothing was measured, and plotted")
	}
	if counts(map[string]int{}) != "none" {
		t.Error("nothing is something")
	}
}
