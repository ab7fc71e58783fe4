package farmsql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/recovery/membership"
	"github.com/farmsql/farmsql/region"
)

// An Operator shows how an instance is, and takes what only people know, as long as a
// database is being opened and open: see Config.Opening. It is safe for concurrent use.
type Operator struct {
	cfg Config
	// member is the machine of this process that has begun last, once one has.
	member atomic.Pointer[farm.Member]
	// local are all machines of the instance, if they are in this process and open.
	local  atomic.Pointer[farm.Local]
	isOpen atomic.Bool
	// attempt is how the last attempt at a step of opening has failed; nil if it has not.
	attempt atomic.Pointer[string]

	ctx    context.Context // of requests
	cancel context.CancelFunc
	ending sync.Once
	closed func() error // see Config.Opening
}

func newOperator(cfg Config) *Operator {
	o := &Operator{cfg: cfg}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// begin hands the operator out.
func (o *Operator) begin() (err error) {
	if o.cfg.Opening != nil {
		o.closed, err = o.cfg.Opening(o)
	}
	return err
}

// end takes it back. Requests that are under way fail.
func (o *Operator) end() (err error) {
	o.ending.Do(func() {
		o.cancel()
		if o.closed != nil {
			err = o.closed()
		}
	})
	return err
}

// failed records the error of an attempt to open the database.
func (o *Operator) failed(err error) {
	if err == nil {
		o.attempt.Store(nil)
		return
	}
	text := err.Error()
	o.attempt.Store(&text)
}

// listen returns events that tell the operator of failed attempts to become a member,
// and then what e tells.
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

// Status says how the instance is. It may be called after the end, too.
func (o *Operator) Status() Status {
	if local := o.local.Load(); local != nil {
		s := statusOf(local.Status())
		s.Source, s.Process = StatusOfProcess, os.Getpid()
		for i := range s.Machines {
			s.Machines[i].FailureDomain = 0 // as far as one process allows
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
	if m != nil {
		s.Lease = &LeaseStatus{f.IsValid, milliseconds(f.Length), f.KeptBy}
	}
	if !o.isOpen.Load() && s.Ended == "" {
		s.Starting = o.waitsFor(s)
	}
	return s
}

// waitsFor says what a machine waits for that is being opened, and is as s says.
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
	if said := o.attempt.Load(); said != nil {
		text += ": " + *said
	}
	return text
}

// ErrNoCluster means that something is only possible where machines are processes of
// their own, and fail one by one.
var ErrNoCluster = errors.New("farmsql: all machines of the instance are in one process: none of them is away alone")

// forgetRetry is the time between two attempts while the configuration is changing.
const forgetRetry = 50 * time.Millisecond

// Forget has a cluster wait no longer for the memory of a machine that is no member,
// because it is gone for ever. The regions that wait for nothing else are LOST, with
// everything in them, for good: they must be the given ones, ascending, as Status says
// (RegionStatus.Away has machine and nobody else). While the configuration is changing
// it is tried again until ctx is done. Errors: membership.ErrNotAwaited, if nobody waits
// for the machine or other regions would be lost, ErrNoCluster, ctx's, and those for
// which membership.IsPassing is true, of the last attempt.
func (o *Operator) Forget(ctx context.Context, machine int, lost []int) error {
	if o.local.Load() != nil {
		return ErrNoCluster
	}
	m := o.member.Load()
	if m == nil {
		return fmt.Errorf("farmsql: forget machine %d: this machine %s", machine, o.waitsFor(Status{}))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(o.ctx, cancel)()
	ids := make([]region.ID, len(lost))
	for i, id := range lost {
		ids[i] = region.ID(id)
	}
	for {
		err := m.Membership().Forget(ctx, rdma.MachineID(machine), ids)
		if err == nil || !membership.IsPassing(err) || ctx.Err() != nil {
			return ours(err)
		}
		clock.System{}.Sleep(forgetRetry)
	}
}

// Forget is Operator.Forget.
func (db *DB) Forget(ctx context.Context, machine int, lost []int) error {
	return db.operator.Forget(ctx, machine, lost)
}

// Awaited returns the unavailable regions that wait for a machine that is no member, and
// of these the ones that wait for no other and are lost if it is forgotten.
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
