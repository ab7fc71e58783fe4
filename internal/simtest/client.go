package simtest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/wait"
)

// A client runs random transactions at one machine, and records what it sees.
type client struct {
	*run
	*node
	label string
	// work runs one transaction.
	work func(*client) error
	t    *txn.Tx
	h    *history.Recording
	// session is the session of a workload's client.
	session Session
	// alone is set if no other client runs, so that lock-free reads must be answered.
	alone bool
	// done counts the transactions that have committed.
	done int
}

// thinkMax bounds a client's pause between two transactions.
const thinkMax = 100 * time.Microsecond

// errUser is the error of transactions that their user gives up.
var errUser = errors.New("simtest: given up")

// loop runs the client's work until the test or the machine's life ends. An unexpected error fails
// the run.
func (c *client) loop() {
	for !c.stopping {
		err := c.work(c)
		if errors.Is(err, outcome.ErrEvicted) || errors.Is(err, outcome.ErrClosed) {
			return // the machine's life is over
		}
		if err != nil && !c.process.Dead() {
			c.fail(fmt.Errorf("%s: %w", c.label, err))
			return
		}
		c.think(c)
	}
}

// pause is how most clients pause between transactions.
func (c *client) pause() { c.process.Sleep(time.Duration(c.rng.Int64N(int64(thinkMax)))) }

// readOwn reads an object that this machine has created and normally is the primary of. Such a read
// involves no other machine. So it would show a machine that continues after the others have
// evicted it.
func (c *client) readOwn() error {
	all, n := len(c.store.objects), len(c.nodes)
	own := (all - c.id%all + n - 1) / n // the number of objects whose index modulo n is c.id
	return c.readObject((c.id + n*c.rng.IntN(max(own, 1))) % all)
}

// anything runs a random transaction.
func (c *client) anything() error {
	switch c.rng.IntN(10) {
	case 0:
		return c.readObject(c.pick(len(c.store.objects)))
	case 1:
		return c.lookUpHash()
	case 2:
		return c.lookUpTree(c.pick(c.options.Keys))
	}
	return c.transact(c.body)
}

// transact runs fn in a transaction, commits it, and records it.
func (c *client) transact(fn func() error) error {
	c.h = c.rec.Begin(c.label)
	defer c.untold(c.h)
	c.t = c.m.Begin()
	c.t.MayBeLarge()
	err := fn()
	if err == nil {
		err = c.t.Commit(ctx)
	} else if moved := c.t.Validate(); moved != nil && !errors.Is(moved, txn.ErrDone) {
		err = moved
	} else if errors.Is(err, errUser) {
		// Validate has shown that the reads were consistent, and the client gave up because of them:
		// the history must explain them.
		c.h.Shown()
	}
	// Not deferred: a routine that panics ends all others, and these must not wait for the lock of
	// a worker that it holds.
	c.t.Abort()
	return c.end(err)
}

// untold records an unknown outcome, unless another outcome has been recorded. It counts the
// transaction if its client has died.
func (c *client) untold(h *history.Recording) {
	if h.End(history.Unknown) && c.process.Dead() {
		c.orphans++
	}
}

// end records how a transaction ended; err is the reason why it did not commit. An outcome that the client
// does not learn is left to untold. end returns an err that is not expected.
func (c *client) end(err error) error {
	switch {
	case c.process.Dead():
		return nil // the client has died without an outcome
	case err == nil:
		c.h.End(history.Committed)
		c.commits[c.id]++
		c.done++
	case errors.Is(err, outcome.ErrInDoubt):
		return nil
	case hasNoEffect(err):
		c.h.End(history.Aborted)
	default:
		return err
	}
	return nil
}

// hasNoEffect reports whether err is an expected error of a transaction that has failed
// without being in doubt.
func hasNoEffect(err error) bool {
	return slices.ContainsFunc([]error{
		outcome.ErrConflict, errUser, region.ErrFull, outcome.ErrTooLarge, nvram.ErrNoSpace, wait.ErrUnavailable,
	}, func(may error) bool { return errors.Is(err, may) })
}

// recordRead records that b was read as the value of o.
func (c *client) recordRead(o history.Object, b []byte) error {
	v, err := valueOf(b)
	if err == nil {
		c.h.Read(o, v)
	}
	return err
}

// sawHalves records that halves of object i were read, from b.
func (c *client) sawHalves(i int, which []int, b []byte) error {
	for _, half := range which {
		if err := c.recordRead(halfOf(i, half), halves(b)[half]); err != nil {
			return err
		}
	}
	return nil
}

// readObject reads object i, without a transaction.
func (c *client) readObject(i int) error {
	return c.lockFree(func() error {
		b, err := c.read(c.store.objects[i])
		if err != nil {
			return err
		}
		return c.sawHalves(i, both, b)
	})
}

// read reads an object without a transaction.
func (c *client) read(p region.Ptr) ([]byte, error) {
	b := make([]byte, p.Capacity())
	_, err := c.m.Read(p, b)
	return b, err
}

// pick draws a number below n; low numbers are more likely.
func (c *client) pick(n int) int { return c.rng.IntN(1 + c.rng.IntN(n)) }

// body runs a random transaction.
func (c *client) body() error {
	readOnly := c.rng.IntN(4) == 0
	for range 1 + c.rng.IntN(6) {
		mark, recorded := c.t.Mark(), c.h.Mark()
		if err := c.operation(!readOnly && c.rng.IntN(2) == 0); err != nil {
			return err
		}
		switch c.rng.IntN(20) {
		case 0:
			c.t.Rollback(mark)
			c.h.Undo(recorded)
		case 1:
			if c.rng.IntN(4) == 0 {
				return errUser
			}
		case 2:
			c.process.Sleep(time.Duration(c.rng.Int64N(int64(thinkMax))))
		}
	}
	return nil
}

// operation runs a random operation of the transaction; if write is not set, it only reads.
func (c *client) operation(write bool) error {
	if c.catalog != nil && c.rng.IntN(6) == 0 {
		return c.onTable(c.pick(c.options.Tables), write)
	}
	switch c.rng.IntN(7) {
	case 0, 1:
		return c.onObject(c.pick(c.options.Objects), parts[c.rng.IntN(len(parts))], write)
	case 2, 3:
		return c.onHash(c.pick(c.options.Keys), write)
	case 4:
		if !write {
			from := c.pick(c.options.Keys)
			return c.scan(from, min(from+c.rng.IntN(8), c.options.Keys), c.rng.IntN(2) == 0)
		}
	}
	return c.onTree(c.pick(c.options.Keys), write)
}

// parts are the sets of halves that an operation may access.
var parts = [...][]int{{0}, {1}, {0, 1}}

var both = parts[2]

// onObject reads, or reads and writes, halves of object i. A read of one half does not depend
// on the other; a write of one half depends on both.
func (c *client) onObject(i int, which []int, write bool) error {
	var b []byte
	var err error
	p, read := c.store.objects[i], which
	switch {
	case write:
		b, err = c.t.Write(p)
		read = both
	case len(which) == 1:
		b, err = c.readHalf(p, which[0])
	default:
		b, err = c.t.Read(p)
	}
	if err != nil {
		return err
	}
	if err := c.sawHalves(i, read, b); err != nil || !write {
		return err
	}
	for _, half := range which {
		c.rewrite(halfOf(i, half), halves(b)[half])
	}
	return nil
}

// readHalf reads p so that the transaction depends only on one half of it.
func (c *client) readHalf(p region.Ptr, half int) ([]byte, error) {
	return c.t.ReadPart(p, halfPart(half))
}

// A halfPart is a half of a payload.
type halfPart int

// Same implements txn.Part.
func (h halfPart) Same(was, now []byte) bool { return bytes.Equal(halves(was)[h], halves(now)[h]) }

// onPayload reads, or reads and writes, the history's object o, which is in the object at p.
// Its value is in both halves.
func (c *client) onPayload(o history.Object, p region.Ptr, write bool) error {
	var b []byte
	var err error
	switch {
	case write:
		b, err = c.t.Write(p)
	case c.rng.IntN(2) == 0:
		b, err = c.readHalf(p, c.rng.IntN(2))
	default:
		b, err = c.t.Read(p)
	}
	if err != nil {
		return err
	}
	if err := c.recordRead(o, b); err != nil {
		return err
	}
	if write {
		c.rewrite(o, b)
	}
	return nil
}

// rewrite puts a new value of o into b, and records it as written.
func (c *client) rewrite(o history.Object, b []byte) {
	v := c.rec.Value()
	fill(b, v)
	c.h.Write(o, v)
}

// remove puts a new value into b, the tombstone of o, and records that o is deleted.
func (c *client) remove(o history.Object, b []byte) {
	v := c.rec.Value()
	fill(b, v)
	c.h.Delete(o, v)
}

// newValue returns the bytes of a new value of o.
func (c *client) newValue(o history.Object) []byte {
	b := make([]byte, 8*(1+c.rng.IntN(8)))
	c.rewrite(o, b)
	return b
}

// bury writes the tombstone of a key that the transaction has deleted.
func (c *client) bury(o history.Object, tomb region.Ptr) error {
	b, err := c.t.Write(tomb)
	if err == nil {
		c.remove(o, b)
	}
	return err
}

// tableFor returns the handle by which transactions look up a key. For half of the keys, lookups
// ask the key's owner if one READ was not enough.
func (c *client) tableFor(i int) *hash.Table {
	if i%2 == 1 {
		return c.twoSided
	}
	return c.table
}

// onHash reads a key of the hash table, or its tombstone if the key is absent. If write is set, it also
// inserts, replaces or deletes the key.
func (c *client) onHash(i int, write bool) error {
	o, key, tomb, table := objectOf(inHash, i), keyOf(i), c.store.hashTombs[i], c.tableFor(i)
	b, found, err := table.Get(c.t, key)
	if err != nil {
		return err
	}
	if !found {
		if b, err = c.t.Read(tomb); err != nil {
			return err
		}
	}
	if err := c.recordRead(o, b); err != nil {
		return err
	}
	switch {
	case !write:
		return nil
	case !found:
		return table.Insert(c.t, key, c.newValue(o))
	case c.rng.IntN(2) == 0:
		return table.Put(c.t, key, c.newValue(o))
	}
	deleted, err := table.Delete(c.t, key)
	if err == nil && !deleted {
		err = fmt.Errorf("simtest: %s was there and could not be deleted", key)
	}
	if err != nil {
		return err
	}
	return c.bury(o, tomb)
}

// onTree reads a key of the B-tree and its row, or the key's tombstone if the key is absent. If write is set, it
// also inserts, changes or deletes the key and the row.
func (c *client) onTree(i int, write bool) error {
	o, key, tomb := objectOf(inTree, i), keyOf(i), c.store.treeTombs[i]
	row, found, err := c.tree.Get(c.t, key)
	switch {
	case err != nil:
		return err
	case !found && !write:
		return c.onPayload(o, tomb, false)
	case !found:
		if err := c.onPayload(o, tomb, false); err != nil {
			return err
		}
		row, err := c.newRow(o)
		if err != nil {
			return err
		}
		return c.tree.Insert(c.t, key, row)
	case !write || c.rng.IntN(3) == 0:
		return c.onPayload(o, row, write)
	}
	if err := c.onPayload(o, row, false); err != nil {
		return err
	}
	if err := c.t.Free(row); err != nil {
		return err
	}
	if c.rng.IntN(2) == 0 {
		row, err := c.newRow(o)
		if err != nil {
			return err
		}
		return c.tree.Put(c.t, key, row)
	}
	deleted, err := c.tree.Delete(c.t, key)
	if err == nil && !deleted {
		err = fmt.Errorf("simtest: %s was there and could not be deleted", key)
	}
	if err != nil {
		return err
	}
	return c.bury(o, tomb)
}

// newRow makes a row with a new value, in half of the cases near an object of the store.
func (c *client) newRow(o history.Object) (region.Ptr, error) {
	hint := region.Addr(0)
	if c.rng.IntN(2) == 0 {
		hint = c.store.objects[c.rng.IntN(len(c.store.objects))].Addr
	}
	p, b, err := c.t.Alloc(8+c.rng.IntN(400), hint)
	if err != nil {
		return p, err
	}
	c.rewrite(o, b)
	return p, nil
}

// scan scans the B-tree's keys with the numbers from..to-1. It reads the rows of the keys that the
// B-tree returns, and the tombstones of the other keys, which are absent.
func (c *client) scan(from, to int, reverse bool) error {
	present := make(map[string]region.Ptr)
	cursor := c.tree.Scan(c.t, keyOf(from), keyOf(to), reverse)
	if from%2 == 0 {
		cursor.ReadAhead(1 + to%8)
	}
	for {
		key, row, ok, err := cursor.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		present[string(key)] = row
	}
	for i := from; i < to; i++ {
		p, ok := present[string(keyOf(i))]
		if !ok {
			p = c.store.treeTombs[i]
		}
		if err := c.onPayload(objectOf(inTree, i), p, false); err != nil {
			return err
		}
	}
	return nil
}

// readAll reads everything there is in one transaction.
func (c *client) readAll() error {
	const attempts = 100
	for range attempts {
		before := c.commits[c.id]
		err := c.transact(func() error {
			for i := range c.store.objects {
				if err := c.onObject(i, both, false); err != nil {
					return err
				}
			}
			for i := range c.options.Keys {
				if err := c.onHash(i, false); err != nil {
					return err
				}
			}
			for i := range c.options.Tables {
				if _, err := c.definition(i); err != nil {
					return err
				}
			}
			return c.scan(0, c.options.Keys, false)
		})
		if err != nil || c.commits[c.id] > before {
			return err
		}
	}
	return errors.New("simtest: nobody else is there, and reading everything conflicts")
}
