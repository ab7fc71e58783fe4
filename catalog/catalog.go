package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// The first byte of a name in the directory is the kind of the object.
const (
	nameDatabase = 'd'
	nameTable    = 't'
	nameSetting  = 's'
	nameDropped  = 'x'
	nameForeign  = 'f'
	nameAccount  = 'a'
)

// A Definer is a kind of Definition.
type Definer byte

const (
	View      Definer = 'v'
	Trigger   Definer = 'g'
	Procedure Definer = 'p'
	Event     Definer = 'e'
)

// anchorBytes is the payload of the anchor: the root of the directory.
const anchorBytes = region.PtrBytes

// headBytes is the payload of a table's head: id, generation, alteration owner
// and the body.
const headBytes = 24 + region.PtrBytes

// A Catalog is one machine's access to the catalog.
type Catalog struct {
	m         *txn.Machine
	names     *btree.Tree
	sequences *Sequences
	ownsSeq   bool
	freeRow   func(*txn.Tx, region.Ptr) error
	server    *hash.Server
	lives     Lives
	sweeper   sweeper

	triggerTable  func(*Definition) string // Config.TriggerTable
	triggerTables triggerTables

	mu struct {
		lockrank.RWMutex[lockrank.Catalog]
		tables map[string]*Table
		trees  map[region.Ptr]*btree.Tree
		hashes map[region.Ptr]*hash.Table
		// prune checks the cached tables once there are tablesMax, and the handles once there are
		// handlesMax.
		tablesMax, handlesMax int
	}
}

// Config configures a catalog.
type Config struct {
	// Sequences is shared by the catalogs of all machines in a process, so that these reserve
	// numbers together. Nil: this machine has its own.
	Sequences *Sequences
	// Hashes, if not nil, holds the machine's handles of hash tables, and runs the
	// operations that other machines ship to shards on this machine.
	Hashes *hash.Server
	// Lives says which other machines work on the instance. Nil: none.
	Lives Lives
	// FreeRow frees a row, and the objects that it points to, in a transaction of the sweeper.
	// Nil: each row is one object.
	FreeRow func(*txn.Tx, region.Ptr) error
	// TriggerTable returns the name of the table that a trigger belongs to, or "" if its text does not
	// say it. Nil: no text does.
	TriggerTable func(*Definition) string
}

// Open opens the catalog that the root object points to, and creates an empty
// one if there is none. The root object's first bytes belong to the catalog.
func Open(ctx context.Context, m *txn.Machine, root region.Ptr, cfg Config) (*Catalog, error) {
	var directory region.Ptr
	err := m.Run(ctx, func(t *txn.Tx) (err error) {
		directory, err = openAnchor(t, root)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("catalog: open: %w", err)
	}
	c := &Catalog{m: m, names: btree.Open(m, directory), sequences: cfg.Sequences, freeRow: cfg.FreeRow, server: cfg.Hashes, lives: cfg.Lives, triggerTable: cfg.TriggerTable}
	if c.freeRow == nil {
		c.freeRow = func(t *txn.Tx, p region.Ptr) error { return t.Free(p) }
	}
	if c.sequences == nil {
		c.sequences, c.ownsSeq = NewSequences(m), true
	}
	c.mu.tables, c.mu.tablesMax, c.mu.handlesMax = make(map[string]*Table), pruneLeast, pruneLeast
	c.mu.trees = make(map[region.Ptr]*btree.Tree)
	c.mu.hashes = make(map[region.Ptr]*hash.Table)
	c.sweeper.init(m.Clock())
	if c.lives == nil {
		c.lives = onlyLife(m.Clock().Uint64())
	}
	if err := c.endOrphans(ctx); err != nil {
		return nil, fmt.Errorf("catalog: open: %w", err)
	}
	c.startSweeper()
	return c, nil
}

// openAnchor returns the root of the directory. It creates an empty directory if the
// root object has no pointer yet.
func openAnchor(t *txn.Tx, root region.Ptr) (region.Ptr, error) {
	b, err := t.Read(root)
	if err != nil {
		return region.Ptr{}, err
	}
	anchor, err := region.DecodePtr(b)
	if err != nil {
		return region.Ptr{}, err
	}
	if !anchor.IsNil() {
		if b, err = t.Read(anchor); err != nil {
			return region.Ptr{}, err
		}
		return region.DecodePtr(b)
	}
	directory, err := btree.Create(t, btree.Config{}, root.Addr)
	if err != nil {
		return region.Ptr{}, err
	}
	anchor, payload, err := t.Alloc(anchorBytes, root.Addr)
	if err != nil {
		return region.Ptr{}, err
	}
	copy(payload, directory.Append(nil))
	w, err := t.Write(root)
	if err != nil {
		return region.Ptr{}, err
	}
	copy(w, anchor.Append(nil))
	return directory, nil
}

// Close gives reserved numbers back and stops the sweeper.
func (c *Catalog) Close(ctx context.Context) error {
	c.closeSweeper()
	if c.ownsSeq {
		return c.sequences.Close(ctx)
	}
	return nil
}

// Machine returns the machine that the catalog runs on.
func (c *Catalog) Machine() *txn.Machine { return c.m }

// Sequences returns the sequences of this catalog.
func (c *Catalog) Sequences() *Sequences { return c.sequences }

// Tree returns this machine's handle of a B-tree, whose cache all users share.
func (c *Catalog) Tree(anchor region.Ptr) *btree.Tree {
	return handle(c, anchor, c.mu.trees, btree.Open)
}

// Hash returns this machine's handle of a hash table.
func (c *Catalog) Hash(anchor region.Ptr) *hash.Table {
	if c.server != nil {
		return c.server.Open(anchor)
	}
	return handle(c, anchor, c.mu.hashes, hash.Open)
}

// handle returns the handle of a structure from handles, a map in c.mu. If there is none, it opens
// one.
func handle[T any](c *Catalog, anchor region.Ptr, handles map[region.Ptr]*T, open func(*txn.Machine, region.Ptr) *T) *T {
	c.mu.RLock()
	h := handles[anchor]
	c.mu.RUnlock()
	if h != nil {
		return h
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h = handles[anchor]
	if h == nil {
		if len(c.mu.trees)+len(c.mu.hashes) >= c.mu.handlesMax {
			c.pruneHandlesLocked()
		}
		h = open(c.m, anchor)
		handles[anchor] = h
	}
	return h
}

// forgetHandle drops the cached handle of a structure that has been destroyed.
func (c *Catalog) forgetHandle(s Storage) {
	c.mu.Lock()
	delete(c.mu.trees, s.Anchor)
	delete(c.mu.hashes, s.Anchor)
	c.mu.Unlock()
	if c.server != nil {
		c.server.Forget(s.Anchor)
	}
}

// change notes that a transaction changes the catalog. From then on the transaction
// reads names from the directory, not from the machine's cache, and puts nothing into
// the cache.
func (c *Catalog) change(t *txn.Tx) { t.SetLocal(c, true) }

// Changed reports whether the transaction changes the catalog.
func (c *Catalog) Changed(t *txn.Tx) bool { return t.Local(c) != nil }

// nameKey returns the directory's key of a name. Names are compared without case, and
// cannot contain a zero byte.
func nameKey(kind byte, parts ...string) []byte {
	n := 1 + len(parts) // with room for the separator that rangeUnder adds
	for _, p := range parts {
		n += len(p)
	}
	key := append(make([]byte, 0, n), kind)
	for i, p := range parts {
		if i > 0 {
			key = append(key, 0)
		}
		key = append(key, strings.ToLower(p)...)
	}
	return key
}

// rangeUnder returns the range of keys that begin with the given key, which it takes over, and a
// separator.
func rangeUnder(key []byte) (lo, hi []byte) {
	lo = append(key, 0)
	hi = bytes.Clone(lo)
	hi[len(hi)-1] = 1
	return lo, hi
}

// ofKind returns the range of all keys of a kind.
func ofKind(kind byte) (lo, hi []byte) { return []byte{kind}, []byte{kind + 1} }

// list collects the objects in a range of the directory.
func (c *Catalog) list(t *txn.Tx, lo, hi []byte) (keys [][]byte, ptrs []region.Ptr, err error) {
	cur := c.names.Scan(t, lo, hi, false)
	for {
		key, p, ok, err := cur.Next()
		if err != nil || !ok {
			return keys, ptrs, err
		}
		keys, ptrs = append(keys, bytes.Clone(key)), append(ptrs, p)
	}
}

// put stores b, with its length first, in the object at p. If p is nil, or the object too
// small, it stores b in a new object, and frees the old one. It returns the pointer to the
// object that holds b.
func put(t *txn.Tx, p region.Ptr, b []byte) (region.Ptr, error) {
	n := 4 + len(b)
	if n > region.MaxPayload {
		return region.Ptr{}, ErrTooLarge
	}
	var payload []byte
	var err error
	if !p.IsNil() && n <= p.Capacity() {
		payload, err = t.Write(p)
	} else {
		if !p.IsNil() {
			if err := t.Free(p); err != nil {
				return region.Ptr{}, err
			}
		}
		p, payload, err = t.Alloc(n, 0)
	}
	if err != nil {
		return region.Ptr{}, err
	}
	binary.LittleEndian.PutUint32(payload, uint32(len(b)))
	clear(payload[4+copy(payload[4:], b):])
	return p, nil
}

// get returns the bytes at p, which an earlier call of put has stored there.
func get(t *txn.Tx, p region.Ptr) ([]byte, error) {
	payload, err := t.Read(p)
	if err != nil {
		return nil, err
	}
	return contents(payload)
}

// contents returns the bytes that put stored in an object with this payload.
func contents(payload []byte) ([]byte, error) {
	if len(payload) < 4 || int(binary.LittleEndian.Uint32(payload)) > len(payload)-4 {
		return nil, ErrCorrupt
	}
	return payload[4 : 4+binary.LittleEndian.Uint32(payload)], nil
}

// insert adds a name to the directory, and notes the change of the catalog. It returns ErrExists if the
// name is there already.
func (c *Catalog) insert(t *txn.Tx, key []byte, p region.Ptr) error {
	c.change(t)
	err := c.names.Insert(t, key, p)
	if errors.Is(err, btree.ErrExists) {
		return ErrExists
	}
	return err
}

// remove takes a name out of the directory, and notes the change of the catalog. It returns ErrNotFound
// if the name is not there.
func (c *Catalog) remove(t *txn.Tx, key []byte) error {
	c.change(t)
	ok, err := c.names.Delete(t, key)
	if err == nil && !ok {
		err = ErrNotFound
	}
	return err
}
