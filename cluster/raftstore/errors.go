package raftstore

import (
	"errors"

	"github.com/farmsql/farmsql/cluster"
)

var (
	// ErrNotCreated means that a folder has no store.
	ErrNotCreated = errors.New("cluster: there is no configuration store")
	// ErrCreated means that a folder has a store already.
	ErrCreated = errors.New("cluster: there is a configuration store already")
	// ErrInUse means that another process, or another Store, has the folder open.
	ErrInUse = errors.New("cluster: the configuration store is in use")
	// ErrDamaged means that a file of the store is not what was written.
	ErrDamaged = errors.New("cluster: the configuration store is damaged")
	// ErrNewer means that a newer program has written a file of the store, or an entry of its log.
	ErrNewer = errors.New("cluster: the configuration store has a newer format")
	// ErrTooLarge means that a configuration has more than 4 MiB.
	ErrTooLarge = errors.New("cluster: the configuration is too large for its store")
	// ErrRemoved means that the others go on without this machine for good: its folder is of no use any more, and
	// it asks the others as a Client.
	ErrRemoved = errors.New("cluster: the configuration store goes on without this machine, which was forgotten as gone, or left behind when another was refounded")
	// ErrSplit means that two machines were refounded. Either this one gives up the
	// configuration that it keeps, or it has met a machine that follows the other. With an
	// empty folder, it can join the other side.
	ErrSplit = errors.New("cluster: two machines were refounded, and each has kept a configuration of its own")
	// ErrNotLost means that the former majority has come back before the machine that was
	// refounded has begun.
	ErrNotLost = errors.New("cluster: the machines that were given up as lost are back, and have a majority")
	// ErrClosed means that the store has been closed.
	ErrClosed = errors.New("cluster: the configuration store is closed")
)

// An unanswered error says why a request had no answer in time. It matches cluster.ErrUnreachable,
// after which callers try again.
type unanswered struct{ text string }

func (e *unanswered) Error() string { return e.text }

// Is makes errors.Is find cluster.ErrUnreachable, whose text is about ZooKeeper.
func (e *unanswered) Is(target error) bool { return target == cluster.ErrUnreachable }
