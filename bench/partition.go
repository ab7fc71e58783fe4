package bench

import (
	"context"
	"fmt"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
)

// Hash creates a hash table whose shards are spread over all machines, or finds the table of that
// name. Machine 0 creates it. Hash returns the handles of the machines in this process, by machine. All
// processes call Hash, HashAt and TreeAt in the same order.
func (t *Target) Hash(ctx context.Context, name string, cfg hash.Config, places []region.Addr) ([]*hash.Table, error) {
	cfg.Places = places
	return handles(ctx, t, 0, name, func(m machine) (*hash.Table, error) { return m.db.HashAt(ctx, m.i, name, cfg) })
}

// HashAt creates a hash table on a single machine, or finds the table of that name,
// and returns handles as Hash does. It is for data that are partitioned by hand.
func (t *Target) HashAt(ctx context.Context, at int, name string, cfg hash.Config) ([]*hash.Table, error) {
	places, err := t.Places(ctx)
	if err != nil {
		return nil, err
	}
	cfg.Places = places[at : at+1]
	return handles(ctx, t, at, name, func(m machine) (*hash.Table, error) { return m.db.HashAt(ctx, m.i, name, cfg) })
}

// TreeAt is like HashAt, but for B-trees.
func (t *Target) TreeAt(ctx context.Context, at int, name string, cfg btree.Config) ([]*btree.Tree, error) {
	return handles(ctx, t, at, name, func(m machine) (*btree.Tree, error) { return m.db.TreeAt(ctx, m.i, name, cfg) })
}

// handles opens an index at the machines of this process. The machine creator opens it first, which
// creates it; the others wait for that at a barrier.
func handles[H any](ctx context.Context, t *Target, creator int, name string, open func(machine) (H, error)) ([]H, error) {
	all := make([]H, t.Machines())
	var err error
	if t.Has(creator) {
		_, err = open(t.machines[creator])
	}
	if err == nil {
		err = t.Barrier(ctx)
	}
	for _, i := range t.Here() {
		if err == nil {
			all[i], err = open(t.machines[i])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("bench: index %s: %w", name, err)
	}
	return all, nil
}
