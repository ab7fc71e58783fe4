package bench

import (
	"bytes"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// sampleResult is of a run of a few seconds in which a machine was killed.
func sampleResult(perSecond float64, latencyMS int) *Result {
	r := &run{target: &Target{cfg: TargetConfig{API: Native}}, workload: &toy{do: alternate}, options: Options{Threads: 2, Duration: 3 * time.Second, Seed: 1}}
	r.start = time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	rec := newRecord(2)
	for i := range int(3 * perSecond) {
		at := time.Duration(float64(i) / perSecond * 1e9)
		if ms := at.Milliseconds(); ms > 1000 && ms < 1050 {
			continue
		}
		rec.add(i%2, time.Duration(latencyMS)*time.Millisecond+time.Duration(i)*time.Microsecond, at, i%10 == 0, 1)
	}
	r.loops = []*loop{{record: rec}}
	res, err := r.result()
	if err != nil {
		panic(err)
	}
	return res
}

func TestResultJSON(t *testing.T) {
	res := sampleResult(5000, 1)
	var b bytes.Buffer
	if err := res.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var again Result
	if err := json.Unmarshal(b.Bytes(), &again); err != nil || !reflect.DeepEqual(&again, res) {
		t.Errorf("%v\n%+v\nwant\n%+v", err, again, res)
	}
	if n := len(res.PerSecond); n != 3 {
		t.Errorf("%d seconds", n)
	}
	sum := 0
	for _, n := range res.PerMillisecond {
		sum += int(n)
	}
	if sum != int(res.Total.Count) || res.PerSecond[1] > 4760 || res.PerSecond[1] < 4740 {
		t.Errorf("%d transactions in all milliseconds, %d in all; by second %v", sum, res.Total.Count, res.PerSecond)
	}
}

func TestPrint(t *testing.T) {
	res := sampleResult(5000, 1)
	res.Conditions.Machines, res.Conditions.Replicas, res.Conditions.Transport, res.Conditions.Memory = 3, 2, TransportLocal, "anonymous memory"
	res.Conditions.Rate = 5000
	res.Aborts = map[string]uint64{"lock": 1200, "answer": 3}
	res.Processor, res.Allocations, res.AllocatedBytes, res.Reads = 1.5, 2.25, 1234.5, &Reads{1, 2, 3, 4}
	res.Space = NewSpace(480_000, 1_000_000)
	var b strings.Builder
	if err := res.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"toy, native, 3 machines, 2 replicas over local, 1,234 things, 2 threads each", "seed 1, commit ", "2026-11-22 01:02 UTC",
		"open loop, 5,000 transactions a second arrive, 3 s after 0 s of warm-up", "processor",
		"3 machines, 2 replicas, transport local, workers by default, 2 threads each, regions in anonymous memory, all machines in one process",
		"odd", "even", "20.0 %", "p99.9", "aborted and repeated: answer 3, lock 1,200", "1.50 µs of processor time, 2.25 allocations of 1,235 bytes together, of clients and machines", "1.00 local and 2.00 remote reads",
		"\nspace: 48.0 % of 1.0 MB of objects are keys and values",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "NOT KEPT UP") {
		t.Error("it kept up")
	}
	c := &res.Conditions
	c.Machines, c.Replicas, c.Workers, c.Threads, c.Rate, c.WarmUp = 1, 1, 1, 1, 0, 0.5
	for _, want := range []string{"closed loop, 3 s after 0.5 s of warm-up, seed 1,", "\n1 machine, 1 replica, transport local, 1 worker, 1 thread, regions in anonymous memory"} {
		if text := c.Describe(); !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestPlots(t *testing.T) {
	dir := t.TempDir()
	over := filepath.Join(dir, "time")
	if err := sampleResult(5000, 1).PlotTime(over); err != nil {
		t.Fatal(err)
	}
	curve := filepath.Join(dir, "curve")
	results := []*Result{sampleResult(1000, 1), sampleResult(3000, 2), sampleResult(4000, 300)}
	if err := PlotCurve(results, curve); err != nil {
		t.Fatal(err)
	}
	for base, texts := range map[string][]string{
		over:  {"seconds", "in intervals of 10 ms", "toy, native"},
		curve: {"latency", "transactions per second", "p99.9", "100 ms"},
	} {
		svg, err := os.ReadFile(base + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if !bytes.Contains(svg, []byte(text)) {
				t.Errorf("%s: no %q", base, text)
			}
		}
		f, err := os.Open(base + ".png")
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(f)
		if err != nil || img.Bounds().Dx() < 700 {
			t.Errorf("%s: %v", base, err)
		}
		f.Close()
	}
	if err := PlotCurve(results[:1], curve); err == nil {
		t.Error("a curve through one point")
	}
	if err := (&Result{}).PlotTime(over); err == nil {
		t.Error("a plot of nothing")
	}
	if err := sampleResult(1000, 1).PlotTime(filepath.Join(dir, "no", "folder")); err == nil {
		t.Error("a plot into no folder")
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 7: "7", 7.25: "7.2", 999: "999", 1000: "1,000", 1234567.8: "1,234,568"} {
		if got := count(n); got != want {
			t.Errorf("%v: %s", n, got)
		}
	}
	for us, want := range map[float64]string{0.25: "0.25 µs", 12.5: "12 µs", 9999: "9999 µs", 25_000: "25 ms", 12_345_678: "12 s"} {
		if got := latency(us); got != want {
			t.Errorf("%v: %s", us, got)
		}
	}
	for us, want := range map[float64]string{0.1: "100 ns", 1: "1 µs", 1000: "1 ms", 1e7: "10 s"} {
		if got := shortLatency(us); got != want {
			t.Errorf("%v: %s", us, got)
		}
	}
	for ms, want := range map[int]int{0: 1, 500: 1, 501: 2, 3000: 10, 60_000: 200, 250_000: 500, 500_000: 1000, 500_001: 2000} {
		if got := intervalOf(ms); got != want {
			t.Errorf("%d ms: intervals of %d", ms, got)
		}
	}
	for step, want := range map[float64]float64{0.11: 0.2, 1: 1, 3: 5, 6: 10, 41_000: 50_000} {
		if got := roundStep(step); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("steps of %v, want %v", got, want)
		}
	}
	if ticks := (round{}).Ticks(0, 3); len(ticks) != 7 || ticks[1].Label != "0.5" || ticks[6].Label != "3.0" {
		t.Errorf("%v", ticks)
	}
	if got := perSecond([]uint32{1, 2, 3}); !reflect.DeepEqual(got, []uint32{6}) {
		t.Errorf("a short run: %v", got)
	}
	long := make([]uint32, 2500)
	long[0], long[1999], long[2000] = 5, 6, 7
	if got := perSecond(long); !reflect.DeepEqual(got, []uint32{5, 6}) {
		t.Errorf("%v", got)
	}
}

func TestConditions(t *testing.T) {
	stat := []byte("cpu  100 10 200 5000 7 1 2 30 40 50\ncpu0 1 2 3\n")
	if got := busyTime(stat); got != 3430*time.Millisecond {
		t.Errorf("busy for %v", got)
	}
	if got := busyTime([]byte("cpu x")); got != 0 {
		t.Errorf("nonsense is %v", got)
	}
	at := time.Unix(1000, 0)
	before := sample{at: at, own: time.Second, all: 10 * time.Second}
	after := sample{at: at.Add(2 * time.Second), own: 2 * time.Second, all: 14 * time.Second}
	if got := otherProcessors(before, after, after.own-before.own); got != 1.5 {
		t.Errorf("others: %v", got)
	}
	if got := otherProcessors(before, sample{at: at}, 0); got != -1 {
		t.Errorf("unknown: %v", got)
	}
	if computerTime() == 0 || ownTime() == 0 {
		t.Error("the system does not say how busy it is")
	}
	for want, info := range map[string]*debug.BuildInfo{
		"unknown":               nil,
		"0123456789ab modified": {Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}}},
	} {
		if got := commitOf(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	var none *Progress
	s := none.Stage("nothing", 3)
	s.Add(1)
	s.Done()

	var b strings.Builder
	s = NewProgress(&b).Stage("loading rows", 3)
	s.Add(3)
	s.Done()
	if !strings.HasPrefix(b.String(), "loading rows: 0.") || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("%q", b.String())
	}

	b.Reset()
	s = (&Progress{w: &b, isTerm: true}).Stage("loading rows", 3000)
	s.Add(3000)
	s.Done()
	if !strings.Contains(b.String(), "loading rows") || !strings.Contains(b.String(), "3.00K") {
		t.Errorf("%q", b.String())
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 2.5: "2.5", 999: "999", 1e3: "1,000", 1234567: "1,234,567", -500: "-500", -1500: "-1,500"} {
		if got := count(n); got != want {
			t.Errorf("%v is printed as %s, want %s", n, got, want)
		}
	}
}
