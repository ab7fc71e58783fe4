package membership

import (
	"context"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
)

// A Host is the rest of a machine, which a Machine tells what configuration
// it is part of. Unless it says otherwise a method returns when it is done, and
// is called by one goroutine at a time.
type Host interface {
	// Freeze begins NEW-CONFIG (SOSP'15 section 5.2 step 6): from here until Commit
	// no transaction of this machine commits, it sends nothing to machines that
	// are not in c, and takes neither data nor acknowledgements from them. It is
	// quick.
	//
	// The paper holds the requests of clients back from the suspicion on. Here
	// nothing is to be gained by that: what deals with the suspected machine waits
	// for its replacement, and the rest has nothing to do with it.
	Freeze(c *cluster.Configuration)
	// Apply is the rest of NEW-CONFIG: it makes room for the replicas that c gives
	// to this machine and drops those that it takes away. It returns the replicas
	// to be filled for which there is no room. Any other error is fatal for the
	// machine: it leaves the configuration.
	Apply(c *cluster.Configuration) (refused []region.ID, err error)
	// Commit is NEW-CONFIG-COMMIT (step 7): drain the logs and recover the state of
	// transactions. It returns when all regions whose primary is here are active. It may be
	// called for c while, or after, it is called for the next configuration.
	// ctx ends when the next configuration begins. An error with ctx still good is
	// fatal for the machine.
	Commit(ctx context.Context, c *cluster.Configuration) error
	// Settle returns when every transaction of the configurations before c is
	// decided here and its records are of no use any more. It is called when
	// Commit has returned; ctx ends when the next configuration begins.
	Settle(ctx context.Context, c *cluster.Configuration) error
	// Active is ALL-REGIONS-ACTIVE: all regions of c are active, everywhere. It
	// starts data and allocator recovery and does not wait for them.
	Active(c *cluster.Configuration)
	// Evicted says that this machine is no member any more: what it has is of no
	// use to anybody. It may come back with another Machine, as a new machine.
	// It does not wait: it must not Close the Machine itself.
	Evicted()
	// Restart says that this machine ends its life and begins another one with its
	// memory: to meet others that have lost their processes, but not their memory, or
	// for the reason that Machine.Restart was called for. It does not wait either.
	Restart()
	// Holds returns the regions of which the machine's memory has a replica, in whatever
	// state.
	Holds() ([]region.ID, error)
	// Committed returns the last configuration that Commit was called for with the
	// machine's memory, in this life or an earlier one. It is not known if a program did
	// so that did not note it.
	Committed() (last cluster.ID, isKnown bool)

	// Prepare makes room for a replica of a region that is being made. What is
	// there of a region of that name is left from an attempt that came to nothing.
	Prepare(p cluster.Placement) error
	// Announce says that the region of which this machine has a replica exists.
	Announce(p cluster.Placement)
}
