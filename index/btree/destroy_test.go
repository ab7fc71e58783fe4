package btree

import (
	"context"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

var errStop = errors.New("stop here")

// nodesOf walks a tree and returns its objects.
func nodesOf(t testing.TB, tr *Tree) []region.Ptr {
	t.Helper()
	var nodes []region.Ptr
	shape, err := tr.Inspect(ctx, Visitor{Node: func(p region.Ptr) error {
		nodes = append(nodes, p)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes) != 1+shape.Inner+shape.Leaves {
		t.Fatalf("%d objects, counted %+v", len(nodes), shape)
	}
	return nodes
}

// TestDestroy stops after every few entries, as crashes would. Each time it checks what is left, and
// continues from another machine.
func TestDestroy(t *testing.T) {
	c := openFarm(t, 2)
	trees := createTree(t, c, smallNodes)
	insertRange(t, trees[0], 0, 3000)
	nodes := nodesOf(t, trees[0])
	given := map[string]bool{}
	for round := 0; ; round++ {
		if round > 100 {
			t.Fatal("no end")
		}
		// The entries that a failed transaction has visited count only once they are deleted by a
		// committed one.
		calls, now := 0, map[string]bool{}
		err := trees[round%2].Destroy(ctx, func(tx *txn.Tx, key []byte, v region.Ptr) error {
			if calls++; calls > 700 {
				return errStop
			}
			now[string(key)] = true
			return nil
		})
		left := 0
		if _, gone := readAnchor(t, trees[0]); !gone {
			if _, err := trees[0].Inspect(ctx, Visitor{Entry: func(key []byte, v region.Ptr) error {
				left++
				delete(now, string(key))
				return nil
			}}); err != nil {
				t.Fatalf("round %d: what is left: %v", round, err)
			}
		}
		for k := range now {
			if given[k] {
				t.Fatalf("key %x was removed twice", k)
			}
			given[k] = true
		}
		if len(given)+left != 3000 {
			t.Fatalf("round %d: %d removed, %d left", round, len(given), left)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
		if _, _, err := trees[1].Lookup(intKey(2999)); round > 0 && !errors.Is(err, ErrDestroyed) {
			// Machine 1's cache may still point to a leaf that stands.
			if _, _, err := Open(c.Machine(1), trees[1].Anchor()).Lookup(intKey(2999)); !errors.Is(err, ErrDestroyed) {
				t.Errorf("lookup in a tree half destroyed: %v", err)
			}
		}
	}
	for _, p := range nodes {
		if _, err := c.Machine(0).Read(p, make([]byte, p.Capacity())); !errors.Is(err, region.ErrFreed) {
			t.Errorf("node %v was left: %v", p, err)
		}
	}
	if err := trees[0].Destroy(ctx, nil); err != nil {
		t.Errorf("destroying what is gone: %v", err)
	}
	tx := c.Machine(1).Begin()
	defer tx.Abort()
	if err := trees[1].Insert(tx, intKey(1), rowPtr(1)); !errors.Is(err, ErrDestroyed) {
		t.Errorf("insert: %v", err)
	}
	if _, err := scanAll(trees[1].Scan(tx, nil, nil, false)); !errors.Is(err, ErrDestroyed) {
		t.Errorf("scan: %v", err)
	}
	if err := trees[1].Check(ctx, nil); !errors.Is(err, region.ErrFreed) {
		t.Errorf("check: %v", err)
	}
}

func readAnchor(t *testing.T, tr *Tree) (anchor, bool) {
	t.Helper()
	b := make([]byte, tr.anchor.Capacity())
	if _, err := tr.m.Read(tr.anchor, b); errors.Is(err, region.ErrFreed) {
		return anchor{}, true
	}
	a, err := parseAnchor(b, tr.id)
	if err != nil {
		t.Fatal(err)
	}
	return a, false
}

// TestDestroyFreesRows: the rows that entries point to are freed in the same transactions.
func TestDestroyFreesRows(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, Config{})[0]
	var rows []region.Ptr
	for i := range 400 {
		must(t, tr.m, func(tx *txn.Tx) error {
			p, _, err := tx.Alloc(40, 0)
			if err != nil {
				return err
			}
			rows = append(rows, p)
			return tr.Insert(tx, intKey(i), p)
		})
	}
	err := tr.Destroy(ctx, func(tx *txn.Tx, key []byte, p region.Ptr) error { return tx.Free(p) })
	if err != nil {
		t.Fatal(err)
	}
	checkMemory(t, c)
	for _, p := range rows {
		if _, err := tr.m.Read(p, make([]byte, p.Capacity())); !errors.Is(err, region.ErrFreed) {
			t.Fatalf("row %v: %v", p, err)
		}
	}
}

func TestDestroyOneLeaf(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), Config{})[0]
	if err := tr.Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tr.Lookup(nil); !errors.Is(err, ErrDestroyed) {
		t.Errorf("%v", err)
	}
}

func TestDestroyCancelled(t *testing.T) {
	tr := createTree(t, openFarm(t, 1), smallNodes)[0]
	insertRange(t, tr, 0, 300)
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := tr.Destroy(stopped, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := tr.Inspect(stopped, Visitor{}); !errors.Is(err, context.Canceled) {
		t.Errorf("inspect: %v", err)
	}
	if err := tr.Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
}

// TestInsertIntoFelledTree: a transaction that was open when the destruction of the tree began cannot
// create anything in it.
func TestInsertIntoFelledTree(t *testing.T) {
	c := openFarm(t, 1)
	tr := createTree(t, c, smallNodes)[0]
	insertRange(t, tr, 0, 300)
	tx := c.Machine(0).Begin()
	defer tx.Abort()
	if err := tr.Insert(tx, intKey(1000), rowPtr(1)); err != nil {
		t.Fatal(err)
	}
	if err := tr.Destroy(ctx, nil); err != nil {
		t.Fatal(err)
	}
	// A conflict, so that the transaction is run again and finds that the tree is gone.
	if err := tx.Commit(ctx); !errors.Is(err, ErrDestroyed) || !errors.Is(err, outcome.ErrConflict) {
		t.Errorf("commit: %v", err)
	}
}

// TestRestart closes the machines after a tree has been built, and again in the middle of its
// destruction.
func TestRestart(t *testing.T) {
	cfg := farm.Config{Machines: 2, Replicas: 2, RegionBytes: 8 << 20, LogBytes: 4 << 20, MessageBytes: 64 << 10, Volatile: farm.NewVolatile()}
	life := func(fn func(c *farm.Local)) {
		t.Helper()
		c, err := farm.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		fn(c)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var anchor region.Ptr
	model := map[string]region.Ptr{}
	life(func(c *farm.Local) {
		tr := createTree(t, c, smallNodes)[1]
		anchor = tr.Anchor()
		insertRange(t, tr, 0, 1000)
		for i := range 1000 {
			model[string(intKey(i))] = rowPtr(i)
		}
	})
	life(func(c *farm.Local) {
		trees := openTree(c, anchor)
		checkTree(t, trees[1], model)
		insertRange(t, trees[0], 1000, 1100)
		calls := 0
		err := trees[0].Destroy(ctx, func(*txn.Tx, []byte, region.Ptr) error {
			if calls++; calls > 600 {
				return errStop
			}
			return nil
		})
		if !errors.Is(err, errStop) {
			t.Fatal(err)
		}
	})
	life(func(c *farm.Local) {
		trees := openTree(c, anchor)
		shape, err := trees[0].Inspect(ctx, Visitor{})
		if err != nil || shape.Entries == 0 || shape.Entries >= 1100 {
			t.Fatalf("%+v %v", shape, err)
		}
		checkMemory(t, c, trees[0])
		if err := trees[1].Destroy(ctx, nil); err != nil {
			t.Fatal(err)
		}
		checkMemory(t, c)
	})
}
