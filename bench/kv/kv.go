package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/farmsql/farmsql/bench"
	"github.com/farmsql/farmsql/txn/lookup"
)

// A Config has the sizes of the table and the mix of operations. The zero value of a field means
// its default, which its comment gives after a semicolon.
type Config struct {
	// Keys is the approximate number of keys; 1,000,000. For native clients it becomes the
	// nearest number that fills the table, whose size is a power of two, to Occupancy.
	Keys int
	// ValueBytes is the length of values; 32, which is also the least.
	ValueBytes int
	// InlineBytes is the length up to which values are in the table's slots; longer ones are
	// in objects of their own. By default all are in slots.
	InlineBytes int
	// Updates is the percentage of operations that are updates; 0.
	Updates int
	// Zipf is the exponent of the distribution of keys, between 0 and 1; 0 means uniform.
	Zipf float64
	// Occupancy is the percentage of the table's slots that are taken; 90.
	Occupancy int
	// Neighbourhood is the hash table's H, an even number; 8.
	Neighbourhood int
	// Lookups is hash.Options.Lookups; as measured.
	Lookups lookup.Way
	// Batch is the number of keys that native clients look up together; 1. Then there are no
	// updates. The latency of each lookup is that of the batch.
	Batch int
	// ByMessage makes native clients look keys up at other machines by messages, as HERD does: a
	// client sends each primary one message for all of its keys of a batch.
	ByMessage bool
	// Seed determines the place of a key in the table.
	Seed uint64
	// Drop makes Load drop an existing database named kv, over SQL.
	Drop bool
}

const (
	defaultKeys = 1_000_000
	keysMax     = 1 << 32
	keyBytes    = 16

	valueBytesMin = 32
	valueBytesMax = 4000

	batchMax = 1024

	defaultOccupancy     = 90
	defaultNeighbourhood = 8
	neighbourhoodMax     = 64
)

func (c Config) withDefaults() Config {
	for _, f := range []struct {
		p *int
		v int
	}{{&c.Keys, defaultKeys}, {&c.ValueBytes, valueBytesMin}, {&c.Occupancy, defaultOccupancy}, {&c.Neighbourhood, defaultNeighbourhood}, {&c.Batch, 1}} {
		if *f.p == 0 {
			*f.p = f.v
		}
	}
	if c.InlineBytes == 0 {
		c.InlineBytes = c.ValueBytes
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.Keys < 1 || c.Keys > keysMax:
		return fmt.Errorf("kv: %d keys, must be 1 to %d", c.Keys, keysMax)
	case c.ValueBytes < valueBytesMin || c.ValueBytes > valueBytesMax:
		return fmt.Errorf("kv: values of %d bytes, must be %d to %d", c.ValueBytes, valueBytesMin, valueBytesMax)
	case c.InlineBytes < 1 || c.InlineBytes > valueBytesMax:
		return fmt.Errorf("kv: values of %d bytes in slots, must be 1 to %d", c.InlineBytes, valueBytesMax)
	case c.Updates < 0 || c.Updates > 100:
		return fmt.Errorf("kv: %d %% of updates, must be 0 to 100", c.Updates)
	case !(c.Zipf >= 0 && c.Zipf < 1):
		return fmt.Errorf("kv: a Zipf exponent of %v, must be from 0 to below 1", c.Zipf)
	case c.Occupancy < 1 || c.Occupancy > 95:
		return fmt.Errorf("kv: an occupancy of %d %%, must be 1 to 95", c.Occupancy)
	case c.Batch < 1 || c.Batch > batchMax:
		return fmt.Errorf("kv: lookups of %d keys, must be 1 to %d", c.Batch, batchMax)
	case c.Batch > 1 && c.Updates > 0:
		return fmt.Errorf("kv: %d %% of updates and lookups of %d keys: updates are of one", c.Updates, c.Batch)
	case c.Neighbourhood < 2 || c.Neighbourhood > neighbourhoodMax || c.Neighbourhood%2 != 0:
		return fmt.Errorf("kv: a neighbourhood of %d slots, must be even, 2 to %d", c.Neighbourhood, neighbourhoodMax)
	}
	return nil
}

// Kinds of operations.
const (
	lookUp = iota
	update
)

// A Workload is the key-value benchmark on one target.
type Workload struct {
	target *bench.Target
	cfg    Config
	zipf   *bench.Zipf // nil draws uniformly
	store  store
	// space is the result of Check; nil before it, and if the store cannot tell.
	space *bench.Space
}

var _ bench.Spacious = (*Workload)(nil)

// A store holds the pairs, behind one of the APIs.
type store interface {
	// create creates the store or finds it; all processes call it at the same time.
	create(ctx context.Context) error
	// full checks the size of the store. It is called only after all pairs have been loaded.
	full() error
	// newPutter returns a loader of pairs, newExecutor an executor of operations. Each loader
	// and each executor is used by one goroutine.
	newPutter(ctx context.Context) (putter, error)
	newExecutor(ctx context.Context, th *bench.Thread) (executor, error)
	// each calls fn with all pairs, from one goroutine.
	each(ctx context.Context, fn func(key, value []byte) error) error
}

type putter interface {
	// put loads keys first to end-1.
	put(ctx context.Context, first, end int) error
	close() error
}

type executor interface {
	lookup(ctx context.Context, key []byte) (value []byte, err error)
	// lookupMany looks keys up together. Only the native API has it.
	lookupMany(keys [][]byte, visit func(i int, value []byte, ok bool)) error
	update(ctx context.Context, key, value []byte) error
	close() error
}

// New returns the benchmark on a target, whose database is empty.
func New(target *bench.Target, cfg Config) (*Workload, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	w := &Workload{target: target, cfg: cfg}
	if target.API() == bench.SQL {
		if cfg.Batch > 1 {
			return nil, fmt.Errorf("kv: lookups of %d keys are for the API %q", cfg.Batch, bench.Native)
		}
		if cfg.ByMessage {
			return nil, fmt.Errorf("kv: lookups by messages are for the API %q", bench.Native)
		}
		w.store = &sqlStore{w: w, db: target.SQL()}
	} else {
		s := newNativeStore(w)
		w.cfg.Keys = s.keys()
		w.store = s
	}
	if cfg.Zipf > 0 {
		w.zipf = bench.NewZipf(w.cfg.Keys, cfg.Zipf)
	}
	return w, nil
}

// Name implements bench.Workload.
func (w *Workload) Name() string {
	drawn := "uniform keys"
	if w.zipf != nil {
		drawn = fmt.Sprintf("Zipf %v", w.cfg.Zipf)
	}
	if w.cfg.ByMessage {
		drawn += ", by messages"
	}
	if w.cfg.Batch > 1 {
		return fmt.Sprintf("key-value, %s, lookups of %d", drawn, w.cfg.Batch)
	}
	return fmt.Sprintf("key-value, %s, %d %% updates", drawn, w.cfg.Updates)
}

// Scale implements bench.Workload.
func (w *Workload) Scale() bench.Scale {
	unit := fmt.Sprintf("keys (%d+%d bytes", keyBytes, w.cfg.ValueBytes)
	if w.target.API() == bench.Native {
		unit += fmt.Sprintf(", %d %% full, H = %d", w.cfg.Occupancy, w.cfg.Neighbourhood)
		if w.cfg.InlineBytes < w.cfg.ValueBytes {
			unit += ", values in objects of their own"
		}
	}
	return bench.Scale{N: w.cfg.Keys, Unit: unit + ")"}
}

// Kinds implements bench.Workload.
func (w *Workload) Kinds() []string { return []string{lookUp: "lookup", update: "update"} }

// loadBatch is how many pairs are loaded in one transaction.
const loadBatch = 50

// Load implements bench.Workload.
func (w *Workload) Load(ctx context.Context, p *bench.Progress) error {
	if err := w.store.create(ctx); err != nil {
		return fmt.Errorf("kv: %w", err)
	}
	if err := w.target.Barrier(ctx); err != nil {
		return err
	}
	if err := w.loadKeys(ctx, p); err != nil {
		return fmt.Errorf("kv: loading: %w", err)
	}
	if err := w.target.Barrier(ctx); err != nil {
		return err
	}
	return w.store.full()
}

// Attach implements bench.Workload.
func (w *Workload) Attach(ctx context.Context) error { return w.store.create(ctx) }

// loadKeys loads this process's share of the batches.
func (w *Workload) loadKeys(ctx context.Context, p *bench.Progress) error {
	stage := p.Stage("loading keys", w.cfg.Keys)
	defer stage.Done()
	var next atomic.Int64
	loaders, ctx := errgroup.WithContext(ctx)
	for range runtime.GOMAXPROCS(0) {
		loaders.Go(func() error {
			l, err := w.store.newPutter(ctx)
			if err != nil {
				return err
			}
			for err == nil {
				batch := int(next.Add(1)) - 1
				first := batch * loadBatch
				if first >= w.cfg.Keys {
					break
				}
				end := min(first+loadBatch, w.cfg.Keys)
				if w.target.IsMine(batch) {
					err = l.put(ctx, first, end)
				}
				stage.Add(end - first)
			}
			return errors.Join(err, l.close())
		})
	}
	return loaders.Wait()
}

// client draws keys, and looks them up or updates them.
type client struct {
	w     *Workload
	rnd   *rand.Rand
	zipf  *bench.Zipf
	key   [keyBytes]byte
	value []byte
	many  *many // many looks up several keys together; nil if keys are looked up one by one
	executor
}

// checkAnswer checks the result of a lookup of the key with this number. It returns an error if the
// key was not found, or if it cannot have this value.
func (w *Workload) checkAnswer(key []byte, number int, value []byte, ok bool) error {
	if !ok {
		return goneError(key)
	}
	return checkValue(value, number, w.cfg.ValueBytes)
}

// goneError returns the error for a missing key.
func goneError(key []byte) error {
	return fmt.Errorf("kv: %w: key %x is gone", bench.ErrInconsistent, key)
}

// NewClient implements bench.Workload.
func (w *Workload) NewClient(ctx context.Context, th *bench.Thread) (bench.Client, error) {
	e, err := w.store.newExecutor(ctx, th)
	if err != nil {
		return nil, err
	}
	c := &client{w: w, rnd: rand.New(rand.NewPCG(th.Seed, 0x6b76 /* "kv" */)), value: make([]byte, w.cfg.ValueBytes), executor: e}
	if w.zipf != nil {
		c.zipf = w.zipf.For(c.rnd)
	}
	if w.cfg.Batch > 1 {
		c.many = newMany(w, th)
	}
	return c, nil
}

// draw draws a key's number.
func (c *client) draw() int {
	if c.zipf != nil {
		return c.zipf.Next()
	}
	return c.rnd.IntN(c.w.cfg.Keys)
}

// Do implements bench.Client.
func (c *client) Do(ctx context.Context) (int, error) {
	if c.many != nil {
		return lookUp, c.many.do(c)
	}
	i := c.draw()
	key := fillKey(c.key[:], i)
	if c.w.cfg.Updates > 0 && c.rnd.IntN(100) < c.w.cfg.Updates {
		return update, c.update(ctx, key, fillValue(c.value, i, c.rnd.Uint64()))
	}
	value, err := c.lookup(ctx, key)
	if err != nil {
		return lookUp, err
	}
	return lookUp, checkValue(value, i, c.w.cfg.ValueBytes)
}

// Close implements bench.Client.
func (c *client) Close() error { return c.close() }

// fillKey makes the key of a number: eight bytes that look random, a multiple of 2^64 divided by the golden
// ratio, and the number.
func fillKey(b []byte, i int) []byte {
	binary.LittleEndian.PutUint64(b, uint64(i)*0x9e3779b97f4a7c15)
	binary.LittleEndian.PutUint64(b[8:], uint64(i))
	return b
}

// A value begins with its key's number, a random number, and a checksum of both; it ends with
// the checksum again, and has zeros between.
const (
	drawnOffset    = 8
	checksumOffset = 16
	checksumBytes  = 8
)

// checksum mixes a key's number and a drawn number into 64 bits, cheaply.
func checksum(i, drawn uint64) uint64 {
	h, l := bits.Mul64(i^0xa0761d6478bd642f, drawn^0xe7037ed1a0b428db)
	return h ^ l
}

// fillValue fills b with the value of key i, and returns it.
func fillValue(b []byte, i int, drawn uint64) []byte {
	sum := checksum(uint64(i), drawn)
	binary.LittleEndian.PutUint64(b, uint64(i))
	binary.LittleEndian.PutUint64(b[drawnOffset:], drawn)
	binary.LittleEndian.PutUint64(b[checksumOffset:], sum)
	binary.LittleEndian.PutUint64(b[len(b)-checksumBytes:], sum)
	return b
}

// checkValue returns an error if b is not a value of key i.
func checkValue(b []byte, i, bytes int) error {
	if len(b) == bytes && binary.LittleEndian.Uint64(b) == uint64(i) {
		sum := checksum(uint64(i), binary.LittleEndian.Uint64(b[drawnOffset:]))
		if binary.LittleEndian.Uint64(b[checksumOffset:]) == sum && binary.LittleEndian.Uint64(b[len(b)-checksumBytes:]) == sum {
			return nil
		}
	}
	return fmt.Errorf("kv: %w: key %d has the value %x", bench.ErrInconsistent, i, b)
}

// Check implements bench.Workload: each pair must be a valid one, and their number must be the
// number loaded. The stores see to it that no key occurs twice.
func (w *Workload) Check(ctx context.Context) error {
	n, bytes := 0, 0
	err := w.store.each(ctx, func(key, value []byte) error {
		n++
		bytes += len(key) + len(value)
		if len(key) == keyBytes {
			i := binary.LittleEndian.Uint64(key[8:])
			var want [keyBytes]byte
			if i < uint64(w.cfg.Keys) && string(fillKey(want[:], int(i))) == string(key) {
				return checkValue(value, int(i), w.cfg.ValueBytes)
			}
		}
		return fmt.Errorf("kv: %w: there is a key %x", bench.ErrInconsistent, key)
	})
	if err == nil && n != w.cfg.Keys {
		err = fmt.Errorf("kv: %w: %d keys, want %d", bench.ErrInconsistent, n, w.cfg.Keys)
	}
	w.space = nil
	if s, ok := w.store.(*nativeStore); ok && err == nil {
		w.space = bench.NewSpace(int64(bytes), s.memory)
	}
	return err
}

// Space implements bench.Spacious. Only the native store can tell.
func (w *Workload) Space() *bench.Space { return w.space }

// nearestPower returns the power of two whose ratio to x is nearest to 1; 1 if x is below 1.
func nearestPower(x float64) int { return 1 << max(0, int(math.Round(math.Log2(x)))) }
