package simtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Errands are additional work of some clients, on a hash table that grows: blind puts, inserts and
// deletions, operations in transactions of their own (hash.PutNow), and rows whose sizes change
// over time, so that blocks change their class. Each machine has one client for them, with its own
// keys. So the client knows the possible values of each key: the last one that it wrote, and the
// values of transactions whose outcome it did not learn.

// errandKeys is the number of keys that a client uses over time. Keys with odd numbers point to rows.
const errandKeys = 200

// A register holds the possible values of a key; 0 means that the key is absent.
type register struct {
	owner  *client // the client that has used it last: one of a later life of the machine replaces another
	values []uint64
	// pending are the values of transactions that may still commit, or have committed.
	pending []uint64
}

// mayHold reports whether the key may hold v.
func (g *register) mayHold(v uint64) bool {
	return slices.Contains(g.values, v) || slices.Contains(g.pending, v)
}

// sure returns the value of the key if only one value is possible.
func (g *register) sure() (v uint64, ok bool) {
	if len(g.values) == 1 && len(g.pending) == 0 {
		return g.values[0], true
	}
	return 0, false
}

// write calls do, which writes v in a transaction, and records the outcome. It returns an error only if the
// machine's life is over, or if do failed for another reason than faults and conflicts.
func (c *client) write(g *register, v uint64, do func() error) error {
	g.owner = c
	g.pending = append(g.pending, v)
	err := do()
	switch {
	case g.owner != c || c.process.Dead() || errors.Is(err, errUnknown):
		return nil // the value stays pending
	case isOver(err): // the life ends, and the client with it
		return err
	case err == nil:
		g.values = []uint64{v}
		c.result.Errands++
	}
	g.pending = slices.DeleteFunc(g.pending, func(x uint64) bool { return x == v })
	if errors.Is(err, errUser) {
		return nil
	}
	return err
}

// errUnknown is the error of a transaction whose outcome is not known.
var errUnknown = errors.New("simtest: in doubt")

// recordRead records the value that was read for a key, and returns an error if the key cannot
// have it.
func (g *register) recordRead(key []byte, v uint64) error {
	if !g.mayHold(v) {
		return fmt.Errorf("simtest: errand: %q is %d, may be %d or, pending, %d", key, v, g.values, g.pending)
	}
	g.values = []uint64{v}
	// A pending 0 stays: absence does not show which deletion caused it.
	g.pending = slices.DeleteFunc(g.pending, func(x uint64) bool { return x == v && v != 0 })
	return nil
}

// errand runs one random errand.
func (c *client) errand() error {
	if c.errands < errandKeys {
		c.errands++
	}
	i := c.pick(c.errands)
	name := fmt.Sprintf("%02d%05d", c.id, i)
	g := c.store.registers[name]
	if g == nil {
		g = &register{values: []uint64{0}}
		c.store.registers[name] = g
	}
	key := []byte(name)
	isRow := i%2 == 1 // see errandKeys
	was, sure := g.sure()
	switch {
	case !sure || c.rng.IntN(4) == 0:
		return c.look(g, key)
	case isRow && was == 0:
		return c.insertRow(g, key)
	case isRow:
		return c.deleteRow(g, key, was)
	}
	return c.blind(g, key, was)
}

// try runs fn in a transaction. It returns nil if the transaction committed, errUser if it
// did not, errUnknown, or another error, which fails the test.
func (c *client) try(fn func(t *txn.Tx) error) error {
	t := c.m.Begin()
	defer t.Abort()
	err := fn(t)
	if err == nil {
		err = t.Commit(ctx)
	} else if moved := t.Validate(); moved != nil && !errors.Is(moved, txn.ErrDone) {
		err = moved
	}
	return c.outcome(err)
}

// outcome turns the error of an operation into that of try: nil, errUser, errUnknown or a failure
// of the test.
func (c *client) outcome(err error) error {
	switch {
	case c.process.Dead(), errors.Is(err, outcome.ErrInDoubt):
		return errUnknown
	case hasNoEffect(err):
		return errUser
	}
	return err
}

// look reads a key.
func (c *client) look(g *register, key []byte) error {
	var v uint64
	g.owner = c
	err := c.try(func(t *txn.Tx) error {
		v = 0
		b, found, err := c.annex.Get(t, key)
		if err == nil && found {
			v = binary.LittleEndian.Uint64(b)
		}
		return err
	})
	switch {
	case errors.Is(err, errUser), errors.Is(err, errUnknown):
		return nil
	case g.owner != c:
		return nil // the client of a later life of the machine has taken over
	case err != nil:
		return err
	}
	return g.recordRead(key, v)
}

// blind changes a key without reading it first. was is the value that the key must have now.
func (c *client) blind(g *register, key []byte, was uint64) error {
	v := uint64(c.rec.Value())
	value := binary.LittleEndian.AppendUint64(nil, v)
	inTx := func(do func(t *txn.Tx) error) func() error { return func() error { return c.try(do) } }
	// now wraps an operation that runs transactions of its own.
	now := func(do func() error) func() error {
		return func() error {
			err := do()
			isClear := err == nil || errors.Is(err, hash.ErrExists) || isOver(err)
			if c.process.Dead() || !isClear {
				return errUnknown // the operation may have been shipped, and executed
			}
			return err
		}
	}
	switch c.rng.IntN(6) {
	case 0:
		return c.write(g, v, inTx(func(t *txn.Tx) error { return c.annex.Put(t, key, value) }))
	case 1:
		return c.insert(g, key, was, v, inTx(func(t *txn.Tx) error { return c.annex.Insert(t, key, value) }))
	case 2:
		return c.write(g, 0, inTx(func(t *txn.Tx) error { return c.deleteKey(t, key, was) }))
	case 3:
		return c.write(g, v, now(func() error { return c.annex.PutNow(ctx, key, value) }))
	case 4:
		return c.insert(g, key, was, v, now(func() error { return c.annex.InsertNow(ctx, key, value) }))
	}
	return c.write(g, 0, now(func() error {
		_, err := c.annex.DeleteNow(ctx, key)
		return err
	}))
}

// isOver reports whether an error ends a machine's life.
func isOver(err error) bool {
	return errors.Is(err, outcome.ErrEvicted) || errors.Is(err, outcome.ErrClosed)
}

// insert calls do, which inserts a key with the value v, and checks the outcome: do must fail if
// the key exists (was is not 0), and only then.
func (c *client) insert(g *register, key []byte, was, v uint64, do func() error) error {
	return c.write(g, v, func() error {
		err := do()
		switch exists := errors.Is(err, hash.ErrExists); {
		case exists && was == 0:
			return fmt.Errorf("simtest: errand: %q exists, though it is absent", key)
		case err == nil && was != 0 && !c.process.Dead():
			return fmt.Errorf("simtest: errand: %q was inserted, though it was there", key)
		case exists:
			return errUser
		}
		return err
	})
}

// deleteKey deletes a key in a transaction, and checks that the key existed, or was absent if was is 0.
func (c *client) deleteKey(t *txn.Tx, key []byte, was uint64) error {
	deleted, err := c.annex.Delete(t, key)
	if err == nil && deleted != (was != 0) {
		if err = t.Validate(); err == nil {
			err = fmt.Errorf("simtest: errand: %q was deleted: %v, it was %d", key, deleted, was)
		}
	}
	return err
}

// insertRow creates a row, of the size that all clients prefer at the time, and its entry.
func (c *client) insertRow(g *register, key []byte) error {
	v := uint64(c.rec.Value())
	size := 16 << ((c.world.Now() / rowsChange) % 6) // six sizes, in turn
	return c.write(g, v, func() error {
		return c.try(func(t *txn.Tx) error {
			p, b, err := t.Alloc(size, 0)
			if err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(b, v)
			return c.annex.Insert(t, key, p.Append(binary.LittleEndian.AppendUint64(nil, v)))
		})
	})
}

// rowsChange is the time after which clients prefer another size.
const rowsChange = 2 * leaseTime / 10

// deleteRow frees a row and deletes its entry.
func (c *client) deleteRow(g *register, key []byte, was uint64) error {
	return c.write(g, 0, func() error {
		return c.try(func(t *txn.Tx) error {
			b, found, err := c.annex.Get(t, key)
			if err != nil {
				return err
			}
			if !found {
				return c.unless(t, fmt.Errorf("simtest: errand: %q is absent, it was %d", key, was))
			}
			p, err := region.DecodePtr(b[8:])
			if err != nil {
				return c.unless(t, err)
			}
			if b, err = t.Read(p); err != nil {
				return err
			}
			if v := binary.LittleEndian.Uint64(b); v != was {
				return c.unless(t, fmt.Errorf("simtest: errand: the row of %q is %d, was %d", key, v, was))
			}
			if err := t.Free(p); err != nil {
				return err
			}
			return c.deleteKey(t, key, was)
		})
	})
}

// unless returns impossible, the error for a result that cannot be, if the transaction's reads are
// still valid. If they are not, that explains the result, and unless returns the conflict.
func (c *client) unless(t *txn.Tx, impossible error) error {
	if err := t.Validate(); err != nil {
		return err
	}
	return impossible
}

// makeAnnex creates the table of the errands.
func (s *store) makeAnnex(n *node, places []region.Addr) (err error) {
	s.registers = make(map[string]*register)
	return n.m.Run(ctx, func(t *txn.Tx) (err error) {
		s.annex, err = hash.Create(t, hash.Config{KeyBytes: 8, ValueBytes: 24, Buckets: 4, Seed: 1, Places: places}, 0)
		return err
	})
}

// reachableAnnex returns the objects of the errands' table, and of its rows.
func (s *store) reachableAnnex(n *node) (ptrs []region.Ptr, err error) {
	err = n.annex.Check(ctx, hash.Visitor{
		Node: func(p region.Ptr) error {
			ptrs = append(ptrs, p)
			return nil
		},
		Pair: func(_, value []byte) error {
			if len(value) == 8 { // the key's value; values of keys with a row end with a pointer to it
				return nil
			}
			p, err := region.DecodePtr(value[8:])
			ptrs = append(ptrs, p)
			return err
		},
	})
	return ptrs, err
}

// lookAtRegisters reads every key of the errands. No other client may run meanwhile.
func (c *client) lookAtRegisters() error {
	names := make([]string, 0, len(c.store.registers))
	for name := range c.store.registers { // any order: sorted next
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := c.look(c.store.registers[name], []byte(name)); err != nil {
			return err
		}
	}
	return nil
}
