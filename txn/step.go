package txn

import (
	"fmt"

	"github.com/farmsql/farmsql/txn/record"
)

// A Step is a point in the life of a transaction at which memory has just
// changed, or a phase has ended. Events.Step is told of each. Tests stop the
// world there and look at what a crash would leave behind.
type Step uint8

const (
	StepLockRecord    Step = iota // coordinator: LOCK is in a primary's log
	StepLock                      // primary: an object is locked
	StepUnlock                    // primary: an object is unlocked, unchanged
	StepValidate                  // coordinator: all that was read still holds
	StepCommitBackup              // coordinator: COMMIT-BACKUP is in a backup's log
	StepCommitPrimary             // coordinator: COMMIT-PRIMARY is in a primary's log
	StepAbort                     // coordinator: ABORT is in a primary's log
	StepTruncate                  // coordinator: TRUNCATE is in a participant's log
	StepApplyPrimary              // primary: an object has its new state
	StepApplyBackup               // backup: an object has its new state
	StepFreeLog                   // participant: records have been freed
	StepBlock                     // primary: part of a block table is at the backups
	StepAnnex                     // participant: an annex has been made
	StepFillAnnex                 // coordinator: a piece of an annex is on its way
	StepDropAnnex                 // participant: an annex has been given back
	steps
)

// Steps is how many kinds of steps there are.
const Steps = int(steps)

var stepNames = [steps]string{"lock-record", "lock", "unlock", "validate", "commit-backup", "commit-primary", "abort", "truncate", "apply-primary", "apply-backup", "free-log", "block", "annex", "fill-annex", "drop-annex"}

func (s Step) String() string {
	if s >= steps {
		return fmt.Sprintf("step %d", uint8(s))
	}
	return stepNames[s]
}

// reached tells of a step.
func (m *Machine) reached(s Step) {
	if f := m.cfg.Events.Step; f != nil {
		f(s)
	}
}

var recordSteps = [record.Kinds]Step{
	record.Lock: StepLockRecord, record.CommitBackup: StepCommitBackup, record.CommitPrimary: StepCommitPrimary,
	record.Abort: StepAbort, record.Truncate: StepTruncate,
}
