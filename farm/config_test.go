package farm

import (
	"context"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Logs take at most 1 GB together, and 32 MB each, but never less than 2 MB each.
func TestDefaultLogBytes(t *testing.T) {
	for _, c := range []struct {
		machines, workers int
		want              int64
	}{{1, 1, 32 << 20}, {4, 8, 32 << 20}, {5, 8, 16 << 20}, {1, 64, 16 << 20}, {3, 64, 4 << 20}, {3, 127, 2 << 20}, {10, 64, 2 << 20}, {1000, 256, 2 << 20}} {
		if got := DefaultLogBytes(c.machines, c.workers); got != c.want {
			t.Errorf("%d machines with %d workers: logs of %d bytes, want %d", c.machines, c.workers, got, c.want)
		}
	}
}

// An ordinary transaction can write the largest object, new or existing, even where a machine has
// so many logs that each has the smallest size.
func TestLargestObjectFitsSmallestDefaultLog(t *testing.T) {
	least := DefaultLogBytes(machinesMax, WorkersMax)
	l, err := Open(Config{Machines: 2, Replicas: 2, Workers: 1, RegionBytes: 16 << 20, LogBytes: least})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, m := context.Background(), l.Machine(0)
	var p region.Ptr
	for _, write := range []func(tx *txn.Tx) (b []byte, err error){
		func(tx *txn.Tx) (b []byte, err error) { p, b, err = tx.Alloc(region.MaxPayload, 0); return b, err },
		func(tx *txn.Tx) ([]byte, error) { return tx.Write(p) },
		func(tx *txn.Tx) ([]byte, error) { return tx.Write(p) }, // the log has to be truncated meanwhile
	} {
		err := m.Run(ctx, func(tx *txn.Tx) error {
			b, err := write(tx)
			if err == nil {
				b[0]++
				b[len(b)-1]++
			}
			return err
		})
		if err != nil {
			t.Fatalf("logs of %d bytes: %v", least, err)
		}
	}
	b := make([]byte, p.Capacity())
	if _, err := l.Machine(1).Read(p, b); err != nil || b[0] != 3 || b[len(b)-1] != 3 {
		t.Errorf("%d and %d, want 3 each: %v", b[0], b[len(b)-1], err)
	}
}
