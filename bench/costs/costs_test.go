package costs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench/costs"
	"github.com/farmsql/farmsql/bench/costs/coststest"
)

type stacks = map[string]int64

func write(t *testing.T, weight string, s stacks) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "profile")
	coststest.Write(t, file, weight, s)
	return file
}

func TestCosts(t *testing.T) {
	file := write(t, costs.ProcessorTime, stacks{
		"region.(*View).look index/hash.(*opened).glance index/hash.(*Table).Lookup bench/tatp.(*client).Do": 50, // its own
		"runtime.memmove region.copyLine index/hash.(*opened).glance.func1 bench.(*loop).work":               30, // of a package, by a function in a function
		"region.(*View).look index/hash.(*Table).Lookup txn/worker.(*Worker).stepLogLocked txn.(*Tx).Commit": 20, // of what has all
		"index/hash.(*Table).move index/hash.(*Table).maintain txn/worker.(*Worker).stepMessagesLocked":      7,  // the outermost of two
		"runtime.mallocgcSmall runtime.mallocgc index/btree.node.decode":                                     5,
		"runtime.memmove rdma/shm.(*Queue).try rdma/shm.(*Queue).post rdma/shm.(*Queue).Write":               17, // of what two costs call
		"runtime.memmove rdma/shm.(*Queue).try rdma/shm.(*Queue).post rdma/shm.(*Queue).Read":                13,
		"runtime.nanotime time.Now internal/clock.System.Now":                                                11,
		"runtime.morestack": 3,
		"bench/tatpish.f":   2, // a name that only begins like a package's
		"":                  1,
	})
	p, err := costs.Read(costs.ProcessorTime, file, file) // as of two processes
	if err != nil || p.Total != 318 {
		t.Fatal(p, err)
	}
	got := make(map[string]int64)
	for _, c := range p.Costs() {
		got[c.Name] = c.Weight
	}
	want := map[string]int64{
		"the first load of a bucket's header": 100, "buckets: headers checked, pairs found and copied": 60, "work for others: their records": 40,
		"work for others: messages and functions shipped": 14, "allocation and garbage collection": 10, costs.Rest: 12,
		"commit: records": 34, "READs of other machines' memory": 26, "waiting, waking and going to sleep": 22,
	}
	for name, weight := range want {
		if got[name] != weight {
			t.Errorf("%s: %d, want %d", name, got[name], weight)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !slices.IsSortedFunc(p.Costs(), func(a, b costs.Part) int { return int(b.Weight - a.Weight) }) {
		t.Errorf("not in order: %v", p.Costs())
	}
}

func TestPlaces(t *testing.T) {
	now := write(t, costs.Objects, stacks{
		"runtime.newobject txn/set.(*Set).Add txn.(*Tx).Read":                  10,
		"index/btree.(*slab[go.shape.[]int]).next index/btree.(*pending).keep": 9,
		"runtime.newobject": 1,
		"txn.(*Tx).Alloc":   4,
	})
	before := write(t, costs.Objects, stacks{"txn/set.(*Set).Add": 3, "txn.(*Tx).Alloc": 4})
	p, err := costs.Read(costs.Objects, now)
	if err == nil {
		err = p.Subtract(costs.Objects, before)
	}
	want := []costs.Part{{Name: "index/btree.(*slab).next", Weight: 9}, {Name: "txn/set.(*Set).Add", Weight: 7}, {Name: "outside of this module", Weight: 1}}
	if err != nil || p.Total != 17 || !slices.Equal(p.Places(), want) {
		t.Errorf("%v, %+v, want %v", err, p, want)
	}
}

func TestProfileIsRefused(t *testing.T) {
	good, other, text := write(t, costs.ProcessorTime, nil), write(t, costs.Objects, nil), filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no profile"), 0o666); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{"/no/such/file": "no such file", text: text, other: "has no cpu"} {
		if _, err := costs.Read(costs.ProcessorTime, good, file); !errors.Is(err, costs.ErrProfile) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", file, err, says)
		}
		p := &costs.Profile{}
		if err := p.Subtract(costs.ProcessorTime, file); !errors.Is(err, costs.ErrProfile) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s subtracted: error %v", file, err)
		}
	}
	if _, err := costs.Read(costs.ProcessorTime, "/no/such/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
