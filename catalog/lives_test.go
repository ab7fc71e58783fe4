package catalog_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/txn"
)

// testLives are the lives of a test's machines. The first machine that is not dead leads.
type testLives struct {
	mu   sync.Mutex
	dead []bool
}

func newTestLives(n int) *testLives { return &testLives{dead: make([]bool, n)} }

func (l *testLives) of(i int) catalog.Lives { return testLife{l, i} }

func (l *testLives) die(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead[i] = true
}

type testLife struct {
	*testLives
	i int
}

func (l testLife) Own() uint32 { return 100 + uint32(l.i) }

func (l testLife) Has(life uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := int(life) - 100
	return i >= 0 && i < len(l.dead) && !l.dead[i]
}

func (l testLife) Leads() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Index(l.dead, false) == l.i
}

// alter begins an alteration of table d.t.
func (in *instance) alter(c *catalog.Catalog) (owner uint64) {
	in.run(c, func(t *txn.Tx) error {
		tbl, err := c.Table(t, "d", "t")
		if err != nil {
			return err
		}
		if tbl, err = c.BeginAlteration(t, tbl, nil); err == nil {
			owner = tbl.Alteration.Owner
		}
		return err
	})
	return owner
}

// drop drops table d.t.
func (in *instance) drop(c *catalog.Catalog) {
	in.run(c, func(t *txn.Tx) error {
		tbl, err := c.Table(t, "d", "t")
		if err != nil {
			return err
		}
		return c.DropTable(t, tbl)
	})
}

// isAltering reports whether the table is being altered.
func (in *instance) isAltering(c *catalog.Catalog) (is bool) {
	in.run(c, func(t *txn.Tx) error {
		_, err := c.Table(t, "d", "t")
		if is = errors.Is(err, catalog.ErrAltering); is {
			return nil
		}
		return err
	})
	return is
}

// await waits until something holds.
func (in *instance) await(what string, holds func() bool) {
	in.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			in.Fatalf("waited too long for %s", what)
		}
	}
}

// An alteration under way ends with the life of its machine, and not before: the leader then
// removes its mark. This is also true of a machine that becomes the leader only then.
func TestAlterationOfADeadLife(t *testing.T) {
	for _, c := range []struct {
		name        string
		owner, heir int
	}{{"the leader lives", 1, 0}, {"it was the leader's own", 0, 1}} {
		t.Run(c.name, func(t *testing.T) {
			in := open(t, farm.Config{Machines: 3})
			defer in.close()
			in.table(in.catalogs[0], "d", "t")
			in.alter(in.catalogs[c.owner])
			for _, cat := range in.catalogs {
				cat.LivesChanged()
			}
			time.Sleep(20 * time.Millisecond) // for what must not happen
			if !in.isAltering(in.catalogs[2]) {
				t.Fatal("the alteration of a machine that lives was ended")
			}
			in.lives.die(c.owner)
			in.catalogs[c.heir].LivesChanged()
			in.await("the table to be free", func() bool { return !in.isAltering(in.catalogs[2]) })
		})
	}
}

// A machine frees what it drops. If it dies before, the leader frees it.
func TestDropsOfADeadLife(t *testing.T) {
	in := open(t, farm.Config{Machines: 3})
	defer in.close()
	list := func() (n int) {
		in.run(in.catalogs[2], func(t *txn.Tx) (err error) {
			n, err = in.catalogs[2].Dropped(t)
			return err
		})
		return n
	}
	in.table(in.catalogs[0], "d", "t")
	resume := in.catalogs[1].PauseSweeping()
	in.drop(in.catalogs[1])
	in.catalogs[0].LivesChanged()
	if err := in.catalogs[0].Sweep(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := list(); n != 1 {
		t.Fatalf("%d entries are on the list: the leader has freed what a machine that lives has dropped", n)
	}
	resume()
	in.await("the machine to free what it has dropped", func() bool { return list() == 0 })
	in.table(in.catalogs[0], "d", "t")
	in.catalogs[1].PauseSweeping()
	in.drop(in.catalogs[1])
	in.lives.die(1)
	in.catalogs[0].LivesChanged()
	in.await("the leader to free what was left", func() bool { return list() == 0 })
}

// If a machine cannot end its alteration, because the statement is cancelled or machines do not
// answer, it ends the alteration later.
func TestAbandonedAlteration(t *testing.T) {
	in := open(t, farm.Config{})
	defer in.close()
	in.table(in.catalogs[0], "d", "t")
	c := in.catalogs[0]
	owner := in.alter(c)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.AbandonAlteration(cancelled, "d", "t", owner); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	in.await("the table to be free", func() bool { return !in.isAltering(c) })
	if err := c.AbandonAlteration(context.Background(), "d", "t", in.alter(c)); err != nil || in.isAltering(c) {
		t.Errorf("%v; being altered still: %v", err, in.isAltering(c))
	}
}
