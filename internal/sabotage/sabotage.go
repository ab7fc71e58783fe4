// Package sabotage leaves out steps of the protocols, or carries them out wrongly, to show that the
// tests of the protocols notice. It does so only in builds with the tag sabotage, and there only if
// a test or the environment asks for it:
//
//	go test -tags gms_pure_go,sabotage ./internal/simtest -run TestSabotage
//	FARMSQL_SABOTAGE="own backup" go test -tags gms_pure_go,sabotage ./txn
//
// Without the tag, Skipped is the constant false, so the compiler removes its uses.
package sabotage

// A Step is a step of a protocol that can be left out, or done wrongly. The comment of each says
// what happens then.
type Step uint8

const (
	// The commit protocol (package txn):

	// Validation: objects in the read set are not looked at again.
	Validation Step = iota
	// ValidationLast: validation comes before locking.
	ValidationLast
	// LockedVersion: the present version is locked, not the one that was read.
	LockedVersion
	// Answers: questions whose source objects have changed are not asked again.
	Answers
	// Rounds: validation ends after one round in which a question was asked again.
	Rounds
	// Parts: the part of an object that was read is not compared with the object's present content.
	Parts
	// LateChecks: objects that a preparation has read, but not written, are not validated.
	LateChecks
	// ValidationReply: a VALIDATE message is answered without looking at the objects.
	ValidationReply
	// Backups: COMMIT-BACKUP is not written.
	Backups
	// BackupAcks: COMMIT-PRIMARY is written before all backups have acknowledged COMMIT-BACKUP.
	BackupAcks
	// OwnBackup: the coordinator's own backup applies before all backups have acknowledged.
	OwnBackup
	// FirstPrimary: success is reported before a primary has COMMIT-PRIMARY.
	FirstPrimary
	// PrimaryAcks: a transaction is truncated before all primaries have acknowledged COMMIT-PRIMARY.
	PrimaryAcks
	// Reservations: no room in logs is reserved before a commit begins.
	Reservations
	// AllLocks: a LOCK that is refused keeps the locks that it had taken.
	AllLocks
	// AbortRecord: ABORT is not written.
	AbortRecord
	// SecondReply: a LOCK-REPLY that arrives twice counts twice.
	SecondReply
	// BackupApply: backups do not apply the writes of truncated transactions.
	BackupApply
	// NewerVersion: a backup applies a version older than the one that it has.
	NewerVersion
	// FarTruncations: a worker reports truncated transactions for which ledgers have no place.
	FarTruncations
	// Outbox: messages that find no room are dropped.
	Outbox
	// TruncateTimer: truncations wait for another record to the same peer.
	TruncateTimer
	// CommitConfirm: a commit is reported without checking the lease.
	CommitConfirm
	// AnnexFill: the last piece of an annex is not written.
	AnnexFill
	// AnnexAcks: a large transaction begins to commit before its annexes are filled.
	AnnexAcks
	// EarlyAnnex: an annex is freed before its record is freed.
	EarlyAnnex
	// CaughtSlices: a large commit that a reconfiguration has caught continues with its next slice.
	CaughtSlices

	// Reads:

	// LockedReads: a NIC's read of a locked object counts.
	LockedReads
	// LineVersions: lines of an object are not compared.
	LineVersions
	// Incarnation: a NIC's read accepts any object at the address.
	Incarnation
	// LocalHeader: a read at the primary does not check the header again.
	LocalHeader
	// ReadRoute: a read counts even if the machine may no longer be the primary.
	ReadRoute
	// ChecksRoute: validation counts even if the machine may no longer be the primary.
	ChecksRoute
	// ReadConfirm: a read is shown without checking the lease.
	ReadConfirm

	// Allocation:

	// LostSlot: a transaction writes to a slot that another primary's allocator owns now.
	LostSlot
	// Loans: a slot that was lent and is not needed is not returned.
	Loans
	// LoansEnd: slots lent to machines that have left are not taken back.
	LoansEnd
	// FreedSlots: the slot of a freed object is not returned to the allocator.
	FreedSlots
	// ScanLocked: the scan counts locked slots without an object as free.
	ScanLocked
	// BlockBackups: block headers are not written to backups.
	BlockBackups
	// SendBlocks: a new primary does not send the block headers.
	SendBlocks
	// OpenOperations: epochs end while earlier operations are still open.
	OpenOperations
	// EpochsToWait: an empty block is given to another size class without waiting.
	EpochsToWait

	// Configurations at one machine:

	// BlockedValidation: reads in blocked regions are validated.
	BlockedValidation
	// OldRoutes: a commit begins with a plan from an older configuration.
	OldRoutes
	// InactiveWrite: a commit begins in a region that is readable, but not active yet.
	InactiveWrite
	// FrozenBegin: commits begin between NEW-CONFIG and NEW-CONFIG-COMMIT.
	FrozenBegin
	// Caught: a commit that a reconfiguration has caught continues.
	Caught
	// OldAcks: acknowledgements of an older configuration count.
	OldAcks
	// Sever: Freeze lets members that this machine is not connected to continue writing here.
	Sever
	// MessagesKey: a severed peer can continue to write messages.
	MessagesKey
	// FrozenRecords: records of an older configuration have effects between NEW-CONFIG and NEW-CONFIG-COMMIT.
	FrozenRecords
	// LateRecords: records of an older configuration have effects after the drain.
	LateRecords
	// HeldRecords: a coordinator's truncation frees records that recovery needs.
	HeldRecords
	// Ledger: a truncation is forgotten when its records are freed.
	Ledger
	// Bounds: machines do not report their truncations to each other while a region is unavailable.
	Bounds
	// ForeignBounds: a replica that existed before counts truncations that only other machines
	// know.
	ForeignBounds
	// SpilledNotes: recovery notes that do not fit the machine's own logs are forgotten.
	SpilledNotes

	// Recovery of transactions:

	// DrainFirst: commits begin again before the logs are drained.
	DrainFirst
	// Drain: records that are in the logs at NEW-CONFIG-COMMIT are rejected.
	Drain
	// NeedRecovery: a primary does not wait for the backups' NEED-RECOVERY.
	NeedRecovery
	// Fetch: the primary does not fetch records that only backups have.
	Fetch
	// LockRecovery: objects written by recovering transactions are not locked.
	LockRecovery
	// Replicate: votes are cast before the backups have the records that the votes depend on.
	Replicate
	// Votes: only the LOCK records in the evidence of backups count.
	Votes
	// AllVotes: transactions are decided before all votes are in.
	AllVotes
	// RequestVote: a region that has not voted counts as one that does not know the transaction.
	RequestVote
	// Truncated: a region that has truncated a transaction votes that it does not know it.
	Truncated
	// CommitPrimaryVote: a commit-primary vote counts as a lock vote.
	CommitPrimaryVote
	// OtherVotes: one commit-backup vote is enough; the other votes are ignored.
	OtherVotes
	// BackupOutcome: backups do not carry out a decision to commit.
	BackupOutcome
	// AllDecided: a machine settles before all machines have decided.
	AllDecided
	// OutcomeFirst: transactions are truncated before all machines have carried out the decisions.
	OutcomeFirst

	// Configurations of an instance:

	// ConfigAcks: NEW-CONFIG-COMMIT does not wait until all machines have applied the
	// configuration.
	ConfigAcks
	// OldLeases: NEW-CONFIG-COMMIT does not wait for the leases of evicted machines.
	OldLeases
	// OldConfig: an older NEW-CONFIG is acknowledged.
	OldConfig
	// SlowRecovery: each reconfiguration sleeps for 3 s.
	SlowRecovery
	// CompareAndSwap: the store accepts a configuration that does not follow the stored one.
	CompareAndSwap
	// Majority: a CM continues without a majority of answers.
	Majority
	// ProbeIncarnation: a probe that another life answers counts as the member's answer.
	ProbeIncarnation
	// SettledJoin: a machine joins while recovery is not complete.
	SettledJoin
	// FilledPrimary: a backup that is not filled yet may become the primary.
	FilledPrimary
	// BlocksOfOthers: a machine writes block headers, and reserves storage for them, in regions that
	// have another primary by now.
	BlocksOfOthers
	// Dropped: the allocator hands out slots of regions that have left it.
	Dropped
	// ReservedIn: a slot that was reserved in a region that has left meanwhile is used.
	ReservedIn
	// LateBlocks: a former primary goes on writing the block table of its own replica, which has become
	// a backup.
	LateBlocks
	// LeftLocks: a primary that becomes a backup keeps the lock bits in its memory.
	LeftLocks
	// SharedLocks: such a lock bit goes while another undecided transaction may hold it.
	SharedLocks
	// EarlierLoans: a slot that was lent while a machine was a region's primary earlier may be returned
	// when it is that once more.
	EarlierLoans
	// TenureGoesOn: a machine that becomes a region's primary again keeps the allocator's earlier state.
	TenureGoesOn
	// LocateCurrent: a placement of an older configuration becomes a route.
	LocateCurrent
	// OwnEvidence: evidence of the present life counts for a replica that is younger.
	OwnEvidence
	// MoveFilled: a replica moves away before the one that replaces it is filled.
	MoveFilled
	// ShrinkFilled: a replica that regions need no more leaves while others are being filled.
	ShrinkFilled
	// HeldMoves: replicas move while others compare them.
	HeldMoves
	// FullTarget: a full machine does not refuse replicas that move to it.
	FullTarget
	// FillingReads: a replica can be READ before its configuration is committed.
	FillingReads
	// DepartedSettled: memory that has moved away is freed before recovery is settled.
	DepartedSettled
	// DepartedEpochs: memory that has moved away is freed before two epochs have ended.
	DepartedEpochs
	// DepartedNames: a replica that has moved away counts as complete up to the end of that life,
	// not only up to the latest settled configuration.
	DepartedNames
	// FillSettled: a replica counts as filled while transactions from before are being recovered.
	FillSettled
	// FillNewer: objects read from the primary replace newer ones.
	FillNewer
	// FillLocked: filling leaves out objects that are locked at the primary.
	FillLocked
	// OldCopies: an older copy of a machine's memory counts as its last memory.
	OldCopies

	// Leases, calls, rings:

	// GrantedLease: the CM grants leases longer than the rest of its own.
	GrantedLease
	// LeaseBegin: a lease counts from when it is granted, not from when it was requested.
	LeaseBegin
	// LeaseMajority: a CM relies on its lease without a majority.
	LeaseMajority
	// Expiry: an expired lease causes no suspicion.
	Expiry
	// Beats: a machine renews its leases while its workers do not work.
	Beats
	// Repeat: a call is sent once.
	Repeat
	// OtherLife: a call for an earlier life is answered.
	OtherLife
	// Seal: a record counts before its seal is written.
	Seal
	// Credit: a sender does not learn which records have been freed.
	Credit
	// Nonce: a ring that is emptied keeps its nonce.
	Nonce
	// Wakeup: the last event that a sleeper waits for does not wake it.
	Wakeup

	// Indexes:

	// Found: a lookup in a hash table finds nothing.
	Found
	// FoundRow: a lookup in a B-tree finds nothing.
	FoundRow
	// JointBuckets: two buckets that were read at different moments count as of one moment.
	JointBuckets
	// ChainVersion: a lookup accepts the block at the end of a link even if another has replaced it.
	ChainVersion
	// StaleDirectory: a bucket counts as the home of a key although its shard has split.
	StaleDirectory
	// Fences: a lookup does not check that a leaf's fences include the key.
	Fences
	// GlanceFences: a lookup that reads a leaf in place does not check that its fences include the
	// key.
	GlanceFences
	// RangeEnds: keys added at the end of a range that was read do not count.
	RangeEnds

	// The catalog:

	// Descriptor: a cached descriptor is used without checking the table's head.
	Descriptor
	// Triggers: a table's triggers that are created after a transaction has looked for them do not
	// count.
	Triggers
	// Mark: transactions can use tables that another transaction is altering.
	Mark
	// Orphans: tables that machines dropped, or were altering, before they left are not taken care
	// of.
	Orphans
	// Numbers: sequences return numbers that have not been reserved.
	Numbers

	steps
)

// Steps is the number of steps.
const Steps = int(steps)

var names = [steps]string{
	Validation:        "validation",
	ValidationLast:    "validation last",
	LockedVersion:     "locked version",
	Answers:           "answers",
	Rounds:            "rounds",
	Parts:             "parts",
	LateChecks:        "late checks",
	ValidationReply:   "validation reply",
	Backups:           "backups",
	BackupAcks:        "backup acks",
	OwnBackup:         "own backup",
	FirstPrimary:      "first primary",
	PrimaryAcks:       "primary acks",
	Reservations:      "reservations",
	AllLocks:          "all locks",
	AbortRecord:       "abort record",
	SecondReply:       "second reply",
	BackupApply:       "backup apply",
	NewerVersion:      "newer version",
	FarTruncations:    "far truncations",
	Outbox:            "outbox",
	TruncateTimer:     "truncation timer",
	CommitConfirm:     "commit confirmed",
	AnnexFill:         "annex filled",
	AnnexAcks:         "annex acks",
	EarlyAnnex:        "early annex",
	CaughtSlices:      "caught slices",
	LockedReads:       "locked reads",
	LineVersions:      "line versions",
	Incarnation:       "incarnation",
	LocalHeader:       "local header",
	ReadRoute:         "read route",
	ChecksRoute:       "validation route",
	ReadConfirm:       "read confirmed",
	LostSlot:          "lost slot",
	Loans:             "loans",
	LoansEnd:          "loans end",
	FreedSlots:        "freed slots",
	ScanLocked:        "scan of locked slots",
	BlockBackups:      "block headers",
	SendBlocks:        "block headers sent",
	OpenOperations:    "open operations",
	EpochsToWait:      "epochs to wait",
	BlockedValidation: "blocked validation",
	OldRoutes:         "old routes",
	InactiveWrite:     "inactive write",
	FrozenBegin:       "frozen begin",
	Caught:            "caught",
	OldAcks:           "old acks",
	Sever:             "sever",
	MessagesKey:       "messages key",
	FrozenRecords:     "frozen records",
	LateRecords:       "late records",
	HeldRecords:       "held records",
	Ledger:            "ledger",
	Bounds:            "bounds",
	ForeignBounds:     "foreign bounds",
	SpilledNotes:      "spilled notes",
	DrainFirst:        "drain first",
	Drain:             "drain",
	NeedRecovery:      "need recovery",
	Fetch:             "fetch",
	LockRecovery:      "lock recovery",
	Replicate:         "replicate",
	Votes:             "votes",
	AllVotes:          "all votes",
	RequestVote:       "request vote",
	Truncated:         "truncated",
	CommitPrimaryVote: "commit-primary vote",
	OtherVotes:        "other votes",
	BackupOutcome:     "backup outcome",
	AllDecided:        "all decided",
	OutcomeFirst:      "outcome first",
	ConfigAcks:        "config acks",
	OldLeases:         "old leases",
	OldConfig:         "old config",
	SlowRecovery:      "slow recovery",
	CompareAndSwap:    "compare and swap",
	Majority:          "majority",
	ProbeIncarnation:  "probe incarnation",
	SettledJoin:       "settled join",
	FilledPrimary:     "filled primary",
	BlocksOfOthers:    "blocks of others",
	Dropped:           "dropped",
	ReservedIn:        "reserved in",
	LateBlocks:        "late blocks",
	LeftLocks:         "left locks",
	SharedLocks:       "shared locks",
	EarlierLoans:      "earlier loans",
	TenureGoesOn:      "tenure goes on",
	LocateCurrent:     "locate current",
	OwnEvidence:       "own evidence",
	MoveFilled:        "move filled",
	ShrinkFilled:      "shrink filled",
	HeldMoves:         "held moves",
	FullTarget:        "full target",
	FillingReads:      "filling reads",
	DepartedSettled:   "departed settled",
	DepartedEpochs:    "departed epochs",
	DepartedNames:     "departed names",
	FillSettled:       "fill settled",
	FillNewer:         "fill newer",
	FillLocked:        "fill locked",
	OldCopies:         "old copies",
	GrantedLease:      "granted lease",
	LeaseBegin:        "lease begin",
	LeaseMajority:     "lease majority",
	Expiry:            "expiry",
	Beats:             "beats",
	Repeat:            "repeat",
	OtherLife:         "other life",
	Seal:              "seal",
	Credit:            "credit",
	Nonce:             "nonce",
	Wakeup:            "wake-up",
	Found:             "found",
	FoundRow:          "found row",
	JointBuckets:      "joint buckets",
	ChainVersion:      "chain version",
	StaleDirectory:    "stale directory",
	Fences:            "fences",
	GlanceFences:      "glance at fences",
	RangeEnds:         "range ends",
	Descriptor:        "descriptor",
	Triggers:          "triggers",
	Mark:              "mark",
	Orphans:           "orphans",
	Numbers:           "numbers",
}

// texts describe what happens without each step.
var texts = [steps]string{
	Validation:        "a commit does not validate its read set",
	ValidationLast:    "validation comes before the locks",
	LockedVersion:     "a LOCK locks whatever version is there, not the one that was read",
	Answers:           "validation does not repeat questions whose sources have moved",
	Rounds:            "validation ends after one round, though it had to repeat a question",
	Parts:             "validation does not compare an object's contents with the part that was read",
	LateChecks:        "validation leaves out objects that a preparation has read and not written",
	ValidationReply:   "a primary answers VALIDATE without looking at the objects",
	Backups:           "coordinators write no COMMIT-BACKUP",
	BackupAcks:        "COMMIT-PRIMARY is written before all backups have acknowledged COMMIT-BACKUP",
	OwnBackup:         "the coordinator's own backup applies before all backups have acknowledged",
	FirstPrimary:      "success is reported before a primary has COMMIT-PRIMARY",
	PrimaryAcks:       "a transaction is truncated before all primaries have acknowledged COMMIT-PRIMARY",
	Reservations:      "a commit begins without reserving room in logs",
	AllLocks:          "a refused LOCK keeps the locks that it had acquired",
	AbortRecord:       "coordinators write no ABORT",
	SecondReply:       "a repeated LOCK-REPLY counts twice",
	BackupApply:       "backups truncate records without applying them",
	NewerVersion:      "a backup applies a version older than its own",
	FarTruncations:    "records name truncated transactions that ledgers have no place for",
	Outbox:            "messages that find no room are dropped",
	TruncateTimer:     "truncations wait for a record that goes to the peer anyway",
	CommitConfirm:     "a commit is reported without checking the lease",
	AnnexFill:         "a coordinator does not write the last piece of an annex",
	AnnexAcks:         "a large transaction begins to commit before its annexes are filled",
	EarlyAnnex:        "an annex is given back before its record is freed",
	CaughtSlices:      "a large commit goes on with its next slice after a reconfiguration has caught it",
	LockedReads:       "a READ of a locked object counts",
	LineVersions:      "readers do not compare the versions of an object's lines",
	Incarnation:       "a READ takes whatever object is in the slot",
	LocalHeader:       "a local read does not check the header again after copying",
	ReadRoute:         "a read counts though the machine that served it may not be the primary any more",
	ChecksRoute:       "validation counts though the machine that served it may not be the primary any more",
	ReadConfirm:       "a read is shown without checking the lease",
	LostSlot:          "a transaction writes to a slot that another primary's allocator owns",
	Loans:             "unused lent slots are not given back",
	LoansEnd:          "slots lent to machines that have left stay lent",
	FreedSlots:        "the allocator does not get the slots of freed objects",
	ScanLocked:        "the scan counts locked slots without an object as free",
	BlockBackups:      "block headers are not written to backups",
	SendBlocks:        "a new primary does not send the block headers",
	OpenOperations:    "epochs end while operations are open that began before",
	EpochsToWait:      "an empty block changes its class at once",
	BlockedValidation: "reads in regions that are blocked are validated",
	OldRoutes:         "a commit begins with a plan of an older configuration",
	InactiveWrite:     "a commit begins in a region that is readable but not active yet",
	FrozenBegin:       "commits begin between NEW-CONFIG and NEW-CONFIG-COMMIT",
	Caught:            "a commit goes on after a reconfiguration has caught it",
	OldAcks:           "acknowledgements of an older configuration count",
	Sever:             "Freeze leaves members writing here to which this machine is not connected",
	MessagesKey:       "a severed peer can go on writing messages",
	FrozenRecords:     "records of an older configuration have effects between NEW-CONFIG and NEW-CONFIG-COMMIT",
	LateRecords:       "records of an older configuration have effects after the drain",
	HeldRecords:       "records that recovery needs are freed when their coordinator asks",
	Ledger:            "a replica forgets that it has truncated a transaction",
	SpilledNotes:      "recovery drops notes that do not fit the machine's own logs",
	ForeignBounds:     "another machine's truncations count at a replica older than the transaction",
	Bounds:            "machines do not exchange their low bounds while a region is unavailable",
	DrainFirst:        "commits begin again before the logs are drained",
	Drain:             "the drain rejects records that are in the logs at NEW-CONFIG-COMMIT",
	NeedRecovery:      "a primary does not wait for the backups' NEED-RECOVERY",
	Fetch:             "the primary does not fetch records that only backups have",
	LockRecovery:      "recovery does not lock the objects that recovering transactions write",
	Replicate:         "primaries vote before their backups have the evidence",
	Votes:             "the evidence of one replica of a region does not count",
	AllVotes:          "transactions are decided before all votes are in",
	RequestVote:       "a region that has not voted counts as one that does not know the transaction",
	Truncated:         "a region that has truncated a transaction votes that it does not know it",
	CommitPrimaryVote: "a commit-primary vote counts as a lock vote",
	OtherVotes:        "one commit-backup vote commits, whatever the other votes",
	BackupOutcome:     "backups do not carry out a decision to commit",
	AllDecided:        "a machine settles before all have decided",
	OutcomeFirst:      "transactions are truncated before all replicas have carried out the decision",
	ConfigAcks:        "NEW-CONFIG-COMMIT does not wait until all have applied the configuration",
	OldLeases:         "NEW-CONFIG-COMMIT does not wait for the leases of evicted machines",
	OldConfig:         "a machine acknowledges an older NEW-CONFIG",
	SlowRecovery:      "each reconfiguration sleeps for 3 s",
	CompareAndSwap:    "the store takes a configuration that does not follow the stored one",
	Majority:          "a CM goes on without a majority of answers",
	ProbeIncarnation:  "a probe counts though another life answers it",
	SettledJoin:       "a machine joins before recovery is settled",
	FilledPrimary:     "a backup may become the primary before it is filled",
	BlocksOfOthers:    "a machine writes block headers in regions that have another primary",
	Dropped:           "the allocator hands out slots of regions that have left it",
	ReservedIn:        "a slot that was reserved in a region that has left meanwhile is used",
	LateBlocks:        "a former primary writes the block table of its replica, which is a backup now",
	LeftLocks:         "a primary that becomes a backup keeps the lock bits in its memory",
	SharedLocks:       "such a lock bit goes while another undecided transaction may hold it",
	EarlierLoans:      "a slot lent in an earlier time as the primary may be returned in a later one",
	TenureGoesOn:      "a machine that is the primary once more keeps what the allocator knew",
	LocateCurrent:     "a placement of an older configuration becomes a route",
	OwnEvidence:       "evidence of the present life counts for a replica that is younger",
	MoveFilled:        "a replica moves away before the one that replaces it is filled",
	ShrinkFilled:      "a replica that regions need no more leaves while others are being filled",
	HeldMoves:         "replicas move while they are compared",
	FullTarget:        "a full machine does not refuse what moves there",
	FillingReads:      "a replica can be READ before its configuration is committed",
	DepartedSettled:   "memory that has moved away is freed before recovery is settled",
	DepartedEpochs:    "memory that has moved away is freed before two epochs have ended",
	DepartedNames:     "what has moved away from an earlier life counts as complete up to its end",
	FillSettled:       "a replica counts as filled before recovery is settled",
	FillNewer:         "filling overwrites newer versions",
	FillLocked:        "filling skips objects that are locked at the primary",
	OldCopies:         "an older copy of a machine's memory counts as its latest",
	GrantedLease:      "the CM grants leases beyond the end of its own",
	LeaseBegin:        "a lease lasts from its grant, not from its request",
	LeaseMajority:     "a CM relies on its lease without a majority",
	Expiry:            "nobody is suspected when a lease runs out",
	Beats:             "a machine renews its lease while its workers stand still",
	Repeat:            "a call is sent once",
	OtherLife:         "a machine answers calls for an earlier life",
	Seal:              "a record counts before it is sealed",
	Credit:            "receivers do not report freed room to senders",
	Nonce:             "an emptied ring keeps its seals",
	Wakeup:            "the last completion does not wake the waiter",
	Found:             "a lookup in a hash table finds nothing",
	FoundRow:          "a lookup in a B-tree finds nothing",
	JointBuckets:      "two buckets count as read at one moment",
	ChainVersion:      "a lookup follows a link without checking the block's version",
	StaleDirectory:    "a lookup takes the old bucket of a key whose shard has split",
	Fences:            "a lookup does not check the fences of a leaf",
	GlanceFences:      "a lookup in place does not check the fences of a leaf",
	RangeEnds:         "a range does not conflict with keys inserted at its end",
	Descriptor:        "a cached descriptor counts without checking the table's head",
	Triggers:          "a change commits although the table has got another trigger",
	Mark:              "others open tables that are being altered",
	Orphans:           "nobody finishes the drops and alterations of machines that are gone",
	Numbers:           "sequences give out numbers that are not reserved",
}

func (s Step) String() string { return names[s] }

// Text describes what happens without the step.
func (s Step) Text() string { return texts[s] }

// Named returns the step with this name.
func Named(name string) (Step, bool) {
	for s := range steps {
		if names[s] == name {
			return s, true
		}
	}
	return 0, false
}
