package membership

import (
	"context"
	"errors"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/rdma/call"
	"github.com/farmsql/farmsql/recovery"
)

// Reasons why a machine cannot be, or stay, part of an instance.
var (
	// ErrEvicted: the configuration has moved on without this machine.
	ErrEvicted = errors.New("membership: this machine has been evicted from the configuration")
	// ErrOtherCluster: the machine's memory belongs to another instance.
	ErrOtherCluster = errors.New("membership: the memory of this machine belongs to another cluster")
	// ErrOtherLine: two machines were refounded; the configuration follows one of them, and
	// this machine the other.
	ErrOtherLine = errors.New("membership: two machines were refounded, and this one follows the other")
	// ErrOmitted: the machine's memory has been in a configuration that was lost when the instance was refounded.
	ErrOmitted = errors.New("membership: the memory of this machine is newer than what the cluster went on from when it was refounded")
	// ErrTaken: another process runs as the machine of this name.
	ErrTaken = errors.New("membership: a machine with this id is running already")
	// ErrClosed: the Machine is closed.
	ErrClosed = errors.New("membership: closed")
)

// The errors of calls in this package, at the caller and at the machine called. They may also fail
// with the errors of package recovery.
var (
	errChanging = errors.New("membership: the configuration is changing")
	// errUnheard: the configuration is of a refounded instance, but the store of a machine that
	// comes has not heard of the refounding. That machine may still find that another machine
	// was refounded, too.
	errUnheard = errors.New("membership: the instance was refounded, of which the store of a machine that comes does not know yet")
	// errWaits: the move must wait for something else, which the error names.
	errWaits = errors.New("membership: the move waits")
	// ErrNoRegion: there is no such region.
	ErrNoRegion = errors.New("membership: no such region")
	// ErrLost: an operator has given the region up.
	ErrLost = errors.New("membership: the region is lost with all its replicas")
	// ErrNeeded: the machine has come back with other memory, and regions wait for the memory that
	// it had before.
	ErrNeeded = errors.New("membership: regions wait for the memory that this machine had before")
	// ErrNotAwaited: no region waits for the machine's memory, or the call names other regions than
	// those that wait for it.
	ErrNotAwaited = errors.New("membership: not what the regions wait for")
)

// IsPassing reports whether trying again may help after err: the configuration is changing, a
// move waits for others, or the store does not answer. recovery.ErrNotMember counts, too: the machine learns from the store whether
// it was really evicted.
func IsPassing(err error) bool {
	return slices.ContainsFunc([]error{
		cluster.ErrMoved, cluster.ErrUnreachable, recovery.ErrNotCM, recovery.ErrNotMember, recovery.ErrSuperseded, errChanging, errUnheard, errWaits, errNoMajority, ErrApart,
		context.DeadlineExceeded, call.ErrOtherLife,
	}, func(passing error) bool { return errors.Is(err, passing) })
}
