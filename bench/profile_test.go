package bench

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"
)

// sink keeps the compiler from leaving out allocations.
var sink []byte

// This is many times the distance between samples, so each allocation is in the profile.
const profiledBytes = 16 << 20

//go:noinline
func allocateBefore() { sink = make([]byte, profiledBytes) }

//go:noinline
func allocateMeanwhile() { sink = make([]byte, profiledBytes) }

// spinMeanwhile takes enough processor time to be in samples.
//
//go:noinline
func spinMeanwhile() {
	for end := ownTime() + 300*time.Millisecond; ownTime() < end; {
		for i := range 1 << 16 {
			sink[i%len(sink)]++
		}
	}
}

// contendMeanwhile makes two goroutines wait for a lock so often that the profile records some of
// the waits.
func contendMeanwhile() {
	var mu sync.Mutex
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 200 {
				waitForLock(&mu)
			}
		})
	}
	both.Wait()
}

//go:noinline
func waitForLock(mu *sync.Mutex) {
	mu.Lock()
	time.Sleep(100 * time.Microsecond)
	mu.Unlock()
}

// The profiles contain the events of their time, and go tool pprof can read them.
func TestProfile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cpu")
	allocateBefore()
	contendMeanwhile() // nobody records it yet
	for range 2 {
		end, err := beginProfile(file)
		if err != nil {
			t.Fatal(err)
		}
		allocateMeanwhile()
		spinMeanwhile()
		contendMeanwhile()
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if n := runtime.SetMutexProfileFraction(-1); n != 0 {
			t.Errorf("after the profile every %dth wait is recorded", n)
		}
	}
	for _, c := range []struct {
		args       []string
		want, none string
	}{
		{[]string{file}, "bench.spinMeanwhile", "bench.allocateBefore"},
		{[]string{"-sample_index=alloc_space", "-unit=kb", "-base", file + ".allocs.base", file + ".allocs"}, `\b16\d\d\d(\.\d+)?kB .*bench\.allocateMeanwhile`, "bench.allocateBefore"},
		{[]string{"-sample_index=alloc_space", file + ".allocs"}, "bench.allocateBefore", "bench.spinMeanwhile"},
		{[]string{file + ".mutex"}, "bench.waitForLock", "bench.spinMeanwhile"},
		{[]string{file + ".block"}, "bench.waitForLock", "bench.spinMeanwhile"},
	} {
		out := top(t, c.args)
		if !regexp.MustCompile(c.want).MatchString(out) || strings.Contains(out, c.none) {
			t.Errorf("%v: want %q and no %q:\n%s", c.args, c.want, c.none, out)
		}
	}
}

func top(t *testing.T, args []string) string {
	t.Helper()
	var errs bytes.Buffer
	c := exec.Command("go", append([]string{"tool", "pprof", "-top", "-nodefraction=0"}, args...)...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &errs)
	}
	return string(out)
}

func TestProfileFails(t *testing.T) {
	for _, suffix := range []string{"", ".allocs", ".allocs.base", ".mutex", ".block"} {
		file := filepath.Join(t.TempDir(), "cpu")
		if err := os.Mkdir(file+suffix, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := beginProfile(file); err == nil || !strings.Contains(err.Error(), file+suffix+":") {
			t.Errorf("a folder is where %q should be: %v", suffix, err)
		}
	}
	if err := pprof.StartCPUProfile(new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	_, err := beginProfile(filepath.Join(t.TempDir(), "cpu"))
	pprof.StopCPUProfile()
	if err == nil || !strings.Contains(err.Error(), "cpu profiling already in use") {
		t.Errorf("two profiles at a time: %v", err)
	}
	folder := t.TempDir()
	end, err := beginProfile(filepath.Join(folder, "cpu"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := end(); err == nil {
		t.Error("written to no folder")
	}
}

// A run ends if its profile fails.
func TestRunWithoutItsProfile(t *testing.T) {
	o := Options{Duration: time.Hour, Profile: filepath.Join(t.TempDir(), "no", "cpu"), AnyBuild: true}
	if res, err := Run(t.Context(), &Target{}, &toy{do: alternate}, o); err == nil || res != nil || !strings.Contains(err.Error(), o.Profile) {
		t.Errorf("%v, %v", res, err)
	}
}

func TestAllocationsAreCounted(t *testing.T) {
	const n, size = 1000, 100_000
	w := &toy{do: func(context.Context, *Thread, int) (int, error) {
		sink = make([]byte, size)
		return 0, nil
	}}
	res, err := Run(t.Context(), &Target{}, w, Options{Transactions: n, AnyBuild: true})
	if err != nil {
		t.Fatal(err)
	}
	if res.Allocations < 1 || res.Allocations > 10 || res.AllocatedBytes < size || res.AllocatedBytes > 1.2*size {
		t.Errorf("%v allocations of %v bytes", res.Allocations, res.AllocatedBytes)
	}
}
