package membership

import (
	"context"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/region"
)

// A Host is the rest of a machine, which the Machine takes through its configurations. Unless stated
// otherwise, a method returns when its work is done, and one goroutine calls it at a time.
type Host interface {
	// Freeze begins NEW-CONFIG (SOSP'15 section 5.2 step 6): until Commit, no transaction of this
	// machine commits, it sends nothing to machines that are not in c, and accepts neither data nor
	// acknowledgements from them. Freeze is quick.
	//
	// The paper blocks requests of clients from the suspicion on. That would gain nothing here:
	// requests that need the suspected machine wait for its replacement, and the others are not
	// affected.
	Freeze(c *cluster.Configuration)
	// Apply does the rest of NEW-CONFIG: it makes room for the replicas that c gives to this
	// machine and drops those that c takes away. It returns the replicas that it should fill, but for
	// which there is no room. Any other error is fatal: the machine leaves the configuration.
	Apply(c *cluster.Configuration) (refused []region.ID, err error)
	// Commit is NEW-CONFIG-COMMIT (step 7): drain the logs and recover the state of transactions.
	// It returns when all regions whose primary is this machine are active. Commit of c may run
	// concurrently with, or after, Commit of the next configuration. ctx ends when the next
	// configuration begins. An error while ctx has not ended is fatal for the machine.
	Commit(ctx context.Context, c *cluster.Configuration) error
	// Settle waits until every transaction of the configurations before c is decided at this machine
	// and recovery no longer needs its records. It is called after Commit has returned; ctx ends
	// when the next configuration begins.
	Settle(ctx context.Context, c *cluster.Configuration) error
	// Active is ALL-REGIONS-ACTIVE: all regions of c are active, everywhere. It
	// starts data and allocator recovery and does not wait for them.
	Active(c *cluster.Configuration)
	// Evicted is called when this machine is no longer a member: nobody uses its memory any more.
	// The machine may come back as a new one, with another Machine. Evicted must not wait, so it
	// must not close the Machine itself.
	Evicted()
	// Restart is called when this machine has to end its life and begin another with its memory: to
	// restart together with others that have lost their processes but not their memory, or because
	// Machine.Restart was called. It must not wait either.
	Restart()
	// Holds returns the regions whose replicas are in the machine's memory, complete or not.
	Holds() ([]region.ID, error)
	// Committed returns the last configuration for which Commit was called with the machine's
	// memory, in this life or an earlier one. isKnown is false if an earlier program version did
	// not record it.
	Committed() (last cluster.ID, isKnown bool)

	// Prepare makes room for a replica of a region that is being made. Memory that already exists
	// under the region's name is left over from a failed attempt.
	Prepare(p cluster.Placement) error
	// Announce is called when a new region exists. This machine has one of its replicas.
	Announce(p cluster.Placement)
}
