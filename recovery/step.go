package recovery

// A Step is a point in recovery, at one machine.
type Step uint8

const (
	StepSuspected  Step = iota // a machine is suspected
	StepProbed                 // a majority has answered the CM's probe
	StepStored                 // the CM has stored the next configuration, and no other machine knows it
	StepApplied                // NEW-CONFIG is applied, but not acknowledged
	StepAcked                  // at the CM: all machines have acknowledged
	StepLeasesOver             // old leases have run out
	StepCommitted              // NEW-CONFIG-COMMIT has arrived
	StepDrained                // the first step of the recovery of transactions, which goes on to StepSettled
	StepNeedRecovery
	StepFetched
	StepLocked
	StepActive
	StepReplicated
	StepVoted
	StepDecided
	StepOutcome // COMMIT-RECOVERY or ABORT-RECOVERY was carried out
	StepResolved
	StepTruncated
	StepSettled
	StepAllActive // ALL-REGIONS-ACTIVE has arrived
	StepFilling   // a piece of a replica is copied
	StepFilled    // all of a region is copied, but the CM does not know that
	StepScanning  // free lists are rebuilt in part
	StepScanned
	recoverySteps
)

// Steps is the number of steps.
const Steps = int(recoverySteps)

var stepNames = [Steps]string{"suspected", "probed", "stored", "applied", "acknowledged", "leases over", "committed",
	"drained", "need-recovery", "fetched", "locked", "active", "replicated", "voted", "decided", "outcome", "resolved", "truncated", "settled",
	"all active", "filling", "filled", "scanning", "scanned"}

func (s Step) String() string { return stepNames[s] }
