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

// session returns the state of a new client or loader at a machine.
func (s *nativeStore) session(at int) native {
	return native{m: s.target.Machine(at), at: at, partitions: s.partitions[at]}
}

func (s *nativeStore) loader(ctx context.Context, at int) *nativeLoader {
	return &nativeLoader{ctx: ctx, native: s.session(at)}
}

// itemLoaders implements store: each machine has its copy.
func (s *nativeStore) itemLoaders(ctx context.Context) (all []loader, err error) {
	for _, at := range s.target.Here() {
		all = append(all, s.loader(ctx, at))
	}
	return all, nil
}

// warehouseLoader implements store. The loader works at the machine of the warehouse's partition.
func (s *nativeStore) warehouseLoader(ctx context.Context, warehouse int) (loader, error) {
	return s.loader(ctx, partitionOf(warehouse, len(s.partitions))), nil
}

// client implements store. A client has the warehouses of its machine, or all warehouses if the
// machine has none.
func (s *nativeStore) client(_ context.Context, th *bench.Thread, warehouses int) (database, []int, error) {
	at := th.Machine
	x := s.session(at)
	x.client = th.Number
	own := make([]int, 0, warehouses/len(s.partitions)+1)
	for w := 1; w <= warehouses; w++ {
		if partitionOf(w, len(s.partitions)) == at || warehouses <= at { // or the machine has none
			own = append(own, w)
		}
	}
	return &x, own, nil
}

// read implements store. The first machine of this process reads the partitions of machines that are
// in other processes.
func (s *nativeStore) read(ctx context.Context, l *ledger) error {
	for at := range s.partitions {
		user := at // the machine that reads
		if !s.target.Has(at) {
			user = s.target.Here()[0]
		}
		r := reader{partition: &s.partitions[user][at], ctx: ctx, m: s.target.Machine(user), ledger: l}
		if err := r.read(); err != nil {
			return err
		}
	}
	return nil
}
