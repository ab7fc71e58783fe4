package txntest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// openWithObjects opens an instance. Each machine makes objects there that take several regions.
func openWithObjects(t *testing.T) (*Instance, []region.Ptr) {
	t.Helper()
	x, err := Open(Config{Machines: 2, Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	var ptrs []region.Ptr
	for i := range 14 {
		err := x.Machine(i%2).Run(context.Background(), func(tx *txn.Tx) error {
			p, b, err := tx.Alloc(150_000, 0)
			if err == nil {
				ptrs = append(ptrs, p)
				b[0] = byte(i)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return x, ptrs
}

// Check finds the faults, and nothing else.
func TestCheck(t *testing.T) {
	x, ptrs := openWithObjects(t)
	if n := len(x.Configuration().Regions); n <= x.Machines() {
		t.Errorf("%d regions: none was added", n)
	}
	if err := x.Check(slices.Values(ptrs)); err != nil {
		t.Error(err)
	}
	err := x.Check(slices.Values(ptrs[1:]))
	if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), fmt.Sprintf("machine 0: leak: %v", ptrs[0])) {
		t.Errorf("one object that nothing leads to: %v", err)
	}
}

// A backup that differs is found.
func TestCheckComparesBackups(t *testing.T) {
	x, ptrs := openWithObjects(t)
	if err := x.Check(slices.Values(ptrs)); err != nil { // and all backups have applied everything
		t.Error(err)
	}
	p := ptrs[1]
	place, _ := x.Configuration().Placement(p.Addr.Region())
	backup := x.machines[place.Backups[0]].regions[p.Addr.Region()]
	backup.Memory().Store(uint64(p.Addr.Offset())+region.HeaderBytes, 7)
	err := x.Check(slices.Values(ptrs))
	want := fmt.Sprintf("machine %d: damaged: %v: differs from the primary: payload", place.Backups[0], p)
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
