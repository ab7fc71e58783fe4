package txn

import (
	"fmt"

	"github.com/farmsql/farmsql/internal/invariant"
)

// A commitState says how far one attempt to commit has come. Above the dashes is the commit
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
//   - Locking comes before validation. When validation begins all locks are held. If it finds
//     every object in the read set unchanged, then the whole read set and the whole write set
//     were valid at one moment, which is the transaction's place in the serial order. If
//     validation came first, an object could change before the locks are held.
//   - The coordinator writes no commit record before validation has succeeded: while there are
//     only LOCK records, the coordinator may abort, and recovery will abort. Once a
//     COMMIT-BACKUP is anywhere, recovery may commit, so the coordinator cannot abort any more.
//   - All backups have COMMIT-BACKUP before the first primary gets COMMIT-PRIMARY, which
//     exposes the writes. If a backup had no record and the other participants failed, recovery
//     could abort a transaction whose writes somebody has read.
//   - Commit reports success when one primary has COMMIT-PRIMARY, not before: if all backups
//     fail, the primary that is left has only a LOCK record, which is no vote to commit.
//   - Records are truncated when all primaries have COMMIT-PRIMARY: until then, the records at
//     the backups may be the only evidence that a primary has to commit. acks follows this, and
//     outlives the commit, whose memory the next transaction uses.
type commitState uint8

const (
	// statePlanned: nothing is reserved or written.
	statePlanned commitState = iota
	// stateLocking: LOCK records are being written and replied to. From here to
	// stateCommittingPrimaries the commit has its identifier and is in the worker's list of begun
	// commits.
	stateLocking
	// stateValidating: the whole write set is locked; the read set is being validated.
	stateValidating
	// stateCommittingBackups: some backups may have COMMIT-BACKUP. A commit stays in this state
	// while it waits for the lease with COMMIT-BACKUP at all backups, whether its caller still
	// waits or not.
	stateCommittingBackups
	// stateCommittingPrimaries: all backups have COMMIT-BACKUP, some primaries may have
	// COMMIT-PRIMARY.
	stateCommittingPrimaries
	// stateTruncating: one primary has COMMIT-PRIMARY: the transaction has committed.
	stateTruncating
	// stateAborted: the commit holds no locks (any more).
	stateAborted
	// stateStranded: a participant was lost when the transaction may have committed. That loss
	// leads to a reconfiguration, which catches the commit.
	stateStranded
	// stateCaught: a reconfiguration has caught the commit. The coordinator writes nothing more;
	// recovery decides, and tells the worker (Machine.Resolve).
	stateCaught
	stateRecoveredCommitted
	stateRecoveredAborted
	// stateInDoubt: this machine will not learn recovery's decision.
	stateInDoubt
	commitStates
)

var commitStateNames = [commitStates]string{"planned", "locking", "validating", "committing backups", "committing primaries",
	"truncating", "aborted", "stranded", "caught", "recovered: committed", "recovered: aborted", "in doubt"}

func (s commitState) String() string {
	if s >= commitStates {
		return fmt.Sprintf("commit state %d", uint8(s))
	}
	return commitStateNames[s]
}

// A commitStateSet is a set of states.
type commitStateSet uint16

func commitStatesOf(list ...commitState) (set commitStateSet) {
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

func (set commitStateSet) has(s commitState) bool { return set>>s&1 != 0 }

// commitTransitions lists the states that can follow each state. A state that only statePlanned
// follows ends the attempt: the commit's memory then serves the next attempt, or another
// transaction.
var commitTransitions = [commitStates]commitStateSet{
	statePlanned:             commitStatesOf(statePlanned, stateLocking),
	stateLocking:             commitStatesOf(stateValidating, stateAborted, stateCaught),
	stateValidating:          commitStatesOf(stateCommittingBackups, stateAborted, stateCaught),
	stateCommittingBackups:   commitStatesOf(stateCommittingPrimaries, stateStranded, stateCaught, stateInDoubt),
	stateCommittingPrimaries: commitStatesOf(stateTruncating, stateStranded, stateCaught, stateInDoubt),
	stateTruncating:          commitStatesOf(statePlanned),
	stateAborted:             commitStatesOf(statePlanned),
	stateStranded:            commitStatesOf(stateCaught),
	stateCaught:              commitStatesOf(stateRecoveredCommitted, stateRecoveredAborted, stateInDoubt),
	stateRecoveredCommitted:  commitStatesOf(statePlanned),
	stateRecoveredAborted:    commitStatesOf(statePlanned),
	stateInDoubt:             commitStatesOf(statePlanned),
}

// enterLocked moves the commit to another state. It needs the worker's lock, except for
// statePlanned, which only the transaction that owns the commit's memory enters.
func (c *commit) enterLocked(to commitState) {
	if invariant.Enabled && !commitTransitions[c.state].has(to) {
		invariant.Violated(fmt.Sprintf("states of commit %v follow each other", c.id), fmt.Sprintf("%v, then %v", c.state, to), "another")
	}
	c.state = to
}

// isRecoverys reports whether a reconfiguration has taken the commit from its coordinator.
func (s commitState) isRecoverys() bool { return s >= stateCaught && s <= stateRecoveredAborted }

// isWithoutEffect reports whether the transaction has had no effect and can have none, so that the
// slots reserved for its new objects can be freed.
func (s commitState) isWithoutEffect() bool {
	return s <= stateValidating || s == stateAborted || s == stateRecoveredAborted
}
