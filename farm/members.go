package farm

import (
	"context"
	"errors"
	"sync"

	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// OpenMembers is OpenMember for machines that are in one process, and begin together: each
// answers the others before one asks, and one makes the root object. If one cannot be
// opened, none is. leases, which makes their keepers, is to be ended before they are closed.
func OpenMembers(ctx context.Context, leases *lease.Together, cfgs []MemberConfig) ([]*Member, error) {
	members := make([]*Member, len(cfgs))
	for i, cfg := range cfgs {
		cfg.Keeper = func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
			return leases.Join(e.Self(), expired), nil
		}
		members[i] = newMember(cfg)
	}
	for _, step := range []func(context.Context, []*Member) error{prepareAll, beginAll, openRoots} {
		if err := step(ctx, members); err != nil {
			leases.End()
			return nil, errors.Join(err, closeMembers(members))
		}
	}
	return members, nil
}

func prepareAll(ctx context.Context, members []*Member) error {
	for _, m := range members {
		if err := m.prepare(ctx); err != nil {
			return m.opening(err)
		}
	}
	return nil
}

// beginAll has all begin at the same time. The first one that cannot ends the attempt of
// the others, who would wait for it.
func beginAll(ctx context.Context, members []*Member) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // never held across a wait
	var failed error
	var all group
	all.init(members[0].clock)
	for _, m := range members {
		all.run(func() {
			err := m.begin(ctx)
			if err == nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if failed == nil {
				failed = m.opening(err)
			}
			cancel()
		})
	}
	all.wait()
	return failed
}

// openRoots has one after the other find the root object, so that the first makes it in a new
// instance, and nobody else.
func openRoots(ctx context.Context, members []*Member) error {
	for _, m := range members {
		if err := m.openRoot(ctx); err != nil {
			return m.opening(err)
		}
	}
	return nil
}

func closeMembers(members []*Member) error {
	var errs []error
	for _, m := range members {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
