package tpcc

import (
	"context"

	"github.com/farmsql/farmsql/bench"
)

// A nativeStore is the database on the native API.
type nativeStore struct {
	target     *bench.Target
	partitions partitioning
}

// create implements store.
func (s *nativeStore) create(ctx context.Context) (err error) {
	s.partitions, err = openPartitions(ctx, s.target)
	return err
}

func (s *nativeStore) session(at int) native {
	return native{m: s.target.Machine(at), at: at, partitions: s.partitions[at]}
}

func (s *nativeStore) loader(ctx context.Context, at int) *nativeLoader {
	return &nativeLoader{ctx: ctx, native: s.session(at)}
}

// itemLoaders implements store: each machine has its copy.
func (s *nativeStore) itemLoaders(ctx context.Context) (all []loader, err error) {
	for at := range s.partitions {
		all = append(all, s.loader(ctx, at))
	}
	return all, nil
}

// warehouseLoader implements store.
func (s *nativeStore) warehouseLoader(ctx context.Context, warehouse int) (loader, error) {
	return s.loader(ctx, partitionOf(warehouse, len(s.partitions))), nil
}

// client implements store. Clients are dealt out to the machines, and have the
// warehouses of theirs; those of a machine without have all.
func (s *nativeStore) client(_ context.Context, th *bench.Thread, number uint32, warehouses int) (database, []int, error) {
	at := th.Index % len(s.partitions)
	x := s.session(at)
	x.client = number
	own := make([]int, 0, warehouses/len(s.partitions)+1)
	for w := 1; w <= warehouses; w++ {
		if partitionOf(w, len(s.partitions)) == at || warehouses <= at {
			own = append(own, w)
		}
	}
	return &x, own, nil
}

// read implements store.
func (s *nativeStore) read(ctx context.Context, l *ledger) error {
	for at := range s.partitions {
		r := reader{partition: &s.partitions[at][at], ctx: ctx, m: s.target.Machine(at), ledger: l}
		if err := r.read(); err != nil {
			return err
		}
	}
	return nil
}
