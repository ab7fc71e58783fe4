package simtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// store is the data of the workload: objects, a hash table, and a B-tree whose entries point to
// rows. In the history, each half of an object and each key is an object of its own, and its value
// fills all of its bytes. Each key also has a tombstone, an object that always exists. A deletion
// writes the tombstone, and the key then has the tombstone's value.
type store struct {
	objects    []region.Ptr
	hashTombs  []region.Ptr
	treeTombs  []region.Ptr
	tree, hash region.Ptr // anchors
	// annex is the anchor of the hash table that errands change; registers has the possible values
	// of its keys.
	annex     region.Ptr
	registers map[string]*register
	// catalog points to the catalog.
	catalog    region.Ptr
	tableTombs []region.Ptr
	// workload points to the catalog of the workload.
	workload region.Ptr
}

// Objects of the history: kind and number.
const (
	plain = iota // the number is twice the object's plus the half's (0 or 1)
	inHash
	inTree
	inCatalog
	inWorkload
)

// objectOf numbers the objects of all kinds for the history.
func objectOf(kind, i int) history.Object { return history.Object(kind<<16 | i) }

// halfOf returns the history's object for one half of plain object i.
func halfOf(i, half int) history.Object { return objectOf(plain, 2*i+half) }

// name returns the name of an object for reports.
func (s *store) name(o history.Object) string {
	kind, i := o>>16, o&0xffff
	if kind == plain {
		return fmt.Sprintf("object-%d.%d", i/2, i%2)
	}
	return fmt.Sprintf("%s-%d", [...]string{inHash: "hash", inTree: "tree", inCatalog: "table"}[kind], i)
}

// halves returns the two halves of a payload, each of whole words.
func halves(b []byte) [2][]byte {
	middle := len(b) / 16 * 8
	return [2][]byte{b[:middle], b[middle:]}
}

func keyOf(i int) []byte { return fmt.Appendf(nil, "key %03d", i) }

// open creates a machine's handles, once there is a store.
func (s *store) open(n *node) {
	if !s.tree.IsNil() {
		n.tree, n.table = btree.Open(n.m, s.tree), n.server.Open(s.hash)
		n.twoSided = hash.OpenWith(n.m, s.hash, hash.Options{Lookups: lookup.OneTwoSided})
	}
	if !s.annex.IsNil() {
		n.annex = n.server.Open(s.annex)
	}
}

// fill fills a payload with a value.
func fill(b []byte, v history.Value) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

// errTorn means that a client read a value that no client wrote as a whole.
var errTorn = errors.New("simtest: a value is torn")

// valueOf reads a value that was written with fill.
func valueOf(b []byte) (history.Value, error) {
	v := binary.LittleEndian.Uint64(b)
	for rest := b; len(rest) >= 8; rest = rest[8:] {
		if binary.LittleEndian.Uint64(rest) != v {
			return 0, fmt.Errorf("%w: %x", errTorn, b)
		}
	}
	return history.Value(v), nil
}

// setUp creates the store, and spreads its objects over all machines.
func (r *run) setUp() (err error) {
	s := &r.store
	var places []region.Addr
	for i, n := range r.nodes {
		if !n.process.Do(func() { err = s.makeAt(r, n, i, &places) }) {
			return errDied
		}
		if err != nil {
			return err
		}
	}
	n := r.nodes[r.rng.IntN(len(r.nodes))]
	if !n.process.Do(func() {
		if err = s.makeIndexes(r, n, places); err == nil && r.options.Errands {
			err = s.makeAnnex(n, places)
		}
		if err == nil && r.options.Tables > 0 {
			err = s.makeTables(n, r.options.Tables)
		}
		if err == nil && r.options.Workload != nil {
			err = r.makeWorkload(n)
		}
	}) {
		return errDied
	}
	for _, n := range r.nodes {
		s.open(n)
	}
	return err
}

// placesMax bounds the number of machines over which a hash table is spread.
const placesMax = 32

// makeAt creates the objects whose number modulo the number of machines is i. It adds the first of them to
// places, unless these are enough.
func (s *store) makeAt(r *run, n *node, i int, places *[]region.Addr) error {
	for _, kind := range []struct {
		list  *[]region.Ptr
		count int
	}{{&s.objects, r.options.Objects}, {&s.hashTombs, r.options.Keys}, {&s.treeTombs, r.options.Keys}} {
		if *kind.list == nil {
			*kind.list = make([]region.Ptr, kind.count)
		}
		for k := i; k < kind.count; k += len(r.nodes) {
			err := n.runWithRoom(func(t *txn.Tx) (err error) {
				(*kind.list)[k], _, err = t.Alloc(8+r.rng.IntN(300), 0)
				return err
			})
			if err != nil {
				return err
			}
			if k == i && len(*places) < placesMax && kind.list == &s.objects {
				*places = append(*places, (*kind.list)[k].Addr)
			}
		}
	}
	return nil
}

// A memory that was full while the machines started has room again. But its machine gets no new
// regions until it notices the room: it checks at least every 5 s (package farm, roomPollMax).
const (
	roomPatience = 10 * time.Second
	roomPoll     = 50 * time.Millisecond
)

// runWithRoom runs f, again and again for roomPatience while there is no room.
func (n *node) runWithRoom(f func(t *txn.Tx) error) error {
	for waited := time.Duration(0); ; waited += roomPoll {
		err := n.m.Run(ctx, f)
		if !errors.Is(err, region.ErrFull) || waited >= roomPatience {
			return err
		}
		n.process.Sleep(roomPoll)
	}
}

// makeIndexes creates the B-tree at a random place, and the hash table on all places.
func (s *store) makeIndexes(r *run, n *node, places []region.Addr) error {
	return n.runWithRoom(func(t *txn.Tx) (err error) {
		if s.tree, err = btree.Create(t, btree.Config{LeafBytes: r.options.LeafBytes, InnerBytes: 600}, places[r.rng.IntN(len(places))]); err != nil {
			return err
		}
		s.hash, err = hash.Create(t, hash.Config{KeyBytes: 8, ValueBytes: 16, Buckets: r.options.Buckets, Seed: r.options.Seed, Places: places}, 0)
		return err
	})
}

// reachable returns all objects in use, and checks both indexes.
func (s *store) reachable(n *node) (ptrs []region.Ptr, err error) {
	ptrs = append(append(append(ptrs, s.objects...), s.hashTombs...), s.treeTombs...)
	add := func(p region.Ptr) error {
		ptrs = append(ptrs, p)
		return nil
	}
	if _, err := n.tree.Inspect(ctx, btree.Visitor{Node: add, Entry: func(_ []byte, row region.Ptr) error { return add(row) }}); err != nil {
		return nil, fmt.Errorf("the B-tree: %w", err)
	}
	if err := n.table.Check(ctx, hash.Visitor{Node: add}); err != nil {
		return nil, fmt.Errorf("the hash table: %w", err)
	}
	if n.annex != nil {
		more, err := s.reachableAnnex(n)
		if err != nil {
			return nil, fmt.Errorf("the table of the errands: %w", err)
		}
		ptrs = append(ptrs, more...)
	}
	if n.catalog != nil {
		more, err := s.reachableTables(n)
		if err != nil {
			return nil, fmt.Errorf("the catalog: %w", err)
		}
		ptrs = append(ptrs, more...)
	}
	if n.engine != nil {
		more, err := s.reachableWorkload(n)
		if err != nil {
			return nil, err
		}
		ptrs = append(ptrs, more...)
	}
	return ptrs, nil
}
