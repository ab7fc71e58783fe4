package hash

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A pair is a key with its value.
type pair struct{ key, value []byte }

// scanHomes is the number of homes that one question of a scan covers. If a bucket of any of these
// homes changes, all of them are read again.
const scanHomes = 16

// A Cursor goes through all pairs of a table. See Table.Scan.
type Cursor struct {
	tb *Table
	t  *txn.Tx
	o  *opened
	// own holds the changes that the transaction itself had made when the scan began. byKey maps a
	// key to the index of its change in own.
	own   []ownOp
	byKey map[string]int
	// todo are the shards still to visit; the last of them is the current shard, and
	// home is the next home there.
	todo []scanShard
	home int
	out  []pair
	err  error
	done bool
}

type ownOp struct {
	pair
	op operation
	// met says that the scan has found the key in the table.
	met bool
}

// A scanShard is a shard as a scan found it. It covers the keys whose hashes share depth
// bits with its prefix, also keys that splits have moved to other shards since.
type scanShard struct {
	*shard
	depth int
}

// Scan begins a scan of all pairs as t sees them now, in an arbitrary order. It does not see
// later changes of t. When t commits, the part that was scanned must still have these pairs
// and no others.
func (tb *Table) Scan(t *txn.Tx) *Cursor {
	c := &Cursor{tb: tb, t: t}
	ov, err := tb.overlay(t)
	if err != nil {
		c.err = inTx(err, tb)
		return c
	}
	c.o = ov.o
	if ov.changed > 0 {
		c.byKey = make(map[string]int)
		for _, e := range ov.entries {
			if e.op != opNone {
				c.byKey[string(e.key)] = len(c.own)
				c.own = append(c.own, ownOp{pair{e.key, e.next}, e.op, false})
			}
		}
	}
	if !ov.isNew {
		c.push(c.o.first())
	}
	return c
}

// first returns the first shard.
func (o *opened) first() *shard { return o.dir.find(0) }

// push puts a shard on top of the stack of shards to visit.
func (c *Cursor) push(s *shard) {
	h, err := c.tb.refresh(c.o, s)
	if err != nil {
		c.err = inTx(err, c.tb)
		return
	}
	c.todo = append(c.todo, scanShard{s, h.depth})
}

// All yields the pairs that Next would return. It ends early if a pair cannot be read: then Err
// returns the error. After a break, the cursor continues with the next pair.
func (c *Cursor) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for {
			key, value, ok, err := c.Next()
			if err != nil || !ok || !yield(key, value) {
				return
			}
		}
	}
}

// Err returns the error that has ended the scan, or nil.
func (c *Cursor) Err() error { return c.err }

// Next returns the next pair, or false after the last. The slices are valid until
// the transaction ends and must not be modified.
func (c *Cursor) Next() (key, value []byte, ok bool, err error) {
	for len(c.out) == 0 && !c.done && c.err == nil {
		c.fill()
	}
	if c.err != nil || len(c.out) == 0 {
		return nil, nil, false, c.err
	}
	p := c.out[0]
	c.out = c.out[1:]
	return p.key, p.value, true, nil
}

// fill reads the next homes, or goes on to the next shard.
func (c *Cursor) fill() {
	if len(c.todo) == 0 {
		for _, own := range c.own {
			if own.op == opPut && !own.met { // no other transaction has put this key
				c.out = append(c.out, own.pair)
			}
		}
		c.done = true
		return
	}
	s := c.todo[len(c.todo)-1]
	if c.home == c.o.buckets {
		c.todo, c.home = c.todo[:len(c.todo)-1], 0
		c.descend(s)
		return
	}
	q := &homesQuestion{tb: c.tb, o: c.o, shard: s, from: c.home, to: min(c.home+scanHomes, c.o.buckets)}
	if c.err = inTx(q.ask(c.t), c.tb); c.err != nil {
		return
	}
	c.t.Expect(q)
	c.home = q.to
	for _, p := range q.pairs {
		if i, ok := c.byKey[string(p.key)]; ok {
			own := &c.own[i]
			own.met = true
			if own.op == opDelete {
				continue
			}
			p = own.pair
		}
		c.out = append(c.out, p)
	}
}

// descend pushes the shards that were split from s before the scan found it: the children below
// s.depth.
func (c *Cursor) descend(s scanShard) {
	for i := s.depth - 1; i >= s.initialDepth && c.err == nil; i-- {
		child, err := c.tb.child(c.o, s.shard, i)
		if err != nil {
			c.err = inTx(err, c.tb)
			return
		}
		c.push(child)
	}
}

// child returns child i of s. If it is not known yet, child reads the header of s once.
func (tb *Table) child(o *opened, s *shard, i int) (*shard, error) {
	prefix := s.prefix | 1<<(63-i)
	for try := range 2 {
		if c := o.dir.find(prefix); c.prefix == prefix {
			return c, nil
		}
		if c := s.child.Load(); c != nil && c.prefix == prefix {
			return c, nil
		}
		if try == 0 {
			if _, err := tb.refresh(o, s); err != nil {
				return nil, err
			}
		}
	}
	return nil, fmt.Errorf("%w: shard of prefix %#x/%d has no child %d", ErrCorrupt, s.prefix, s.initialDepth, i)
}

// A homesQuestion asks which pairs have their homes in a range of homes of a shard.
type homesQuestion struct {
	tb       *Table
	o        *opened
	shard    scanShard
	from, to int
	// pairs are sorted by key, because the answer must not depend on which bucket of
	// its neighbourhood a pair is in.
	pairs   []pair
	sources []txn.Source
}

// Sources implements txn.Question.
func (q *homesQuestion) Sources() []txn.Source { return q.sources }

// Ask implements txn.Question.
func (q *homesQuestion) Ask(f *txn.Fresh) (bool, error) {
	again := *q
	if err := again.ask(f); err != nil {
		return false, asStale(err)
	}
	q.sources = again.sources
	return slices.EqualFunc(q.pairs, again.pairs, func(a, b pair) bool {
		return bytes.Equal(a.key, b.key) && bytes.Equal(a.value, b.value)
	}), nil
}

// ask reads the homes.
func (q *homesQuestion) ask(pk peeker) error {
	q.pairs, q.sources = nil, nil
	for home := q.from; home < q.to; home++ {
		if err := q.askHome(pk, home); err != nil {
			return err
		}
	}
	slices.SortFunc(q.pairs, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	return nil
}

func (q *homesQuestion) askHome(pk peeker, home int) (err error) {
	pairs, sources := len(q.pairs), len(q.sources)
	for range asksMax {
		q.pairs, q.sources = q.pairs[:pairs], q.sources[:sources]
		if err = q.askShard(pk, home, q.shard); err == nil || !overtaken(err) {
			return err
		}
	}
	if _, fresh := pk.(*txn.Fresh); fresh {
		return txn.ErrStale
	}
	return &txn.AbortError{Reason: txn.ReasonBusy, Addr: q.shard.first.Addr}
}

// askShard reads one home of a shard, and the same home of shards to which splits have moved
// pairs since the scan found the shard.
func (q *homesQuestion) askShard(pk peeker, home int, s scanShard) error {
	w := walk{tb: q.tb, pk: pk, first: s.first.Element(home), lay: &q.o.layout}
	p, err := w.home()
	if err != nil {
		return asDestroyed(err)
	}
	depth, live := p.depth()
	if !live || depth < s.depth {
		return errOvertaken
	}
	err = w.visitHome(p, func(_ slot, key, value []byte) error {
		q.pairs = append(q.pairs, pair{key, value})
		return nil
	})
	if err != nil {
		return err
	}
	q.addSources(w.sources)
	for i := s.depth; i < depth; i++ {
		child, err := q.tb.child(q.o, s.shard, i)
		if err != nil {
			return err
		}
		if err := q.askShard(pk, home, scanShard{child, i + 1}); err != nil {
			return err
		}
	}
	return nil
}

// addSources adds the sources of one home. Neighbouring homes share a bucket, which is
// added once: only the last four sources are searched for it. If the bucket changed between
// the two reads, both versions stay in the sources, so that the question is asked again.
func (q *homesQuestion) addSources(sources []txn.Source) {
	for _, s := range sources {
		if !slices.Contains(q.sources[max(0, len(q.sources)-4):], s) {
			q.sources = append(q.sources, s)
		}
	}
}

// A reader is a peeker outside any transaction.
type reader struct{ tb *Table }

// Peek implements peeker.
func (r reader) Peek(p region.Ptr) ([]byte, region.Version, error) {
	b := make([]byte, p.Capacity())
	v, err := r.tb.m.Read(p, b)
	return b, v, err
}
