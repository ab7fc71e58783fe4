package txn

import (
	"fmt"

	"github.com/farmsql/farmsql/internal/invariant"
)

// A commitState is how far one attempt to commit has come. The upper line is the commit
// protocol (SOSP'15 section 4), whose steps the coordinator takes; below the dashes recovery
// has taken over (section 5.3).
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
//   - Log space is reserved at all participants before the first LOCK record is written,
//     because from then on the transaction holds what others wait for, and must not itself
//     wait for room that only they can give back.
//   - Locking comes before validation. All locks are held when validation begins, so if it
//     finds every object that was read unchanged, all that was read and all that is about to be
//     written held at one moment, which is the transaction's place among all others. Validated
//     first, an object could change before the locks are there.
//   - Nothing that says "commit" is written before validation has succeeded: as long as there
//     are only LOCK records the coordinator may abort, and recovery will. With a COMMIT-BACKUP
//     anywhere recovery may commit, so there is no way back from committing backups.
//   - All backups have COMMIT-BACKUP before the first primary gets COMMIT-PRIMARY, which
//     exposes the writes: were a backup without its record, the failure of the others could
//     have recovery abort what somebody has read.
//   - Success is reported when one primary has COMMIT-PRIMARY, not before: if all backups
//     fail, the primary that is left has a LOCK record, which alone is no vote to commit.
//   - Records are truncated when all primaries have COMMIT-PRIMARY: until then those at the
//     backups may be all from which recovery can tell that a primary has to commit. The
//     truncation is followed by acks, which outlive the commit: its memory serves the next.
type commitState uint8

const (
	// statePlanned: nothing is reserved or written.
	statePlanned commitState = iota
	// stateLocking: LOCK records are being written and replied to. The commit has its
	// identifier, and is among the worker's begun from here to stateCommittingPrimaries.
	stateLocking
	// stateValidating: all that is written is locked; what was read is looked at again.
	stateValidating
	// stateCommittingBackups: COMMIT-BACKUP may be at some backups. A commit that has it at
	// all and waits for the lease is still in this state, whether somebody waits for it or not.
	stateCommittingBackups
	// stateCommittingPrimaries: COMMIT-BACKUP is at all backups, COMMIT-PRIMARY may be at
	// some primaries.
	stateCommittingPrimaries
	// stateTruncating: COMMIT-PRIMARY is at one primary: the transaction has committed.
	stateTruncating
	// stateAborted: what was locked has been given back, or nothing was.
	stateAborted
	// stateStranded: a participant was lost when the transaction may have committed. The
	// reconfiguration that this must lead to will catch it.
	stateStranded
	// stateCaught: a reconfiguration came. The coordinator writes nothing more; recovery
	// decides, and tells the worker (Machine.Resolve).
	stateCaught
	stateRecoveredCommitted
	stateRecoveredAborted
	// stateInDoubt: nobody will tell this machine what recovery decides.
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

// commitTransitions are the states that can follow each. From those that have none but
// statePlanned the commit's memory goes to the next attempt, or to another transaction.
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

// enterLocked takes the commit to another state. The lock is its worker's, but for
// statePlanned, which only the transaction that has the commit's memory enters.
func (c *commit) enterLocked(to commitState) {
	if invariant.Enabled && !commitTransitions[c.state].has(to) {
		invariant.Violated(fmt.Sprintf("states of commit %v follow each other", c.id), fmt.Sprintf("%v, then %v", c.state, to), "another")
	}
	c.state = to
}

// isRecoverys says that a reconfiguration has taken the commit from its coordinator.
func (s commitState) isRecoverys() bool { return s >= stateCaught && s <= stateRecoveredAborted }

// isWithoutEffect says that the transaction has none, and will have none, so that what was
// reserved for its new objects is free.
func (s commitState) isWithoutEffect() bool {
	return s <= stateValidating || s == stateAborted || s == stateRecoveredAborted
}
