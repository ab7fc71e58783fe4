// Package sabotage leaves steps of the protocols out. Only tests do that, before
// anything runs (internal/lint sees to it): they show that the tests of the
// protocols would notice.
package sabotage

// A Step is a step of a protocol that can be left out, or done wrongly.
type Step uint8

const (
	// Validation: what was read is not looked at again.
	Validation Step = iota
	// ValidationLast: validation comes before the locks.
	ValidationLast
	// LockedVersion: the version that is there is locked, not the one read.
	LockedVersion
	// Answers: questions whose sources have moved are not asked again.
	Answers
	// Backups: COMMIT-BACKUP is not written.
	Backups
	// BackupAcks: COMMIT-PRIMARY is written before all backups have
	// acknowledged COMMIT-BACKUP.
	BackupAcks
	// PrimaryAcks: a transaction is truncated before all primaries have
	// acknowledged COMMIT-PRIMARY.
	PrimaryAcks
	// Reservations: no room in logs is reserved before a commit begins.
	Reservations
	// OldLeases: NEW-CONFIG-COMMIT does not wait for the leases of evicted machines.
	OldLeases
	// Drain: what lies in the logs at NEW-CONFIG-COMMIT is rejected.
	Drain
	// LockRecovery: what recovering transactions write is not locked.
	LockRecovery
	// Votes: what one replica of a region has seen does not count.
	Votes
	// Ledger: that a transaction was truncated is forgotten with its records.
	Ledger
	// Parts: what an object holds now is not compared with the part of it that was read.
	Parts
	steps
)

// Steps is how many there are.
const Steps = int(steps)

var names = [steps]string{"validation", "validation last", "locked version", "answers", "backups", "backup acks", "primary acks", "reservations", "old leases", "drain", "lock recovery", "votes", "ledger", "parts"}

func (s Step) String() string { return names[s] }

var skipped [steps]bool

// Skipped says whether the step is to be left out.
func (s Step) Skipped() bool { return skipped[s] }

// Skip leaves the step out until undo is called.
func Skip(s Step) (undo func()) {
	skipped[s] = true
	return func() { skipped[s] = false }
}
