package bench

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
)

// HashAt creates a hash table all of which lives at one machine, or finds the one
// of that name, and returns each machine's handle: it is for data that are
// partitioned by hand.
func (t *Target) HashAt(ctx context.Context, at int, name string, cfg hash.Config) ([]*hash.Table, error) {
	places, err := t.Places(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Places = places[at : at+1]
	return handles(t, at, name, func(m machine) (*hash.Table, error) { return m.db.Hash(ctx, m.i, name, cfg) })
}

// TreeAt is HashAt for B-trees.
func (t *Target) TreeAt(ctx context.Context, at int, name string, cfg btree.Config) ([]*btree.Tree, error) {
	return handles(t, at, name, func(m machine) (*btree.Tree, error) { return m.db.Tree(ctx, m.i, name, cfg) })
}

// handles opens an index at all machines, and first at the one that is to make it.
func handles[H any](t *Target, at int, name string, open func(machine) (H, error)) ([]H, error) {
	var all []H
	_, err := open(t.machines[at])
	for _, m := range t.machines {
		var h H
		if err == nil {
			h, err = open(m)
		}
		all = append(all, h)
	}
	if err != nil {
		return nil, fmt.Errorf("bench: index %s: %w", name, err)
	}
	return all, nil
}
