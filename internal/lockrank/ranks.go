// Package lockrank gives every mutex of the server a rank; benchmarks and commands have plain
// mutexes. A goroutine that holds mutexes locks only those of higher ranks, so that no two of
// them can wait for each other. The ranks are in one table, order. Builds with the tag
// invariants check each Lock against what the goroutine holds; in other builds a Mutex is a
// sync.Mutex, and costs nothing more.
//
// A TryLock need not keep the order, because it does not wait. A mutex that is held during a wait,
// such as a wait for other machines, is locked with clock.Clock.Lock.
package lockrank

// A Rank is one of the types of the table: the place of a mutex in the order. It is a type
// parameter, so that a mutex's zero value has its rank.
type Rank interface{ ranked() }

type rank struct{}

func (rank) ranked() {}

// The ranks, in the order of the table. Each comment says what the mutexes guard, or when they are
// held.
type (
	Connector  struct{ rank } // driver: a database is opened, or closed, for a DSN
	Opened     struct{ rank } // driver: the databases that are open, while one is opened or closed
	Engine     struct{ rank } // sql: the engine's sessions
	Accounts   struct{ rank } // sql: users and grants, while they are read from the catalog
	Holding    struct{ rank } // sql: the memory of a statement, while it asks for more
	Catalog    struct{ rank } // catalog: the tables that are known, while they are read
	Growing    struct{ rank } // index/hash: a table of buckets, while it is split
	Room       struct{ rank } // farm: callers that wait for room
	Epochs     struct{ rank } // farm: what is to be reclaimed
	Giving     struct{ rank } // farm: storage is given back, or replicas are compared; those of several machines are locked in the order of the machines
	Killed     struct{ rank } // farm: which machines have been killed
	Refill     struct{ rank } // region: a slab is replaced
	Dirty      struct{ rank } // region: former slabs' blocks are marked dirty
	HoldBack   struct{ rank } // region: blocks are found to hold back
	Blocks     struct{ rank } // txn/worker: parts of a block table go to the backups
	Grow       struct{ rank } // region: a region is added
	Change     struct{ rank } // recovery/membership: the configuration is moved on
	Probe      struct{ rank } // recovery/membership: a round of probes
	Apply      struct{ rank } // recovery/membership: a configuration is applied
	Reserving  struct{ rank } // txn/worker: storage is reserved for replicas, by the routes of one configuration
	Run        struct{ rank } // recovery/transactions: the state of one configuration's recovery
	Recovery   struct{ rank } // txn/evidence: evidence and ledgers
	Worker     struct{ rank } // txn/worker: a worker's commits, calls and peers
	Machine    struct{ rank } // txn/worker: handlers and hooks of epochs
	Routes     struct{ rank } // txn/route: where regions live, while that changes
	Replicas   struct{ rank } // farm: which replicas the machine has
	Reserve    struct{ rank } // farm: room for logs
	Annexes    struct{ rank } // txn: annexes
	Sending    struct{ rank } // rdma/tcp, rdma/verbs: frames are sent over a connection
	Later      struct{ rank } // rdma/local, rdma/tcp, rdma/verbs: completions that come later; a card pins memory
	Membership struct{ rank } // recovery/membership: what a machine knows of the configuration
	Partners   struct{ rank } // cluster/lease: which lives of machines get the lease thread's messages
	Leaf       struct{ rank } // anything, for a moment: no other mutex but Socket and Pins is locked meanwhile
	Socket     struct{ rank } // sql/wire: how the server waits for a client's requests, while that changes
	Pins       struct{ rank } // nvram: which pages of a memory are pinned, while some are given back
)

// order is the order in which mutexes are locked. A goroutine may hold the first ones while it waits
// for another machine's answer; to handle the answer, this machine locks the next ones; the last ones
// are held for a few instructions.
var order = []Rank{
	Connector{},
	Opened{},
	Engine{},
	Accounts{},
	Holding{},
	Catalog{},
	Growing{},
	Room{},
	Epochs{},
	Giving{},
	Killed{},
	Refill{},
	Dirty{},
	HoldBack{},
	Blocks{},
	Grow{},
	Change{},
	Probe{},
	Apply{},
	Reserving{},
	Run{},
	Recovery{},
	Worker{},
	Machine{},
	Routes{},
	Replicas{},
	Reserve{},
	Annexes{},
	Sending{},
	Later{},
	Membership{},
	Partners{},
	Leaf{},
	Socket{},
	Pins{},
}
