// Package commitstate defines the states of a commit and the order in which they follow each other.
package commitstate

import "fmt"

// A State says how far one attempt to commit has come. Above the dashes is the commit
// protocol (SOSP'15 section 4), whose steps the coordinator takes; below them recovery has taken
// over (section 5.3).
//
//	planned --> locking --> validating --> committing --> committing --> truncating
//	               |            |           backups       primaries
//	               +--> aborted <+             |              |
//	                                           +-> stranded <-+
//	- - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -
//	   (any of the five from locking to stranded) --> caught --> recovered: committed
//	                                                   |    \--> recovered: aborted
//	                                                   +-> in doubt
//
// The order of the steps is what makes the protocol right:
//
//   - The coordinator reserves log space at all participants before it writes the first LOCK
//     record. From that record on the transaction holds locks that others wait for, so it must
//     not itself wait for room that only those others can give back.
//   - Locking comes before validation, so all locks are held when validation begins. If
//     validation finds every object in the read set unchanged, then the whole read set and the
//     whole write set were valid at one moment, which is the transaction's place in the serial
//     order. If validation came first, an object could change before the locks are held.
//   - The coordinator writes no commit record before validation has succeeded: while there are
//     only LOCK records, the coordinator may abort, and recovery will abort. Once a
//     COMMIT-BACKUP is anywhere, recovery may commit, so the coordinator cannot abort any more.
//   - All backups have COMMIT-BACKUP before the first primary gets COMMIT-PRIMARY, which
//     exposes the writes. If a backup had no record and the other participants failed, recovery
//     could abort a transaction whose writes somebody has read.
//   - Commit reports success when one primary has COMMIT-PRIMARY, not before: if all backups
//     fail, the primary that is left has only a LOCK record, which is no vote to commit.
//   - Records are truncated only when all primaries have COMMIT-PRIMARY: until then, the records
//     at the backups may be the only evidence that a primary has to commit. By that time the
//     commit's memory may already serve the next transaction.
type State uint8

const (
	// Planned: nothing is reserved or written.
	Planned State = iota
	// Locking: LOCK records are being written and replied to. From here to
	// CommittingPrimaries the commit has its identifier and is in the worker's list of begun
	// commits.
	Locking
	// Validating: the whole write set is locked; the read set is being validated.
	Validating
	// CommittingBackups: some backups may have COMMIT-BACKUP. When all have it, the commit
	// still stays in this state until the machine has its lease, even if the caller gives up.
	CommittingBackups
	// CommittingPrimaries: all backups have COMMIT-BACKUP, some primaries may have
	// COMMIT-PRIMARY.
	CommittingPrimaries
	// Truncating: one primary has COMMIT-PRIMARY: the transaction has committed.
	Truncating
	// Aborted: the commit holds no locks (any more).
	Aborted
	// Stranded: a participant failed when the transaction may already have committed. The
	// failure leads to a reconfiguration, which catches the commit.
	Stranded
	// Caught: a reconfiguration has caught the commit. The coordinator writes nothing more;
	// recovery decides, and tells the worker (Machine.Resolve).
	Caught
	RecoveredCommitted
	RecoveredAborted
	// InDoubt: this machine will not learn recovery's decision.
	InDoubt
	states
)

var names = [states]string{"planned", "locking", "validating", "committing backups", "committing primaries",
	"truncating", "aborted", "stranded", "caught", "recovered: committed", "recovered: aborted", "in doubt"}

func (s State) String() string {
	if s >= states {
		return fmt.Sprintf("commit state %d", uint8(s))
	}
	return names[s]
}

// A stateSet is a set of states.
type stateSet uint16

func statesOf(list ...State) (set stateSet) {
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (set stateSet) has(s State) bool { return (set>>s)&1 != 0 }

// transitions lists the states that can follow each state. A state that can be followed only by
// Planned is the end of the attempt: the commit's memory then serves the next attempt, or another
// transaction.
var transitions = [states]stateSet{
	Planned:             statesOf(Planned, Locking),
	Locking:             statesOf(Validating, Aborted, Caught),
	Validating:          statesOf(CommittingBackups, Aborted, Caught),
	CommittingBackups:   statesOf(CommittingPrimaries, Stranded, Caught, InDoubt),
	CommittingPrimaries: statesOf(Truncating, Stranded, Caught, InDoubt),
	Truncating:          statesOf(Planned),
	Aborted:             statesOf(Planned),
	Stranded:            statesOf(Caught),
	Caught:              statesOf(RecoveredCommitted, RecoveredAborted, InDoubt),
	RecoveredCommitted:  statesOf(Planned),
	RecoveredAborted:    statesOf(Planned),
	InDoubt:             statesOf(Planned),
}

// IsInRecovery reports whether a reconfiguration has taken the commit from its coordinator.
func (s State) IsInRecovery() bool { return s >= Caught && s <= RecoveredAborted }

// IsCommitted reports whether the transaction has committed, as far as this machine knows.
func (s State) IsCommitted() bool { return s == Truncating || s == RecoveredCommitted }

// IsWithoutEffect reports whether the transaction has had no effect and can have none, so that the
// slots reserved for its new objects can be freed.
func (s State) IsWithoutEffect() bool {
	return s <= Validating || s == Aborted || s == RecoveredAborted
}

// MayPrecede reports whether a commit may move from state s to another.
func (s State) MayPrecede(to State) bool { return transitions[s].has(to) }
