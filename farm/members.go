package farm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/cluster/lease"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/call"
)

// openMembers is OpenMember for machines that are in one process, and begin together: each
// answers the others before one asks, and one makes the root object. If one cannot be
// opened, none is. leases, which makes their keepers, is to be ended before they are closed.
func openMembers(ctx context.Context, leases *lease.Together, cfgs []MemberConfig) ([]*Member, error) {
	o := opening{members: make([]*Member, len(cfgs))}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	for i, cfg := range cfgs {
		cfg.Ended = o.endsWith(cfg.Ended)
		cfg.Keeper = func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
			return leases.Join(e.Self(), expired), nil
		}
		o.members[i] = newMember(cfg)
		o.members[i].keepNoRoom()
	}
	if err := o.run(); err != nil {
		leases.End()
		return nil, errors.Join(err, closeMembers(o.members))
	}
	for _, m := range o.members {
		m.begunTogether()
	}
	return o.members, nil
}

// An opening is of machines that begin together.
type opening struct {
	members []*Member
	ctx     context.Context // ends with the opening, or when a machine ends
	cancel  context.CancelCauseFunc
}

// An endedEarly is the cause of an opening's end that a machine has ended.
type endedEarly struct{ error }

func (e *endedEarly) Unwrap() error { return e.error }

// errOpened is the cause of the end of an opening that has come to its end.
var errOpened = errors.New("farm: opened")

func (o *opening) run() error {
	for _, step := range []func(context.Context, []*Member) error{
		inTurn((*Member).recognize), inTurn((*Member).check), inTurn((*Member).recall), inTurn((*Member).prepare), beginAll, settleAll, inTurn((*Member).openRoot),
	} {
		if err := step(o.ctx, o.members); err != nil {
			o.cancel(err)
			if early := new(endedEarly); errors.As(context.Cause(o.ctx), &early) {
				err = errors.Join(early, err)
			}
			return err
		}
	}
	if o.cancel(errOpened); context.Cause(o.ctx) != errOpened {
		return context.Cause(o.ctx)
	}
	return nil
}

// endsWith has the end of a machine end the opening of all: the others would wait for it. Who opens
// them is told by that, and ended only of what comes after.
func (o *opening) endsWith(ended func(error)) func(error) {
	return func(reason error) {
		early := &endedEarly{reason}
		o.cancel(early)
		switch cause := context.Cause(o.ctx); {
		case cause == early:
			for _, m := range o.members { // all have been prepared: this one has begun
				m.txn.Evict()
			}
		case cause == errOpened && ended != nil:
			ended(reason)
		}
	}
}

// inTurn has one machine after the other take a step. What a step of one does it has done before
// the next step of another: they may be on the same file system, and room that one gives back is
// there for the others. So the first of them makes the root object of a new instance, and nobody else.
func inTurn(step func(*Member, context.Context) error) func(context.Context, []*Member) error {
	return func(ctx context.Context, members []*Member) error {
		for _, m := range members {
			if err := step(m, ctx); err != nil {
				return m.opening(err)
			}
		}
		return nil
	}
}

// check returns an error if the machine cannot use what the last configuration says that it has:
// the others, who have replicas of most of it, would go on without it.
func (m *Member) check(context.Context) error {
	if m.stored == nil {
		return nil
	}
	err := m.checkReplicas(m.stored)
	if f, isFolder := m.cfg.Memory.(*nvram.Folder); isFolder && err != nil {
		return fmt.Errorf("%w, in %s; %s", err, f.Path(), m.cfg.Settings.remedy())
	}
	return err
}

// checkReplicas returns an error if a replica that c says is whole cannot be used. What it maps
// it leaves to who is given the replica.
func (m *Member) checkReplicas(c *cluster.Configuration) error {
	names, err := m.memory.Names()
	if err != nil {
		return err
	}
	for _, p := range c.Regions {
		if !p.Has(m.id) || slices.Contains(p.Filling, m.id) {
			continue
		}
		name := regionName(p.Region)
		switch {
		case !slices.Contains(names, name):
			return fmt.Errorf("%w: there is no %s", nvram.ErrLost, name)
		case !c.IsMember(m.cfg.Self):
			return fmt.Errorf("%w: %s is not the one that was there", nvram.ErrLost, name)
		}
		r, err := m.mapRegion(p.Region, m.cfg.Settings.RegionBytes)
		if err != nil {
			return err
		}
		m.memories.leave(name, r.Memory())
	}
	return nil
}

// beginAll has all begin at the same time. The first one that cannot ends the attempt of
// the others, who would wait for it.
func beginAll(ctx context.Context, members []*Member) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu lockrank.Mutex[lockrank.Leaf] // never held across a wait
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

// settleAll waits until nothing is left to recover: whoever has no room for what recovery needs
// has noticed by then.
func settleAll(ctx context.Context, members []*Member) error {
	for _, m := range members {
		for m.settledFor.Load() < uint32(m.membership.Configuration().ID) || m.txn.Recovering() {
			if err := errors.Join(m.membership.Err(), ctx.Err()); err != nil {
				return m.opening(err)
			}
			m.clock.Sleep(settlePoll)
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
