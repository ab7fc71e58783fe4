package hash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/worker"
)

// restartsMax bounds the attempts of a lookup, which begins again whenever a transaction has
// changed the buckets during it. Each time that transaction has made progress.
const restartsMax = 10000

// Lookup is a lock-free lookup outside any transaction (NSDI'14 section 3.6). It
// returns the value in dst's memory if that is large enough. It always finds a key that
// is in the table during the whole call, whatever else changes meanwhile. In the common
// case it allocates nothing and costs one READ, or none if this machine is the shard's
// primary.
func (tb *Table) Lookup(key, dst []byte) (value []byte, ok bool, err error) {
	o, err := tb.open()
	if err != nil {
		return nil, false, err
	}
	if sabotage.Found.Skipped() {
		return nil, false, nil
	}
	s := sight{h: sum(o.seed, key)}
	op := tb.m.Start()
	// op.End is not deferred, because that would slow down most lookups. It need not be: a
	// glance does not panic, as it checks all bytes before it uses them.
	value, ok, decided := o.glance(op, &s, key, dst)
	if !decided {
		return tb.insist(op, o, &s, key, dst)
	}
	err = tb.m.Confirm()
	op.End()
	if err != nil {
		return nil, false, err
	}
	return value, ok, nil
}

// insist looks up a key that a glance has left undecided, again and again until no change
// overtakes the lookup, and ends the operation op.
func (tb *Table) insist(op worker.Operation, o *opened, s *sight, key, dst []byte) (value []byte, ok bool, err error) {
	defer op.End()
	for range restartsMax {
		if value, ok, err = o.reach(op, s, key, dst); err == nil && !ok { // the key may be elsewhere
			value, ok, err = tb.search(op, o, o.dir.find(s.h), s.h, key, dst)
		}
		if err == nil || !overtaken(err) {
			return value, ok, err
		}
		tb.stats.restarts.Add(1)
		tb.m.Clock().Yield()
	}
	return nil, false, keptChanging(err)
}

// keptChanging returns the error of a lookup that was overtaken too often, the last time with err.
func keptChanging(err error) error {
	return fmt.Errorf("%w: lookup overtaken %d times: %w", outcome.ErrConflict, restartsMax, err)
}

// LookupPtr is like Lookup, for a value that is a pointer.
func (tb *Table) LookupPtr(key []byte) (region.Ptr, bool, error) {
	var buf [64]byte
	v, ok, err := tb.Lookup(key, buf[:])
	if !ok || err != nil {
		return region.Ptr{}, false, err
	}
	p, err := region.DecodePtr(v)
	return p, err == nil, err
}

// overtaken reports whether a lookup that failed with err should begin again.
func overtaken(err error) bool {
	return errors.Is(err, errOvertaken) || (errors.Is(err, region.ErrFreed) && !errors.Is(err, ErrDestroyed))
}

// reach looks for key among the outside pairs of the two buckets and of the first blocks of the chain.
// glance must have found the buckets in this machine's memory, and left the lookup undecided. reach
// copies only slots and pairs. If it does not find the key, the key may still be in the table.
func (o *opened) reach(op worker.Operation, s *sight, key, dst []byte) (value []byte, ok bool, err error) {
	if o.slots > glanceSlots || !s.buckets.Look() || !o.narrow(s) {
		return nil, false, nil
	}
	buf := o.buffers.Get().(*buffer)
	defer o.buffers.Put(buf)
	for ; s.slots != 0; s.slots &= s.slots - 1 { // removes the first candidate
		v, i := s.candidate()
		value, ok, err = o.outsideIn(op, buf, *v, o.dataOffset(0), 1<<i, s.h, key, dst)
		if ok || err != nil {
			return value, ok, err
		}
	}
	home := &s.buckets.Views[0]
	block := *home
	for n := 0; !ok && err == nil && n < glanceBlocks && block.Word(linkWord) != 0; n++ {
		next, isThere := o.nextBlock(op, block)
		if !isThere {
			return nil, false, nil
		}
		block = next
		value, ok, err = o.outsideIn(op, buf, block, o.blockDataOffset(0), uint(1)<<blockSlots-1, s.h, key, dst)
	}
	return value, ok, err
}

// outsideIn looks for key among the outside pairs that the given slots of a bucket or block v
// point to. data is the offset of the data of v's slots. It returns false if none of them has key, and also if v is
// changed meanwhile.
func (o *opened) outsideIn(op worker.Operation, buf *buffer, v region.View, data int, slots uint, h uint64, key, dst []byte) ([]byte, bool, error) {
	for ; slots != 0; slots &= slots - 1 { // removes the lowest slot
		i := bits.TrailingZeros(slots)
		s := slotIn(v, i)
		if !s.outside() {
			continue
		}
		s.data = buf.value[:outsideBytes]
		v.Copy(s.data, data+i*o.dataBytes)
		if !v.Valid() {
			return nil, false, nil
		}
		if !s.matches(h, key) {
			continue
		}
		if value, ok, err := readOutside(op, buf, s, key, dst); ok || err != nil {
			return value, ok, err
		}
	}
	return nil, false, nil
}

// search looks up a key in copies of the buckets and blocks, or has the shard's primary look it up.
func (tb *Table) search(op worker.Operation, o *opened, s *shard, h uint64, key, dst []byte) ([]byte, bool, error) {
	buf := o.buffers.Get().(*buffer)
	defer o.buffers.Put(buf)
	buf.begin(tb, o, op, s, h, key)
	defer buf.end()
	err := tb.client.Find(context.Background(), buf, &buf.seek)
	return buf.answer(dst, err)
}

// inPair is search for a caller that has read the two buckets into pair.
func (tb *Table) inPair(op worker.Operation, o *opened, buf *buffer, pair []byte, s *shard, h uint64, key, dst []byte) ([]byte, bool, error) {
	buf.begin(tb, o, op, s, h, key)
	defer buf.end()
	buf.read = [2]lookup.Object{{Payload: pair[:len(pair)/2]}, {Payload: pair[len(pair)/2:]}}
	decided, err := buf.seek.End(buf.read[:], nil)
	if !decided && err == nil {
		err = tb.client.GoOn(context.Background(), buf, &buf.seek, 1)
	}
	return buf.answer(dst, err)
}

// answer looks up a key for another machine, which is going to validate the sources if it asks in a transaction.
func (tb *Table) answer(key []byte) (a lookup.Answer, err error) {
	o, err := tb.open()
	if err != nil {
		return a, err
	}
	op := tb.m.Start()
	defer op.End()
	h := sum(o.seed, key)
	for range restartsMax {
		var s seek
		s.begin(tb, o, o.dir.find(h), h, key, nil)
		s.pair = true
		if err = lookup.Walk(lookup.Reading(op), &s); err == nil {
			return lookup.Answer{Found: s.found, Value: s.value, Sources: s.sources}, nil
		}
		if !overtaken(err) {
			return a, err
		}
		tb.stats.restarts.Add(1)
		tb.m.Clock().Yield()
	}
	return a, keptChanging(err)
}

// readOutside reads the pair that s points to, and returns its value if its key is key.
func readOutside(op worker.Operation, buf *buffer, s slot, key, dst []byte) ([]byte, bool, error) {
	_, ptr, err := s.pair()
	if err != nil {
		return nil, false, err
	}
	b := buf.sized(&buf.object, ptr.Capacity())
	if _, err := op.Read(ptr, b); err != nil {
		return nil, false, err
	}
	stored, value, err := decodePair(b)
	if err != nil || !bytes.Equal(stored, key) {
		return nil, false, err
	}
	return append(dst[:0], value...), true, nil
}
