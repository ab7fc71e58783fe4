package farmsql

import (
	"encoding/binary"
	"fmt"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/txn/lookup"
)

// The machines of a database answer for each other's hash tables: single
// operations and lookups through chains are shipped to the primary.
func TestHashIsServed(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Machines, cfg.Replicas = 3, 2
	db := mustOpen(t, cfg)
	ctx := t.Context()
	// One shard that is nearly full, so that some keys are in chains.
	table := func(machine int) *hash.Table {
		tb, err := db.HashAt(ctx, machine, "served", hash.Config{Buckets: 64, MaxLoad: 95})
		if err != nil {
			t.Fatal(err)
		}
		return tb
	}
	const keys = 230
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	value := func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }
	var users sync.WaitGroup
	for m := range db.Machines() {
		users.Go(func() {
			for i := m; i < keys; i += db.Machines() {
				if err := table(m).PutNow(ctx, key(i), value(i)); err != nil {
					t.Errorf("machine %d, key %d: %v", m, i, err)
				}
			}
		})
	}
	users.Wait()
	served, looked := 0, 0
	for m := range db.Machines() {
		if one, two := table(m), table(m); one != two {
			t.Errorf("machine %d has several handles", m)
		}
		if table(m).Stats().Shipped > 0 {
			served++
		}
		twoSided := hash.OpenWith(db.Machine(m), table(m).Anchor(), hash.Options{Lookups: lookup.OneTwoSided})
		for i := range keys {
			v, ok, err := twoSided.Lookup(key(i), nil)
			if err != nil || !ok || string(v) != string(value(i)) {
				t.Fatalf("machine %d, key %d: %x, %v, %v", m, i, v, ok, err)
			}
		}
		if twoSided.Stats().Shipped > 0 {
			looked++
		}
	}
	if served != 2 || looked != 2 {
		t.Errorf("%d machines shipped operations and %d lookups, want 2 of 3", served, looked)
	}
	mustCheck(t, db)
}
