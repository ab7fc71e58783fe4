package farmsql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// nativeSetting is the catalog's setting that lists the native indexes.
const nativeSetting = "native"

// ErrOtherKind means that an index of the other kind has this name.
var ErrOtherKind = errors.New("farmsql: the name belongs to an index of another kind")

// A native describes a native index: its name, its kind and its anchor.
type native struct {
	Name   string
	Kind   string
	Anchor []byte // in the encoding of region.Ptr.Append
}

const (
	kindTree = "btree"
	kindHash = "hash"
)

// Run runs a native transaction on the first machine of this process, and repeats it after
// conflicts: see txn.Machine.Run.
func (db *DB) Run(ctx context.Context, fn func(*txn.Tx) error) error {
	return db.Machine(0).Run(ctx, fn)
}

// Tree returns the native B-tree of this name, for transactions of the first machine of this
// process. It creates the tree with cfg if there is none. The tree is as durable as a table, but
// invisible to SQL. Check takes the tree's values for pointers to objects.
func (db *DB) Tree(ctx context.Context, name string, cfg btree.Config) (*btree.Tree, error) {
	return db.TreeAt(ctx, 0, name, cfg)
}

// TreeAt is like Tree, for transactions of machine i, counted from 0.
func (db *DB) TreeAt(ctx context.Context, i int, name string, cfg btree.Config) (*btree.Tree, error) {
	anchor, err := db.native(ctx, i, name, kindTree, func(t *txn.Tx) (region.Ptr, error) {
		return btree.Create(t, cfg, 0)
	})
	if err != nil {
		return nil, err
	}
	return db.catalogs[i].Tree(anchor), nil
}

// Hash is like Tree, for hash tables. Their values are bytes, and Check does not follow pointers in
// them. Single operations (PutNow and so on) are shipped to the primary of the key's shard. If the
// table is opened at its Anchor by hash.OpenWith, the option Lookups says when lookups are shipped, too.
func (db *DB) Hash(ctx context.Context, name string, cfg hash.Config) (*hash.Table, error) {
	return db.HashAt(ctx, 0, name, cfg)
}

// HashAt is like Hash, for transactions of machine i, counted from 0.
func (db *DB) HashAt(ctx context.Context, i int, name string, cfg hash.Config) (*hash.Table, error) {
	anchor, err := db.native(ctx, i, name, kindHash, func(t *txn.Tx) (region.Ptr, error) {
		return hash.Create(t, cfg, 0)
	})
	if err != nil {
		return nil, err
	}
	return db.catalogs[i].Hash(anchor), nil
}

// native returns the anchor of the index of this name. It creates the index if there is none.
func (db *DB) native(ctx context.Context, machine int, name, kind string, create func(*txn.Tx) (region.Ptr, error)) (anchor region.Ptr, err error) {
	c := db.catalogs[machine]
	err = db.Machine(machine).Run(ctx, func(t *txn.Tx) error {
		stored, err := c.Setting(t, nativeSetting)
		if err != nil {
			return err
		}
		all, err := decodeNatives(stored)
		if err != nil {
			return err
		}
		for _, n := range all {
			if n.Name == name {
				anchor, err = n.anchor(kind)
				return err
			}
		}
		if anchor, err = create(t); err != nil {
			return err
		}
		text, err := json.Marshal(append(all, native{Name: name, Kind: kind, Anchor: anchor.Append(nil)}))
		if err != nil {
			return err
		}
		return c.PutSetting(t, nativeSetting, text)
	})
	if err != nil {
		return region.Ptr{}, withPrefix(fmt.Sprintf("index %q: ", name), err)
	}
	return anchor, nil
}

func decodeNatives(stored []byte) (all []native, err error) {
	if len(stored) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(stored, &all); err != nil {
		return nil, fmt.Errorf("names of native indexes: %w", err)
	}
	return all, nil
}

func (n native) anchor(kind string) (region.Ptr, error) {
	if n.Kind != kind {
		return region.Ptr{}, ErrOtherKind
	}
	return region.DecodePtr(n.Anchor)
}

// checkNatives walks the native indexes and calls object for their objects.
func (db *DB) checkNatives(ctx context.Context, object func(region.Ptr) error) error {
	var all []native
	err := db.Machine(0).Run(ctx, func(t *txn.Tx) error {
		stored, err := db.catalogs[0].Setting(t, nativeSetting)
		if err == nil {
			all, err = decodeNatives(stored)
		}
		return err
	})
	var errs []error
	for _, n := range all {
		if err := db.checkNative(ctx, n, object); err != nil {
			errs = append(errs, fmt.Errorf("native index %q: %w", n.Name, err))
		}
	}
	return errors.Join(append(errs, err)...)
}

func (db *DB) checkNative(ctx context.Context, n native, object func(region.Ptr) error) error {
	anchor, err := n.anchor(n.Kind)
	if err != nil {
		return err
	}
	if n.Kind == kindHash {
		return db.catalogs[0].Hash(anchor).Check(ctx, hash.Visitor{Node: object})
	}
	_, err = db.catalogs[0].Tree(anchor).Inspect(ctx, btree.Visitor{Node: object, Entry: func(_ []byte, p region.Ptr) error {
		if p.IsNil() {
			return nil
		}
		return object(p)
	}})
	return err
}
