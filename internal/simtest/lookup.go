package simtest

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/outcome"
)

// Reads and lookups outside of transactions. The history has each as a transaction of its own, for
// every answer: if a key is reported absent, it must have been absent at some moment of the lookup,
// too. Only a lookup without an answer proves nothing.

// errNoAnswer is the result of a lock-free read that got no answer because of conflicting writers.
var errNoAnswer = errors.New("simtest: no answer")

// asNoAnswer turns the errors with which a lock-free read may fail into errNoAnswer. ErrFreed
// is not one of them: the caller knows whether the object can be freed.
func asNoAnswer(err error) error {
	if errors.Is(err, region.ErrLocked) || (errors.Is(err, outcome.ErrConflict) && !errors.Is(err, region.ErrFreed)) {
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return err
}

// lockFree records a transaction of a single read. read carries out that read and records it.
func (c *client) lockFree(read func() error) error {
	c.h = c.rec.Begin(c.label)
	defer c.untold(c.h)
	return c.endLockFree(c.h, read())
}

// endLockFree records the result of a lock-free read. A read without an answer counts as given up; but if the
// client is alone, it is an error.
func (c *client) endLockFree(h *history.Recording, err error) error {
	c.h = h
	if err = asNoAnswer(err); errors.Is(err, errNoAnswer) {
		if c.alone {
			return err
		}
		err = errUser
	}
	return c.end(err)
}

// recordAnswer records the answer of a lookup of o.
func (c *client) recordAnswer(o history.Object, b []byte, ok bool) error {
	if !ok {
		c.h.Absent(o)
		return nil
	}
	return c.recordRead(o, b)
}

// lookUpHash looks up one key, or several keys together.
func (c *client) lookUpHash() error {
	table := c.table
	if c.rng.IntN(2) == 0 {
		table = c.twoSided
	}
	if c.rng.IntN(4) > 0 {
		return c.lookUpKey(table, c.pick(c.options.Keys))
	}
	keys := make([]int, 2+c.rng.IntN(12))
	for k := range keys {
		keys[k] = c.pick(c.options.Keys)
	}
	return c.lookUpTogether(table.LookupMany, keys)
}

func (c *client) lookUpKey(table *hash.Table, i int) error {
	return c.lockFree(func() error {
		b, ok, err := table.Lookup(keyOf(i), nil)
		if err != nil {
			return err
		}
		return c.recordAnswer(objectOf(inHash, i), b, ok)
	})
}

// lookUpTogether looks up keys with lookUp. The history has each lookup as a transaction of its
// own. If lookUp fails, the keys that it has answered count nevertheless. A key has the answer
// errNoAnswer until lookUp answers it.
func (c *client) lookUpTogether(lookUp func([][]byte, func(int, []byte, bool)) error, keys []int) error {
	names, recordings, answers := make([][]byte, len(keys)), make([]*history.Recording, len(keys)), make([]error, len(keys))
	for k, i := range keys {
		names[k], recordings[k], answers[k] = keyOf(i), c.rec.Begin(c.label), errNoAnswer
		defer c.untold(recordings[k])
	}
	err := lookUp(names, func(k int, b []byte, ok bool) {
		if !errors.Is(answers[k], errNoAnswer) {
			answers[k] = fmt.Errorf("simtest: %s was answered twice", names[k])
			return
		}
		c.h = recordings[k]
		answers[k] = c.recordAnswer(objectOf(inHash, keys[k]), b, ok)
	})
	for k, answer := range answers {
		switch {
		case errors.Is(answer, errNoAnswer) && err == nil && !c.process.Dead():
			answer = fmt.Errorf("simtest: %s was not answered", names[k])
		case errors.Is(answer, errNoAnswer):
			answer = err // nil if the process died in between
		}
		if answer := c.endLockFree(recordings[k], answer); answer != nil {
			return answer
		}
	}
	return nil
}

// lookUpTree finds a row and reads it. A row keeps its key's value as long as it exists, so the
// history records this as one read. If the row is freed meanwhile, the key has changed, so a lookup
// that begins later must not find that row.
func (c *client) lookUpTree(i int) error {
	return c.lockFree(func() error {
		o := c.m.Start()
		defer o.End()
		var freed region.Ptr
		for {
			row, ok, err := c.tree.Lookup(keyOf(i))
			if err != nil || !ok {
				if err == nil {
					c.h.Absent(objectOf(inTree, i))
				}
				return err
			}
			if row == freed {
				return fmt.Errorf("simtest: %s leads to %v, which was freed before it was looked up", keyOf(i), row)
			}
			b, err := c.read(row)
			if errors.Is(err, region.ErrFreed) {
				freed = row
				continue
			}
			if err != nil {
				return err
			}
			return c.recordRead(objectOf(inTree, i), b)
		}
	})
}

// lookAtAll reads every object and looks up every key, without transactions. No other client may
// run, so that each of them must be answered.
func (c *client) lookAtAll() error {
	c.alone = true
	var keys []int
	for i := range c.store.objects {
		if err := c.readObject(i); err != nil {
			return err
		}
	}
	for i := range c.options.Keys {
		keys = append(keys, i)
		for _, look := range []func() error{
			func() error { return c.lookUpKey(c.table, i) },
			func() error { return c.lookUpKey(c.twoSided, i) },
			func() error { return c.lookUpTree(i) },
		} {
			if err := look(); err != nil {
				return err
			}
		}
	}
	if err := c.lookUpTogether(c.table.LookupMany, keys); err != nil {
		return err
	}
	return c.lookUpTogether(c.twoSided.LookupMany, keys)
}
