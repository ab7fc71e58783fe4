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

// openMembers is like OpenMember, for machines of one process that begin together: every machine can
// answer before any of them makes a call, and the first makes the root object. If one machine cannot
// be opened, none is. leases makes the machines' keepers; the caller must end it before it closes
// the machines.
func openMembers(ctx context.Context, leases *lease.Together, cfgs []MemberConfig) ([]*Member, error) {
	o := opening{members: make([]*Member, len(cfgs))}
	o.ctx, o.cancel = context.WithCancelCause(ctx)
	for i, cfg := range cfgs {
		cfg.Ended = o.endsWith(cfg.Ended)
		cfg.Keeper = func(e *call.Endpoint, expired func(rdma.MachineID)) (lease.Keeper, error) {
			return leases.Join(e.Self(), expired), nil
		}
		o.members[i] = newMember(cfg)
		o.members[i].delayReserve()
	}
	if err := o.run(); err != nil {
		leases.End()
		return nil, errors.Join(err, closeMembers(o.members))
	}
	for _, m := range o.members {
		m.takeDelayedReserve()
	}
	return o.members, nil
}

// An opening is the state of openMembers while machines begin together.
type opening struct {
	members []*Member
	ctx     context.Context // ends with the opening, or when a machine ends
	cancel  context.CancelCauseFunc
}

// An endedEarly is the cause of an opening's end if a machine has ended.
type endedEarly struct{ error }

func (e *endedEarly) Unwrap() error { return e.error }

// errOpened is the cause of an opening's end if it has succeeded.
var errOpened = errors.New("farm: opened")

// run takes all machines through the steps of opening. If a machine ends meanwhile, the error has its
// reason first: other errors follow from that.
func (o *opening) run() error {
	steps := []func(context.Context, []*Member) error{
		inTurn((*Member).recognize), inTurn((*Member).check), inTurn((*Member).recall), inTurn((*Member).prepare),
		beginAll, settleAll, inTurn((*Member).openRoot),
	}
	for _, step := range steps {
		if err := step(o.ctx, o.members); err != nil {
			o.cancel(err)
			if early := new(endedEarly); errors.As(context.Cause(o.ctx), &early) {
				err = errors.Join(early, err)
			}
			return err
		}
	}
	// Only the first cancel sets the cause: if a machine has ended meanwhile, its reason stays.
	o.cancel(errOpened)
	if context.Cause(o.ctx) != errOpened {
		return context.Cause(o.ctx)
	}
	return nil
}

// endsWith returns the function to call when a machine ends. During the opening it ends the opening
// of all machines, since the others would wait for this one, and the opening returns the reason.
// After an opening that has succeeded it calls ended, the caller's function, which may be nil.
func (o *opening) endsWith(ended func(error)) func(error) {
	return func(reason error) {
		early := &endedEarly{reason}
		o.cancel(early) // without effect if the opening is over
		switch cause := context.Cause(o.ctx); {
		case cause == early:
			for _, m := range o.members { // all are prepared: a machine can end only after that step
				m.txn.Evict()
			}
		case cause == errOpened && ended != nil:
			ended(reason)
		}
	}
}

// inTurn makes the machines take a step one after the other, not concurrently: they may share a
// file system, and room that one frees is then available to the next. As a consequence, the first
// machine makes the root object of a new instance.
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

// check returns an error if the machine cannot use a replica that the last configuration gives it.
// Without this check the other machines, which have replicas of most regions, would continue
// without this machine, and the user would not notice the loss.
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

// checkReplicas returns an error if a replica that is complete according to c cannot be used. It leaves the
// replicas mapped for their later use.
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

// beginAll starts all machines concurrently. The first that fails ends the attempt of the others,
// which would wait for it.
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

// settleAll waits until nothing is left to recover, so that a machine that lacks room for recovery
// fails during the opening.
func settleAll(ctx context.Context, members []*Member) error {
	for _, m := range members {
		for m.settledFor.Load() < uint32(m.membership.Configuration().ID) || m.txn.Recovery().IsGoing() {
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
