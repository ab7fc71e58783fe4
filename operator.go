package farmsql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
)

// An Operator works while a database is being opened and while it is open: see Config.Opening.
// It reports the state of an instance to people. It lets them give up lost memory (Forget),
// take the data off a machine (Drain), move regions (Move) and change the number of replicas
// (Resize). It is safe for concurrent use.
type Operator struct {
	cfg Config
	// member is this process's machine in its latest life; nil before the first.
	member atomic.Pointer[farm.Member]
	// local holds all machines of the instance, if they are in this process and open.
	local atomic.Pointer[farm.Local]
	// store is the configuration store of a machine in a cluster that keeps the configuration
	// itself; nil until it is open.
	store  atomic.Pointer[ownStore]
	isOpen atomic.Bool
	// attempt is the error of the last attempt at a step of opening; nil if it succeeded.
	attempt atomic.Pointer[string]

	ctx    context.Context // the context of the requests
	cancel context.CancelFunc
	ending sync.Once
	closed func() error // see Config.Opening
}

// Folder returns the folder of this process: that of its machine, in a cluster, and otherwise the
// data folder.
func (o *Operator) Folder() string {
	if o.cfg.Cluster != "" {
		return machineFolder(o.cfg.Folder, rdma.MachineID(o.cfg.MachineID))
	}
	return o.cfg.Folder
}

func newOperator(cfg Config) *Operator {
	o := &Operator{cfg: cfg}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// begin passes the operator to Config.Opening.
func (o *Operator) begin() (err error) {
	if o.cfg.Opening != nil {
		o.closed, err = o.cfg.Opening(o)
	}
	return err
}

// end ends the operator. Its pending requests fail.
func (o *Operator) end() (err error) {
	o.ending.Do(func() {
		o.cancel()
		if o.closed != nil {
			err = o.closed()
		}
	})
	return err
}

// failed records the error of the last attempt at a step of opening, for Status; nil clears it.
func (o *Operator) failed(err error) {
	if err == nil {
		o.attempt.Store(nil)
		return
	}
	text := err.Error()
	o.attempt.Store(&text)
}

// listen returns e extended so that failed attempts to become a member are also recorded in the
// operator.
func (o *Operator) listen(e membership.Events) membership.Events {
	tell := e.Failed
	e.Failed = func(what string, err error) {
		if !o.isOpen.Load() {
			o.failed(err)
		}
		tell(what, err)
	}
	return e
}

// Status returns the instance's state. It may be called even after the operator has ended.
func (o *Operator) Status() Status {
	if local := o.local.Load(); local != nil {
		s := statusOf(local.Status())
		s.Source, s.Process = StatusOfProcess, os.Getpid()
		for i := range s.Machines {
			s.Machines[i].FailureDomain = 0 // not shown, because each machine has a domain of its own
		}
		return s
	}
	var f farm.Status
	m := o.member.Load()
	if m != nil {
		f = m.Status()
	}
	s := statusOf(f)
	s.Source, s.Machine, s.Process = StatusOfMachine, o.cfg.MachineID, os.Getpid()
	s.Unavailable, s.Missing = f.Unavailable, ints(f.Missing)
	if own := o.store.Load(); own != nil {
		s.Founders, s.FoundersWanted = own.status()
		if n := foundersFor(s.Replicas); s.Protocol >= int(protocol.Resizes) && len(s.Founders) > 0 && n > len(s.Founders) { // the CM may have yet to ask for them
			s.FoundersWanted = max(s.FoundersWanted, n)
		}
		s.FoundersRival = own.rivalAt(clock.System{}.Now())
	}
	if m != nil {
		s.Lease = &LeaseStatus{f.IsValid, milliseconds(f.Length), f.KeptBy}
	}
	if !o.isOpen.Load() && s.Ended == "" {
		s.Starting = o.waitsFor(s)
	}
	return s
}

// waitsFor says in words what a machine with status s waits for while it is being opened.
func (o *Operator) waitsFor(s Status) string {
	var text string
	switch absent := s.Absences(); {
	case o.member.Load() == nil:
		return "reads its memory, and waits for the configuration at " + o.cfg.Cluster
	case len(s.Missing) > 0:
		text = "waits for a majority of the machines; missing are " + strings.Trim(fmt.Sprint(s.Missing), "[]")
	case s.Configuration == 0:
		text = "waits to become a member"
	case len(absent) > 0:
		var unavailable []string
		for _, a := range absent {
			unavailable = append(unavailable, a.String())
		}
		return "waits for regions that are unavailable " + strings.Join(unavailable, "; ")
	case s.Unavailable != "":
		text = "waits until it can serve: " + s.Unavailable
	default:
		text = "waits for the catalog"
	}
	if failure := o.attempt.Load(); failure != nil {
		text += ": " + *failure
	}
	return text
}

// ErrNoCluster means that an operation is only possible if the machines are separate processes,
// which fail one by one.
var ErrNoCluster = errors.New("farmsql: all machines of the instance are in one process: none of them is away alone")

// requestRetry is the time between two attempts while the configuration is changing.
const requestRetry = 50 * time.Millisecond

// Forget makes a cluster stop waiting for the memory of a machine that is not a member, because
// that memory is gone for ever. The regions that wait for no other memory are LOST for good, with
// everything in them. The caller must name exactly these regions, ascending: those whose
// RegionStatus.Away has only this machine. While the configuration is changing, Forget tries again
// until ctx is done. If the machine is one of those that keep the configuration, another member takes its place
// there, or the next machine that becomes a member.
//
// Errors: membership.ErrNotAwaited if no region waits for the machine or other regions than the named
// ones would be lost, ErrNoCluster, and, when ctx ends, its error, with that of the attempts.
func (o *Operator) Forget(ctx context.Context, machine int, lost []int) error {
	if o.local.Load() != nil {
		return ErrNoCluster
	}
	if err := checkMachine(machine); err != nil {
		return err
	}
	m := o.member.Load()
	if m == nil {
		return fmt.Errorf("farmsql: forget machine %d: this machine %s", machine, o.waitsFor(Status{}))
	}
	ids := make([]region.ID, len(lost))
	for i, id := range lost {
		if err := checkRegion(id); err != nil {
			return err
		}
		ids[i] = region.ID(id)
	}
	return o.again(ctx, func(ctx context.Context) error {
		err := m.Membership().Forget(ctx, rdma.MachineID(machine), ids)
		return o.forgetFounder(ctx, rdma.MachineID(machine), err)
	})
}

// checkMachine fails if no machine can have a number: as a rdma.MachineID it would name another machine.
func checkMachine(machine int) error {
	if machine < 0 || machine > machineIDMax {
		return fmt.Errorf("farmsql: there is no machine %d: the numbers of machines are 0 to %d", machine, machineIDMax)
	}
	return nil
}

// checkRegion fails if no region can have a number: as a region.ID it would name another region.
func checkRegion(id int) error {
	if id < 0 || int64(id) > math.MaxUint32 {
		return fmt.Errorf("farmsql: there is no region %d: name one that farmsql status shows", id)
	}
	return nil
}

// again makes a request until it succeeds, fails for good, or ctx ends. At the end of ctx it
// fails with ctx's error and with what the request has waited for, from an earlier attempt: the
// last attempt mostly knows only that ctx has ended.
func (o *Operator) again(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)() // the end of the operator ends the request, too
	var reason error
	for {
		err := request(ctx)
		if err == nil || !membership.IsPassing(err) {
			return ours(err)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			reason = err
		}
		switch ended := ctx.Err(); {
		case ended != nil && reason != nil:
			return ours(fmt.Errorf("%w: %w", reason, ended))
		case ended != nil:
			return ours(err)
		}
		clock.System{}.Sleep(requestRetry)
	}
}

// forgetFounder makes another machine take the place of a founder, if m is one. err is the
// result of forgetting the machine's memory; that no region waits for that memory is no
// obstacle.
func (o *Operator) forgetFounder(ctx context.Context, m rdma.MachineID, err error) error {
	s := o.store.Load()
	if s == nil || (err != nil && !errors.Is(err, membership.ErrNotAwaited)) {
		return err
	}
	if f := s.known.Load(); f == nil || !f.Has(m) {
		return err
	}
	return s.forget(ctx, m)
}

// Drain takes the data off a machine of a cluster: it gets no replicas any more, and those that it
// has move to other machines, one batch after the other, while everything is in use. With undo, the
// machine becomes one like the others again. Drain returns when the instance has agreed on that; the
// progress is in Status. While the configuration is changing, Drain tries again until ctx is done.
//
// Errors: cluster.ErrCannotDrain if the others cannot take the replicas, ErrNoCluster, and, when ctx
// ends, its error, with that of the attempts.
func (o *Operator) Drain(ctx context.Context, machine int, undo bool) error {
	if o.local.Load() != nil {
		return ErrNoCluster
	}
	if err := checkMachine(machine); err != nil {
		return err
	}
	m := o.member.Load()
	if m == nil {
		return fmt.Errorf("farmsql: drain machine %d: this machine %s", machine, o.waitsFor(Status{}))
	}
	return o.again(ctx, func(ctx context.Context) error {
		return m.Membership().Drain(ctx, rdma.MachineID(machine), undo)
	})
}

// Move moves the replica of a region, and those of the other regions of its group, from one
// machine of a cluster to another, while everything is in use; if the first machine is the
// primary, the second becomes the primary. The replica then stays where it is until an operator
// moves it again, its machine is drained, or is no member any more: RegionStatus.Pinned. It may
// become the primary or a backup, since the machines even out their primaries. Move returns
// when the move has begun, or was made before; the progress is in Status. While other regions
// move, or the configuration changes, Move tries again until ctx is done; the move may still
// begin up to two seconds after that.
//
// Errors: cluster.ErrCannotMove, ErrNoCluster, and, when ctx ends, its error, with what the move waits for.
func (o *Operator) Move(ctx context.Context, id, from, to int) error {
	if o.local.Load() != nil {
		return ErrNoCluster
	}
	if err := cmp.Or(checkRegion(id), checkMachine(from), checkMachine(to)); err != nil {
		return err
	}
	m := o.member.Load()
	if m == nil {
		return fmt.Errorf("farmsql: move region %d: this machine %s", id, o.waitsFor(Status{}))
	}
	order := cluster.Order{Region: region.ID(id), Move: cluster.Move{From: rdma.MachineID(from), To: rdma.MachineID(to)}}
	return o.again(ctx, func(ctx context.Context) error { return m.Membership().Move(ctx, order) })
}

// Resize gives all regions of a cluster another number of replicas, while everything is in use.
// If the number grows, a few regions at a time get further replicas; if it falls, all regions
// lose replicas at once. Resize returns when the instance has agreed on that; the progress is
// in Status.Resize. The change goes on whatever fails meanwhile. While the configuration is
// changing, Resize tries again until ctx is done.
//
// Errors: cluster.ErrCannotResize if regions cannot have that many, ErrNoCluster, and, when ctx ends, its error, with
// that of the attempts.
func (o *Operator) Resize(ctx context.Context, replicas int) error {
	if o.local.Load() != nil {
		return ErrNoCluster
	}
	if replicas < 1 || replicas > machinesMax {
		return fmt.Errorf("farmsql: %d replicas: must be 1 to %d", replicas, machinesMax)
	}
	m := o.member.Load()
	if m == nil {
		return fmt.Errorf("farmsql: resize to %d replicas: this machine %s", replicas, o.waitsFor(Status{}))
	}
	return o.again(ctx, func(ctx context.Context) error { return m.Membership().Resize(ctx, replicas) })
}

// Resize is Operator.Resize for the DB's instance.
func (db *DB) Resize(ctx context.Context, replicas int) error {
	return db.operator.Resize(ctx, replicas)
}

// Move is Operator.Move for the DB's instance.
func (db *DB) Move(ctx context.Context, id, from, to int) error {
	return db.operator.Move(ctx, id, from, to)
}

// Drain is Operator.Drain for the DB's instance.
func (db *DB) Drain(ctx context.Context, machine int, undo bool) error {
	return db.operator.Drain(ctx, machine, undo)
}

// Forget is Operator.Forget for the DB's instance.
func (db *DB) Forget(ctx context.Context, machine int, lost []int) error {
	return db.operator.Forget(ctx, machine, lost)
}

// Awaited returns two lists of unavailable regions: all regions that wait for a machine, and the
// regions that wait for this machine only. The machine must not be a member. Forgetting the machine
// loses the regions of the second list.
func (s Status) Awaited(machine int) (all, only []int) {
	for _, r := range s.Regions {
		if !slices.Contains(r.Away, machine) {
			continue
		}
		all = append(all, r.Region)
		if len(r.Away) == 1 {
			only = append(only, r.Region)
		}
	}
	return all, only
}
