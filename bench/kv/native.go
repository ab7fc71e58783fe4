package kv

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// slotsOfShard is the approximate number of slots of a shard, unless the table has
// fewer. It determines how much the occupancy of a table's shards varies, so it does
// not depend on the neighbourhood.
const slotsOfShard = 512

// nativeStore keeps the pairs in a hash table. The table is created at the size for
// Config.Occupancy and does not grow: each shard may be full.
type nativeStore struct {
	w       *Workload
	buckets int           // number of buckets of all shards together, a power of two
	here    []int         // the machines of this process
	tables  []*hash.Table // handles for updates, by machine
	readers []*hash.Table // handles for lookups, by machine
	// memory is the size of all objects of the table, as each object was last found.
	memory int64
	// nextMachine spreads loaders over the machines.
	nextMachine atomic.Uint32
}

func newNativeStore(w *Workload) *nativeStore {
	slotsOfBucket := w.cfg.Neighbourhood / 2
	const bucketsMin = 4
	buckets := nearestPower(float64(w.cfg.Keys) * 100 / float64(w.cfg.Occupancy*slotsOfBucket))
	return &nativeStore{w: w, buckets: max(bucketsMin, buckets)}
}

// bucketsOfShard returns the number of buckets of a shard, which is a power of two.
func (s *nativeStore) bucketsOfShard() int {
	return min(s.buckets, nearestPower(slotsOfShard/float64(s.w.cfg.Neighbourhood/2)))
}

// slots returns the number of slots of all buckets. A neighbourhood consists of two buckets.
func (s *nativeStore) slots() int { return s.buckets * s.w.cfg.Neighbourhood / 2 }

// keys returns the number of keys that fill the table to the wanted occupancy.
func (s *nativeStore) keys() int { return max(1, s.slots()*s.w.cfg.Occupancy/100) }

// create opens the hash table on all machines of this process. The leader also gives it all of its
// slots at once.
func (s *nativeStore) create(ctx context.Context) error {
	places, err := s.w.target.Places(ctx)
	if err != nil {
		return err
	}
	cfg := &s.w.cfg
	s.here = s.w.target.Here()
	s.tables, err = s.w.target.Hash(ctx, "kv", hash.Config{
		KeyBytes: keyBytes, ValueBytes: cfg.InlineBytes, Neighbourhood: cfg.Neighbourhood,
		Buckets: s.bucketsOfShard(), MaxLoad: 100, Seed: cfg.Seed,
	}, places)
	if err != nil {
		return err
	}
	s.readers = s.tables
	if cfg.Lookups != lookup.Measured {
		s.readers = make([]*hash.Table, len(s.tables))
		for _, m := range s.here {
			s.readers[m] = hash.OpenWith(s.w.target.Machine(m), s.tables[m].Anchor(), hash.Options{Lookups: cfg.Lookups})
		}
	}
	if cfg.ByMessage {
		for _, m := range s.here {
			s.w.target.Machine(m).Handle(handlerLookups, server{s.readers[m], answerBytes(cfg.ValueBytes)}.serve)
		}
	}
	if !s.w.target.Leads() {
		return nil
	}
	return s.tables[0].Reserve(ctx, s.slots())
}

// full checks that the table has not grown beyond its intended size.
func (s *nativeStore) full() error {
	want := s.buckets / s.bucketsOfShard()
	for _, m := range s.here {
		if got := s.tables[m].Stats().Shards; got > want {
			return fmt.Errorf("kv: the table has %d shards in place of %d, so that it is less than %d %% full", got, want, s.w.cfg.Occupancy)
		}
	}
	return nil
}

// machine returns the machine of the next loader.
func (s *nativeStore) machine() int { return s.here[int(s.nextMachine.Add(1)-1)%len(s.here)] }

type nativePutter struct {
	tb    *hash.Table
	m     *txn.Machine
	key   [keyBytes]byte
	value []byte
}

func (s *nativeStore) newPutter(context.Context) (putter, error) {
	m := s.machine()
	return &nativePutter{tb: s.tables[m], m: s.w.target.Machine(m), value: make([]byte, s.w.cfg.ValueBytes)}, nil
}

func (p *nativePutter) put(ctx context.Context, first, end int) error {
	return p.m.Run(ctx, func(t *txn.Tx) error {
		for i := first; i < end; i++ {
			if err := p.tb.Put(t, fillKey(p.key[:], i), fillValue(p.value, i, 0)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *nativePutter) close() error { return nil }

type nativeExecutor struct {
	tb, reader *hash.Table
	buf        []byte
}

func (s *nativeStore) newExecutor(_ context.Context, th *bench.Thread) (executor, error) {
	e := nativeExecutor{s.tables[th.Machine], s.readers[th.Machine], make([]byte, s.w.cfg.ValueBytes)}
	if s.w.cfg.ByMessage {
		const keysOfShard = 16                   // so that hardly any shard has none
		shards := s.buckets / s.bucketsOfShard() // both are powers of two
		byMessage := newMessageExecutor(s.w.target.Machine(th.Machine), e)
		return byMessage, byMessage.learn(s.w.cfg.Keys, keysOfShard*shards)
	}
	return &e, nil
}

func (e *nativeExecutor) lookup(_ context.Context, key []byte) ([]byte, error) {
	v, ok, err := e.reader.Lookup(key, e.buf)
	if err == nil && !ok {
		err = goneError(key)
	}
	return v, err
}

func (e *nativeExecutor) lookupMany(keys [][]byte, visit func(i int, value []byte, ok bool)) error {
	return e.reader.LookupMany(keys, visit)
}

func (e *nativeExecutor) update(ctx context.Context, key, value []byte) error {
	return e.tb.PutNow(ctx, key, value)
}

func (e *nativeExecutor) close() error { return nil }

// each implements store, and measures the table's memory.
func (s *nativeStore) each(ctx context.Context, fn func(key, value []byte) error) error {
	s.memory = 0
	node := func(p region.Ptr) error {
		s.memory += int64(p.Class().Size())
		return nil
	}
	return s.tables[s.here[0]].Check(ctx, hash.Visitor{Pair: fn, Node: node})
}
