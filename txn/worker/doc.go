// Package worker implements a machine below its transactions: its workers, their exchange with the
// workers of other machines, and their services to transactions.
//
//	Machine      settings, regions and their routes, handlers, epochs, reconfigurations
//	Worker       the state machine of a worker: its lock, its bell, its input
//	peer         the connection to a sibling: a log and a message queue in each direction
//	Commit       a commit, as its worker sees it: participants, state, acknowledgements
//	Stripe       one processor's counters, and its open reads and transactions
//	Operation    lock-free reads
//
// # Workers and their siblings
//
// Between siblings, worker w of one machine and worker w of another, there are a log and a message
// queue in each direction (package ring). Listen and Connect (connect.go) make the connection. A
// worker handles its input in stepLocked: it works through the records in peers' logs (package
// participant), handles messages, and takes the completions of its own operations. Shipped
// functions (ship.go) run on goroutines of their own.
//
// # Commits
//
// Package txn runs the commit protocol. Its commits embed a Commit, which is all that the worker
// knows of them: a LOCK-REPLY, an acknowledgement, a lost peer or a reconfiguration ends the waits
// of the commits that it concerns. In order:
//
//	AdmitLocked    may it begin? sets the participants' peers
//	ReserveLocked  log space at all participants, or at none
//	JoinLocked     it gets its identifier, and is one of the worker's begun commits
//	StageLocked    and AppendLocked: a record, written to a participant's log
//	ExpectReplyLocked  before each LOCK to another machine; EndLocking when all have replied
//	AwaitAcksLocked    before the COMMIT-PRIMARYs, whose acknowledgements it counts
//	ReleaseReservationsLocked  the log space that no record used
//	LeaveLocked    it is decided or aborted; Strand leaves it to recovery
//	FinishLocked   its records can be truncated: truncate.go
//
// # Reads
//
// read.go and pairs.go implement the lock-free reads of NSDI'14 section 3.5. An Operation brackets
// reads that follow pointers; stripe.go and epoch.go say when memory that they could reach is
// reused.
//
// # Machines that fail
//
// reconfigure.go takes a machine from one configuration to the next. Package evidence (Recovery)
// collects the logs' evidence about undecided transactions and carries out decisions.
//
// # Concurrency
//
// A Machine is safe for concurrent use. A worker reads no clock, starts no goroutine and draws no
// randomness in stepLocked, which runs under its lock. participant.Log, participant.OwnLog,
// record.Window, ops and the Commits that have joined are parts of a worker, whose lock guards them
// as a whole. A method that needs the lock has a name that ends in Locked; a method that releases
// the lock while it waits says so. Machine.mu may be taken while a worker's lock is held, but not
// the other way round. No method waits for a reply with a worker's lock held. A worker rings peers
// with its lock held: with the record or message itself if somebody waits for it
// (peer.ringsWithLocked, message.Kind.IsOfStep), otherwise once for everything that it has written
// (RingPeersLocked). All operations posted under the lock are one batch for the provider, which
// Unlock flushes. A bell only tries to take the lock of its worker; if the lock is taken, its holder
// checks the bell after unlocking (answerBell).
package worker
