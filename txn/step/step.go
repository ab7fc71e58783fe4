// Package step names the points in a transaction's life at which tests observe it.
package step

import "fmt"

// A Step is a point in the life of a transaction at which memory has just changed, or a phase has
// ended. Each is reported to worker.Events.Step. Tests stop the world there and examine what a crash
// would leave behind.
type Step uint8

const (
	LockRecord    Step = iota // coordinator: LOCK is in a primary's log
	Lock                      // primary: an object is locked
	Unlock                    // primary: an object is unlocked, unchanged
	Validate                  // coordinator: all objects in the read set are unchanged
	CommitBackup              // coordinator: COMMIT-BACKUP is in a backup's log
	CommitPrimary             // coordinator: COMMIT-PRIMARY is in a primary's log
	Abort                     // coordinator: ABORT is in a primary's log
	Truncate                  // coordinator: TRUNCATE is in a participant's log
	ApplyPrimary              // primary: an object has its new state
	ApplyBackup               // backup: an object has its new state
	FreeLog                   // participant: records have been freed
	Block                     // primary: the backups have part of a block table
	Annex                     // participant: an annex has been made
	FillAnnex                 // coordinator: a piece of an annex is being written
	DropAnnex                 // participant: an annex has been freed
	kinds
)

// Count is how many kinds of steps there are.
const Count = int(kinds)

var names = [kinds]string{"lock-record", "lock", "unlock", "validate", "commit-backup", "commit-primary", "abort", "truncate", "apply-primary", "apply-backup", "free-log", "block", "annex", "fill-annex", "drop-annex"}

func (s Step) String() string {
	if s >= kinds {
		return fmt.Sprintf("step %d", uint8(s))
	}
	return names[s]
}
