package bench

import (
	"context"
	"errors"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

func TestIndexesLiveAtTheirMachine(t *testing.T) {
	ctx := context.Background()
	tg, err := Open(ctx, TargetConfig{Machines: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	const at = 1
	tables, err := tg.HashAt(ctx, at, "h", hash.Config{})
	if err != nil {
		t.Fatal(err)
	}
	trees, err := tg.TreeAt(ctx, at, "t", btree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// The table grows during these inserts.
	for k := range 5000 {
		if err := tables[0].PutNow(ctx, []byte{byte(k), byte(k >> 8)}, []byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	nodes := 0
	isThere := func(p region.Ptr) error {
		if nodes++; !tg.Machine(at).IsPrimary(p.Addr) {
			t.Errorf("%v is not at machine %d", p, at)
		}
		return nil
	}
	if err := tables[0].Check(ctx, hash.Visitor{Node: isThere}); err != nil {
		t.Fatal(err)
	}
	if _, err := trees[0].Inspect(ctx, btree.Visitor{Node: isThere}); err != nil {
		t.Fatal(err)
	}
	if nodes < 1000 {
		t.Errorf("looked at %d nodes only", nodes)
	}
	// All machines' handles are of the same index.
	if err := tg.Machine(0).Run(ctx, func(tx *txn.Tx) error { return trees[0].Put(tx, []byte("k"), region.Ptr{}) }); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := trees[1].Lookup([]byte("k")); !ok || err != nil {
		t.Errorf("what machine 0 has put is not seen by machine 1: %v", err)
	}
	if _, err := tg.TreeAt(ctx, at, "h", btree.Config{}); !errors.Is(err, farmsql.ErrOtherKind) {
		t.Errorf("a hash table opened as a tree: %v", err)
	}
	if _, err := tg.HashAt(ctx, at, "t", hash.Config{}); !errors.Is(err, farmsql.ErrOtherKind) {
		t.Errorf("a tree opened as a hash table: %v", err)
	}
}
