package simtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Clients create, change and drop tables through the catalog. In the history each name is one
// object: its value is in the comment of the table with this name or, while there is none, in the
// name's tombstone. So using an outdated cached descriptor shows as a stale read. Rows get their
// keys from the table's sequence, contain the table's id, and are in all of its indexes.

const tableDB = "d"

func tableName(i int) string { return "t" + strconv.Itoa(i) }

// makeTables creates the object that points to the catalog, and the tombstones.
func (s *store) makeTables(n *node, tables int) error {
	s.tableTombs = make([]region.Ptr, tables)
	return n.m.Run(ctx, func(t *txn.Tx) (err error) {
		if s.catalog, _, err = t.Alloc(region.PtrBytes, 0); err != nil {
			return err
		}
		for i := range s.tableTombs {
			if s.tableTombs[i], _, err = t.Alloc(region.PtrBytes, 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// openCatalog opens the catalog at the machine, as a process does before it serves.
func (r *run) openCatalog(n *node) error {
	c, err := catalog.Open(ctx, n.m, r.store.catalog, catalog.Config{Hashes: n.server, Lives: r.cluster.Lives(n.id)})
	if err != nil {
		return err
	}
	n.catalog = c
	c.LivesChanged() // lives may have changed before the catalog was open
	return nil
}

// reconfigured is called when a machine has led a reconfiguration.
func (r *run) reconfigured(machine int) {
	n := r.nodes[machine]
	if n != nil && n.catalog != nil {
		n.catalog.LivesChanged()
	}
	if n != nil && n.engine != nil {
		n.engine.Catalog().LivesChanged()
	}
}

// definition returns the table with the i'th name, or nil if there is none, and records the value
// that the name has.
func (c *client) definition(i int) (*catalog.Table, error) {
	tbl, err := c.catalog.Table(c.t, tableDB, tableName(i))
	switch {
	case errors.Is(err, catalog.ErrAltering):
		return nil, errUser
	case errors.Is(err, catalog.ErrNotFound):
		return nil, c.onPayload(objectOf(inCatalog, i), c.store.tableTombs[i], false)
	case err != nil:
		return nil, err
	}
	return tbl, c.sawTable(i, tbl)
}

// sawTable records the value of a name.
func (c *client) sawTable(i int, tbl *catalog.Table) error {
	v, err := strconv.ParseUint(tbl.Comment, 10, 64)
	if err != nil {
		return fmt.Errorf("simtest: comment of table %s: %w", tbl.Name, err)
	}
	c.h.Read(objectOf(inCatalog, i), history.Value(v))
	return nil
}

// comment draws a new value for a name, whose table is about to exist, and returns it as the
// table's comment.
func (c *client) comment(i int) string {
	v := c.rec.Value()
	c.h.Write(objectOf(inCatalog, i), v)
	return strconv.FormatUint(uint64(v), 10)
}

// onTable reads a table and, if it exists, some of its rows, or changes one.
func (c *client) onTable(i int, write bool) error {
	tbl, err := c.definition(i)
	switch {
	case err != nil || tbl == nil:
		return err
	case !write:
		return c.lookAtRows(tbl)
	case c.rng.IntN(3) == 0:
		return c.dropRow(tbl)
	}
	return c.addRow(tbl)
}

const rowBytes = 16 // a table's id and the number

func numberKey(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// addRow adds a row with the next number of the table's sequence, which must be unused.
func (c *client) addRow(tbl *catalog.Table) error {
	number, err := c.catalog.Sequences().Next(ctx, tbl.Sequence)
	if err != nil {
		return err
	}
	row, b, err := c.t.Alloc(rowBytes, 0)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, tbl.ID)
	binary.LittleEndian.PutUint64(b[8:], number)
	for _, s := range tbl.Storage() {
		if err := c.addEntry(c.t, s, numberKey(number), row); err != nil {
			return fmt.Errorf("simtest: number %d of table %s: %w", number, tbl.Name, err)
		}
	}
	return nil
}

// dropRow draws a number, and deletes the first row whose own number is not smaller.
func (c *client) dropRow(tbl *catalog.Table) error {
	from := numberKey(uint64(c.rng.IntN(2 * rowsLookedAt)))
	key, row, found, err := c.catalog.Tree(tbl.Primary.Anchor).Scan(c.t, from, nil, false).Next()
	if err != nil || !found {
		return err
	}
	for _, s := range tbl.Storage() {
		deleted, err := c.dropEntry(s, key)
		if err != nil {
			return err
		}
		if !deleted {
			return fmt.Errorf("simtest: row %x of table %s is not in all indexes", key, tbl.Name)
		}
	}
	return c.t.Free(row)
}

// addEntry adds an entry to an index, from a key to a row.
func (c *client) addEntry(t *txn.Tx, s catalog.Storage, key []byte, row region.Ptr) error {
	if s.Access == catalog.AccessHash {
		return c.catalog.Hash(s.Anchor).Insert(t, key, row.Append(nil))
	}
	return c.catalog.Tree(s.Anchor).Insert(t, key, row)
}

func (c *client) dropEntry(s catalog.Storage, key []byte) (deleted bool, err error) {
	if s.Access == catalog.AccessHash {
		return c.catalog.Hash(s.Anchor).Delete(c.t, key)
	}
	return c.catalog.Tree(s.Anchor).Delete(c.t, key)
}

// entry returns the row that a key of an index points to.
func (c *client) entry(x catalog.Index, key []byte) (row region.Ptr, found bool, err error) {
	if x.Access != catalog.AccessHash {
		return c.catalog.Tree(x.Anchor).Get(c.t, key)
	}
	b, found, err := c.catalog.Hash(x.Anchor).Get(c.t, key)
	if err == nil && found {
		row, err = region.DecodePtr(b)
	}
	return row, found, err
}

// rowsLookedAt is how many rows of a table a transaction looks at, at most.
const rowsLookedAt = 10

// lookAtRows reads the table's first rows, and checks that all of its indexes have them.
func (c *client) lookAtRows(tbl *catalog.Table) error {
	cursor := c.catalog.Tree(tbl.Primary.Anchor).Scan(c.t, nil, nil, false)
	for range rowsLookedAt {
		key, row, found, err := cursor.Next()
		if err != nil || !found {
			return err
		}
		if err := c.lookAtRow(tbl, key, row); err != nil {
			return err
		}
	}
	return nil
}

// lookAtRow reads a row of a table by its address, and checks that all indexes have it.
func (c *client) lookAtRow(tbl *catalog.Table, key []byte, row region.Ptr) error {
	b, err := c.t.Read(row)
	if err != nil {
		return err
	}
	id, number := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if id != tbl.ID || number != binary.BigEndian.Uint64(key) {
		return fmt.Errorf("simtest: table %s, %x, has under %x row %d of table %x", tbl.Name, tbl.ID, key, number, id)
	}
	for _, x := range tbl.Indexes {
		p, found, err := c.entry(x, key)
		if err != nil {
			return err
		}
		if !found || p != row {
			return fmt.Errorf("simtest: row %x of table %s is at %v, and by index %s at %v, %v", key, tbl.Name, row, x.Name, p, found)
		}
	}
	return nil
}

// settleMax bounds the time, without clients, until all dropped objects have been freed and
// no table is being altered.
const settleMax = 5 * time.Second

// catalogAt returns a machine's catalog, and opens it if the machine has none open yet.
func (r *run) catalogAt(n *node) (*catalog.Catalog, error) {
	if n.catalog == nil {
		if err := r.openCatalog(n); err != nil {
			return nil, err
		}
	}
	return n.catalog, nil
}

// workloadAt returns a machine's catalog of the workload.
func (r *run) workloadAt(n *node) (*catalog.Catalog, error) {
	e, err := r.engineAt(n)
	if err != nil {
		return nil, err
	}
	return e.Catalog(), nil
}

// settle waits until all dropped objects have been freed and no table is being altered, and stops
// the sweepers. A machine may be evicted meanwhile for a link that was broken before; settle then
// waits for its next life. root is the object that points to the catalog; catalogAt returns a machine's catalog.
func (r *run) settle(root region.Ptr, catalogAt func(*node) (*catalog.Catalog, error)) error {
	left := "not whole"
	for end := r.world.Now() + settleMax; r.world.Now() < end; r.outside.Sleep(time.Millisecond) {
		if !r.cluster.Whole() {
			continue
		}
		var resume []func()
		var err error
		if left, resume, err = r.leftOfTables(root, catalogAt); err == nil && left == "" {
			return nil
		}
		if err != nil && r.cluster.Whole() {
			return err
		}
		for _, f := range resume {
			f()
		}
	}
	return fmt.Errorf("%v after all have ended: %s", settleMax, left)
}

// leftOfTables stops the sweepers. It returns a text about an object that they have not freed yet,
// or about a table that is being altered; an empty text if there is none. The functions in resume
// start the sweepers again.
func (r *run) leftOfTables(root region.Ptr, catalogAt func(*node) (*catalog.Catalog, error)) (left string, resume []func(), err error) {
	var first *catalog.Catalog
	for _, n := range r.nodes {
		returned := n.process.Do(func() {
			var c *catalog.Catalog
			if c, err = catalogAt(n); err == nil {
				again := c.PauseSweeping()
				resume = append(resume, func() { n.process.Do(again) })
			}
			if first == nil {
				first = c
			}
		})
		if !returned {
			err = errDied
		}
		if err != nil {
			return "", resume, err
		}
	}
	if !r.nodes[0].process.Do(func() {
		err = first.Check(ctx, root, catalog.Visitor{
			Dropped: func(p region.Ptr) error {
				left = fmt.Sprintf("%v, which was dropped, has not been freed", p)
				return nil
			},
			Table: func(_ *txn.Tx, tbl *catalog.Table) error {
				if tbl.Alteration.Owner != 0 {
					left = fmt.Sprintf("table %s is being altered, by %x", tbl.Name, tbl.Alteration.Owner)
				}
				return nil
			},
		})
	}) {
		err = errDied
	}
	return left, resume, err
}

// reachableTables returns the objects of the catalog and of its tables, and compares each table's
// indexes. It is called only after settle.
func (s *store) reachableTables(n *node) (ptrs []region.Ptr, err error) {
	add := func(p region.Ptr) error {
		ptrs = append(ptrs, p)
		return nil
	}
	err = n.catalog.Check(ctx, s.catalog, catalog.Visitor{Object: add, Table: func(_ *txn.Tx, tbl *catalog.Table) error {
		rows := make(map[string]region.Ptr)
		all := tbl.Storage()
		indexes, primary := all[:len(all)-1], all[len(all)-1]
		err := n.catalog.Walk(ctx, primary, add, func(key []byte, row region.Ptr) error {
			rows[string(key)] = row
			return add(row)
		})
		for _, x := range indexes {
			if err != nil {
				return err
			}
			err = sameEntries(n, tbl, x, add, rows)
		}
		return err
	}})
	return append(append(ptrs, s.catalog), s.tableTombs...), err
}

// sameEntries checks that an index has the entries of the primary one.
func sameEntries(n *node, tbl *catalog.Table, x catalog.Storage, add func(region.Ptr) error, rows map[string]region.Ptr) error {
	count := 0
	err := n.catalog.Walk(ctx, x, add, func(key []byte, row region.Ptr) error {
		if count++; rows[string(key)] != row {
			return fmt.Errorf("table %s: %x leads to %v in an index, to %v in the primary one", tbl.Name, key, row, rows[string(key)])
		}
		return nil
	})
	if err == nil && count != len(rows) {
		err = fmt.Errorf("table %s has %d rows, an index of it %d", tbl.Name, len(rows), count)
	}
	return err
}
