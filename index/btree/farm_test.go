package btree

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

var ctx = context.Background()

// smallNodes make a tree of a few hundred keys three levels high.
var smallNodes = Config{LeafBytes: 234, InnerBytes: 234}

func openFarm(t testing.TB, machines int) *farm.Local {
	t.Helper()
	c, err := farm.Open(farm.Config{
		Machines: machines, Replicas: min(machines, 2), Workers: 2,
		RegionBytes: 8 << 20, LogBytes: 4 << 20, MessageBytes: 64 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// must commits what fn does, and retries after conflicts.
func must(t testing.TB, m *txn.Machine, fn func(tx *txn.Tx) error) {
	t.Helper()
	if err := m.Run(ctx, fn); err != nil {
		t.Fatal(err)
	}
}

// createTree makes a tree on m and returns a handle of it for every machine.
func createTree(t testing.TB, c *farm.Local, cfg Config) []*Tree {
	t.Helper()
	var anchor region.Ptr
	must(t, c.Machine(0), func(tx *txn.Tx) (err error) {
		anchor, err = Create(tx, cfg, 0)
		return err
	})
	return openTree(c, anchor)
}

func openTree(c *farm.Local, anchor region.Ptr) []*Tree {
	var trees []*Tree
	for i := range c.Machines() {
		trees = append(trees, Open(c.Machine(i), anchor))
	}
	return trees
}

// rowPtr is a pointer that stands for row i. Nobody follows it.
func rowPtr(i int) region.Ptr {
	return region.MakePtr(region.MakeAddr(7, uint32(i+1)<<6), 1, uint64(i))
}

// intKey is the key of an integer column.
func intKey(i int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)|1<<63) }

// put inserts rows lo to hi-1 in transactions of a hundred.
func insertRange(t testing.TB, tr *Tree, lo, hi int) {
	t.Helper()
	for ; lo < hi; lo += 100 {
		must(t, tr.m, func(tx *txn.Tx) error {
			for i := lo; i < min(lo+100, hi); i++ {
				if err := tr.Insert(tx, intKey(i), rowPtr(i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// pair is an entry of a model.
type pair struct {
	key string
	val region.Ptr
}

func (p pair) String() string { return fmt.Sprintf("%x", p.key) }

// checkTree checks the tree and compares it with the model.
func checkTree(t testing.TB, tr *Tree, model map[string]region.Ptr) Shape {
	t.Helper()
	var got []pair
	shape, err := tr.Inspect(ctx, Visitor{Entry: func(k []byte, v region.Ptr) error {
		got = append(got, pair{string(k), v})
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := pairs(model); !slices.Equal(got, want) {
		t.Fatalf("tree holds %d entries, the model %d; first difference %s", len(got), len(want), difference(got, want))
	}
	return shape
}

// checkMemory checks that the instance holds the nodes of the given trees and nothing else.
func checkMemory(t testing.TB, c *farm.Local, trees ...*Tree) {
	t.Helper()
	var nodes []region.Ptr
	for _, tr := range trees {
		if _, err := tr.Inspect(ctx, Visitor{Node: func(p region.Ptr) error {
			nodes = append(nodes, p)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	// A slot that an aborted transaction returns to another machine is on its way for a moment.
	var faults []farm.Fault
	for range 200 {
		var err error
		if faults, err = c.Check(context.Background(), slices.Values(nodes)); err != nil {
			t.Fatal(err)
		}
		if len(faults) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, f := range faults {
		t.Error(f)
	}
}

func difference(got, want []pair) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("at %d: nothing, want %v", i, want[i])
		case i >= len(want):
			return fmt.Sprintf("at %d: %v, want nothing", i, got[i])
		case got[i] != want[i]:
			return fmt.Sprintf("at %d: %v -> %v, want %v -> %v", i, got[i], got[i].val, want[i], want[i].val)
		}
	}
	return "none"
}

// pairs is a model in key order.
func pairs(model map[string]region.Ptr) []pair {
	out := make([]pair, 0, len(model))
	for k, v := range model {
		out = append(out, pair{k, v})
	}
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return out
}

// scanAll drains a cursor.
func scanAll(c *Cursor) ([]pair, error) {
	var out []pair
	for {
		k, v, ok, err := c.Next()
		if err != nil || !ok {
			return out, err
		}
		out = append(out, pair{string(k), v})
	}
}

// within is the part of sorted pairs in [lo, hi), in a scan's order.
func within(all []pair, lo, hi []byte, reverse bool) []pair {
	var out []pair
	for _, p := range all {
		if bytes.Compare([]byte(p.key), lo) >= 0 && (hi == nil || bytes.Compare([]byte(p.key), hi) < 0) {
			out = append(out, p)
		}
	}
	if reverse {
		slices.Reverse(out)
	}
	return out
}

func wantConflict(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, outcome.ErrConflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
}
