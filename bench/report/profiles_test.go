package report

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/bench/costs"
	"github.com/farmsql/farmsql/bench/costs/coststest"
)

// putProfiles writes the files of a profiled run of two processes.
func putProfiles(t *testing.T, o *Options, e experiment) {
	t.Helper()
	put(t, o, e, 1, sample(1000, 0))
	for _, process := range []string{".0", ".1"} {
		file := o.file(turn{e, 1}, profileEnding) + process
		coststest.Write(t, file, costs.ProcessorTime, map[string]int64{
			"region.(*View).look txn.(*Tx).Read": 55, "txn/set.(*Set).Add": 30, "runtime.morestack": 14, "region.(*Region).Lock": 1,
		})
		coststest.Write(t, file+bench.ProfileAllocs, costs.Objects, map[string]int64{"runtime.newobject txn/set.(*Set).Add": 9, "txn.(*Tx).Alloc": 8})
		coststest.Write(t, file+bench.ProfileAllocsBase, costs.Objects, map[string]int64{"txn.(*Tx).Alloc": 8})
		coststest.Write(t, file+bench.ProfileMutex, costs.Waited, map[string]int64{"runtime.unlock txn/worker.(*Worker).Unlock": 9_000})
		coststest.Write(t, file+bench.ProfileBlock, costs.Waited, nil)
	}
}

func TestProfiles(t *testing.T) {
	o := Options{Folder: t.TempDir(), Runs: 1}
	putProfiles(t, &o, profiles[2].experiment)
	text := written(t, o, document(t, ""))
	for _, want := range []string{
		"TATP, 1 machine: not measured.\n",
		"| µs of a transaction (% of its processor time) | TATP, 3 machines |\n|---|---:|\n| all | 2.00 |\n",
		"| the first load of a bucket's header | **1.10 (55.0)** |\n| objects read and written by the transaction | **0.60 (30.0)** |\n",
		"| the rest | 0.30 (15.0) |\n\n", // what nothing accounts for, and what is small
		"\n- the first load of a bucket's header: a miss of the cache, ",
		"\n- TATP, 3 machines (1 run, 921 rows, volatile anonymous memory): 1,000 transactions a second. A transaction makes 0.00 allocations of 0.00 bytes together, 100 % in `txn/set.(*Set).Add`. " +
			"It waits for locks for 2.00 µs, 100 % in `txn/worker.(*Worker).Unlock`.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestProfilesAreMissing(t *testing.T) {
	for _, ending := range []string{"", bench.ProfileAllocs, bench.ProfileAllocsBase, bench.ProfileMutex} {
		o := Options{Folder: t.TempDir(), Runs: 1}
		putProfiles(t, &o, profiles[0].experiment)
		for _, process := range []string{".0", ".1"} {
			if err := os.Remove(o.file(turn{profiles[0].experiment, 1}, profileEnding) + process + ending); err != nil {
				t.Fatal(err)
			}
		}
		err := Write(o, document(t, ""))
		if err == nil || !strings.Contains(err.Error(), "profile-tatp.1.profile") || ending != "" && !errors.Is(err, costs.ErrProfile) {
			t.Errorf("without %q: error %v", ending, err)
		}
	}
}

// Profiles of an earlier run do not count for this run, which may have fewer processes.
func TestProfilesOfAnEarlierRunGo(t *testing.T) {
	o := script(t, works)
	o.Only, o.Runs = []string{"profile-tpcc"}, 1
	if err := os.Mkdir(o.Folder, 0o777); err != nil {
		t.Fatal(err)
	}
	putProfiles(t, &o, profiles[1].experiment)
	if err := os.Remove(o.file(turn{profiles[1].experiment, 1}, ".json")); err != nil {
		t.Fatal(err)
	}
	other := o.file(turn{profiles[0].experiment, 1}, profileEnding)
	coststest.Write(t, other, costs.ProcessorTime, nil)
	if err := Measure(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if left, err := o.allProfiles(turn{profiles[1].experiment, 1}); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if left, err := o.allProfiles(turn{profiles[0].experiment, 1}); err != nil || len(left) != 1 {
		t.Errorf("another's: %v, %v", left, err)
	}
}

// A run that is profiled is told where to put its profiles.
func TestProfilesAreTaken(t *testing.T) {
	o := script(t, `for a; do if [ "$last" = --profile ]; then echo "$a" > $OUT.told; fi; last=$a; done`+"\n"+works)
	o.Only, o.Runs = []string{"profile-tpcc"}, 1
	if err := Measure(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	told, err := os.ReadFile(o.file(turn{profiles[1].experiment, 1}, ".part.told"))
	if want := o.file(turn{profiles[1].experiment, 1}, profileEnding); err != nil || strings.TrimSpace(string(told)) != want {
		t.Errorf("%q, %v, want %q", told, err, want)
	}
}
