package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// An instance is a cluster with a catalog on each machine.
type instance struct {
	*testing.T
	cluster  *farm.Local
	catalogs []*catalog.Catalog
	lives    *testLives
}

func open(t *testing.T, cfg farm.Config) *instance {
	t.Helper()
	cfg.RegionBytes, cfg.LogBytes = 4<<20, 1<<20
	cluster, err := farm.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	in := &instance{T: t, cluster: cluster}
	in.lives = newTestLives(cluster.Machines())
	for i := range cluster.Machines() {
		c, err := catalog.Open(context.Background(), cluster.Machine(i), cluster.Root(), catalog.Config{Lives: in.lives.of(i), TriggerTable: tableOfTrigger})
		if err != nil {
			t.Fatal(err)
		}
		in.catalogs = append(in.catalogs, c)
	}
	return in
}

func (in *instance) close() {
	in.Helper()
	for _, c := range in.catalogs {
		if err := c.Close(context.Background()); err != nil {
			in.Error(err)
		}
	}
	if err := in.cluster.Close(); err != nil {
		in.Error(err)
	}
}

// run runs a transaction that has to commit.
func (in *instance) run(c *catalog.Catalog, fn func(*txn.Tx) error) {
	in.Helper()
	if err := c.Machine().Run(context.Background(), fn); err != nil {
		in.Fatal(err)
	}
}

// table makes a table with one column and empty structures.
func (in *instance) table(c *catalog.Catalog, db, name string) {
	in.Helper()
	in.run(c, func(t *txn.Tx) error {
		anchor, err := btree.Create(t, btree.Config{}, 0)
		if err != nil {
			return err
		}
		_, err = c.CreateTable(t, &catalog.Table{
			DB: db, Name: name, NextSlot: 1,
			Columns: []catalog.Column{{Name: "id", Type: catalog.Type{Kind: catalog.KindInt64}}},
			Primary: catalog.Index{Name: "PRIMARY", Declared: true, Unique: true, Parts: []catalog.Part{{}}, Anchor: anchor},
		})
		return err
	})
}

// lookup finds a table in a transaction of its own.
func lookup(c *catalog.Catalog, db, name string) (tbl *catalog.Table, err error) {
	err = c.Machine().Run(context.Background(), func(t *txn.Tx) (err error) {
		tbl, err = c.Table(t, db, name)
		return err
	})
	return tbl, err
}

// All machines see the changes of one machine at once, in spite of their caches.
func TestMachinesAgree(t *testing.T) {
	in := open(t, farm.Config{Machines: 2})
	defer in.close()
	a, b := in.catalogs[0], in.catalogs[1]
	in.table(a, "d", "T")
	for range 2 { // the second time from the cache
		tbl, err := lookup(b, "D", "t")
		if err != nil || tbl.Name != "T" {
			t.Fatalf("%+v, %v", tbl, err)
		}
	}
	first, _ := lookup(b, "d", "t")
	if again, _ := lookup(b, "d", "t"); again != first {
		t.Error("a descriptor that has not changed was decoded twice")
	}
	in.run(a, func(tx *txn.Tx) error {
		tbl, err := a.Table(tx, "d", "t")
		if err != nil {
			return err
		}
		tbl = tbl.Clone()
		tbl.Comment = string(bytes.Repeat([]byte("long "), 1000))
		_, err = a.UpdateTable(tx, tbl)
		return err
	})
	if tbl, err := lookup(b, "d", "t"); err != nil || len(tbl.Comment) != 5000 {
		t.Errorf("after a change: %v", err)
	}
	in.run(a, func(tx *txn.Tx) error {
		tbl, err := a.Table(tx, "d", "t")
		if err != nil {
			return err
		}
		_, err = a.RenameTable(tx, tbl, "d", "u")
		return err
	})
	if _, err := lookup(b, "d", "t"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("under the old name: %v", err)
	}
	if _, err := lookup(b, "d", "u"); err != nil {
		t.Errorf("under the new name: %v", err)
	}
	in.run(b, func(tx *txn.Tx) error {
		tbl, err := b.Table(tx, "d", "u")
		if err != nil {
			return err
		}
		return b.DropTable(tx, tbl)
	})
	if _, err := lookup(a, "d", "u"); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("after the drop: %v", err)
	}
}

// A transaction that has seen a table cannot commit a change once the table has changed. The same
// is true of one that has seen that there is no table.
func TestSchemaChangeConflicts(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	in.table(c, "d", "t")
	for _, name := range []string{"t", "absent"} {
		tx := c.Machine().Begin()
		if _, err := c.Table(tx, "d", name); err != nil && !errors.Is(err, catalog.ErrNotFound) {
			t.Fatal(err)
		}
		if _, _, err := tx.Alloc(8, 0); err != nil {
			t.Fatal(err)
		}
		if name == "absent" {
			in.table(c, "d", name)
		} else {
			in.run(c, func(tx *txn.Tx) error {
				tbl, err := c.Table(tx, "d", name)
				if err == nil {
					_, err = c.UpdateTable(tx, tbl)
				}
				return err
			})
		}
		if err := tx.Commit(context.Background()); !errors.Is(err, outcome.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
		tx.Abort()
	}
	if err := c.Machine().Run(context.Background(), func(tx *txn.Tx) error {
		_, err := c.CreateTable(tx, &catalog.Table{DB: "d", Name: "T"})
		return err
	}); !errors.Is(err, catalog.ErrExists) {
		t.Errorf("a second table of the name: %v", err)
	}
}

func TestForeignKeysAtBothEnds(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	in.table(c, "d", "child")
	key := catalog.ForeignKey{Name: "f", ParentDB: "d", ParentTable: "parent", Columns: []string{"id"}, ParentColumns: []string{"id"}}
	in.run(c, func(tx *txn.Tx) error {
		child, err := c.Table(tx, "d", "child")
		if err != nil {
			return err
		}
		return c.AddForeignKey(tx, child, key)
	})
	// The parent comes later, and moves.
	in.table(c, "d", "parent")
	for _, step := range []struct{ parent, to string }{{"parent", "mother"}, {"mother", "parent"}} {
		in.run(c, func(tx *txn.Tx) error {
			parent, err := c.Table(tx, "d", step.parent)
			if err != nil {
				return err
			}
			if len(parent.ReferencedBy) != 1 {
				t.Errorf("%s: %+v", step.parent, parent.ReferencedBy)
			}
			_, err = c.RenameTable(tx, parent, "d", step.to)
			return err
		})
		if child, err := lookup(c, "d", "child"); err != nil || child.ForeignKeys[0].ParentTable != step.to {
			t.Errorf("after the move to %s: %+v, %v", step.to, child, err)
		}
	}
	if err := c.Check(context.Background(), in.cluster.Root(), catalog.Visitor{}); err != nil {
		t.Error(err)
	}
	in.run(c, func(tx *txn.Tx) error {
		child, err := c.Table(tx, "d", "child")
		if err != nil {
			return err
		}
		return c.DropTable(tx, child)
	})
	if parent, err := lookup(c, "d", "parent"); err != nil || len(parent.ReferencedBy) != 0 {
		t.Errorf("after the child was dropped: %+v, %v", parent, err)
	}
}

// Sequences never give out a number twice, and a clean close leaves no gap.
func TestSequences(t *testing.T) {
	cfg := farm.Config{Machines: 2, Volatile: farm.NewVolatile()}
	in := open(t, cfg)
	var p region.Ptr
	in.run(in.catalogs[0], func(tx *txn.Tx) (err error) {
		p, err = catalog.NewNumber(tx, 1)
		return err
	})
	ctx := context.Background()
	const each, users = 300, 4
	seen := make(map[uint64]bool)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range users {
		s := in.catalogs[i%2].Sequences()
		wg.Go(func() {
			for range each {
				n, err := s.Next(ctx, p)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[n] {
					t.Errorf("%d twice", n)
				}
				seen[n] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	s := in.catalogs[0].Sequences()
	if err := s.Raise(ctx, p, 1_000_000); err != nil {
		t.Fatal(err)
	}
	for want := uint64(1_000_001); want < 1_000_004; want++ {
		if peek, err := s.Peek(p); err != nil || peek != want {
			t.Errorf("peek: %d, %v", peek, err)
		}
		if n, err := s.Next(ctx, p); err != nil || n != want {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
	if err := s.Raise(ctx, p, 5); err != nil { // below: changes nothing
		t.Fatal(err)
	}
	in.close()

	in = open(t, cfg)
	defer in.close()
	s = in.catalogs[0].Sequences()
	if n, err := s.Next(ctx, p); err != nil || n != 1_000_004 {
		t.Errorf("after a clean close: %d, %v", n, err)
	}
	if err := s.Set(ctx, p, 10); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Next(ctx, p); err != nil || n != 10 {
		t.Errorf("after it was set: %d, %v", n, err)
	}
	if err := s.Set(ctx, p, ^uint64(0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(ctx, p); !errors.Is(err, catalog.ErrExhausted) {
		t.Errorf("at its end: %v", err)
	}
	in.run(in.catalogs[0], func(tx *txn.Tx) error { return in.catalogs[0].FreeNumber(tx, p) })
	if _, err := s.Next(ctx, p); !errors.Is(err, outcome.ErrConflict) || !errors.Is(err, catalog.ErrGone) {
		t.Errorf("of a dropped table: %v", err)
	}
}

func TestChains(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	for _, n := range []int{0, 1, 1000, 65515, 65516, 65517, 200000} {
		want := bytes.Repeat([]byte{'a', 'b', 'c'}, n/3+1)[:n]
		var ref []byte
		in.run(c, func(tx *txn.Tx) (err error) {
			ref, err = catalog.PutChain(tx, want, 0)
			return err
		})
		in.run(c, func(tx *txn.Tx) error {
			got, err := catalog.GetChain(tx, ref)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes: %d, %v", n, len(got), err)
			}
			return catalog.FreeChain(tx, ref)
		})
		for name, bad := range map[string][]byte{"short": ref[:len(ref)-1], "longer than it is": append([]byte{ref[0] + 1}, ref[1:]...)} {
			tx := c.Machine().Begin()
			if _, err := catalog.GetChain(tx, bad); err == nil {
				t.Errorf("%d bytes: a reference that is %s was followed", n, name)
			}
			tx.Abort()
		}
	}
}

func TestSettings(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	c := in.catalogs[0]
	for _, want := range [][]byte{[]byte("a"), bytes.Repeat([]byte("b"), 5000), []byte("c")} {
		in.run(c, func(tx *txn.Tx) error { return c.PutSetting(tx, "s", want) })
		in.run(c, func(tx *txn.Tx) error {
			got, err := c.Setting(tx, "s")
			if !bytes.Equal(got, want) {
				t.Errorf("%d bytes, want %d", len(got), len(want))
			}
			return err
		})
	}
	err := c.Machine().Run(context.Background(), func(tx *txn.Tx) error {
		return c.PutSetting(tx, "s", make([]byte, region.MaxPayload))
	})
	if !errors.Is(err, catalog.ErrTooLarge) {
		t.Errorf("a setting larger than an object: %v", err)
	}
}
