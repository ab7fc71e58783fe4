//go:build sabotage

package simtest

import (
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
)

// catches lists what catches each broken protocol.
var catches = []catch{
	{step: sabotage.Validation},
	{step: sabotage.ValidationLast},
	{step: sabotage.LockedVersion},
	{step: sabotage.Answers},
	{step: sabotage.Rounds, pkg: "txn", test: "TestAskedAgainAllIsLookedAtAgain"},
	{step: sabotage.Parts},
	{step: sabotage.LateChecks, pkg: "txn", test: "TestPrepareAgain"},
	{step: sabotage.ValidationReply},
	{step: sabotage.Backups},
	{step: sabotage.BackupAcks, options: "spikes and kills at a step", with: killInSpikes(KillAtStep)},
	{step: sabotage.OwnBackup, pkg: "txn", test: "TestOwnBackupAppliesAfterAllAcks"},
	{step: sabotage.FirstPrimary},
	{step: sabotage.PrimaryAcks, options: "spikes and kills", with: killInSpikes(Kill)},
	{step: sabotage.Reservations, options: "full logs", with: fillLogs},
	{step: sabotage.AllLocks},
	{step: sabotage.AbortRecord},
	{step: sabotage.SecondReply, pkg: "txn/worker", test: "TestLockReplyCountsOnce"},
	{step: sabotage.BackupApply},
	{step: sabotage.NewerVersion},
	{step: sabotage.FarTruncations, pkg: "txn/worker", test: "TestNamedWhereThereIsAPlace"},
	{step: sabotage.Outbox, pkg: "txn", test: "TestMessagesThroughTinyQueues"},
	{step: sabotage.TruncateTimer, pkg: "txn", test: "TestTruncationsDoNotWaitForOtherRecords"},
	{step: sabotage.CommitConfirm, pkg: "recovery/transactions", test: "TestPaper5_2_NoCommitIsReportedWithoutALease"},
	{step: sabotage.AnnexFill, options: "large transactions", with: growLarge},
	{step: sabotage.AnnexAcks, options: "large transactions", with: growLarge},
	{step: sabotage.EarlyAnnex, options: "large transactions", with: growLarge},
	{step: sabotage.CaughtSlices, pkg: "txn", test: "TestFreezeBetweenSlices"},
	{step: sabotage.LockedReads},
	{step: sabotage.LineVersions, pkg: "region", test: "TestUnpackTorn"},
	{step: sabotage.Incarnation, pkg: "region", test: "TestReadErrors"},
	{step: sabotage.LocalHeader, pkg: "region", test: "TestReadersNeverSeeTornObjects"},
	{step: sabotage.ReadRoute, pkg: "txn", test: "TestReadsOfAChangedRouteAreRepeated"},
	{step: sabotage.ChecksRoute, pkg: "txn", test: "TestReadsOfAChangedRouteAreRepeated"},
	{step: sabotage.ReadConfirm},
	{step: sabotage.LostSlot, pkg: "txn", test: "TestLostSlotIsNotOurs"},
	{step: sabotage.Loans},
	{step: sabotage.LoansEnd},
	{step: sabotage.FreedSlots},
	{step: sabotage.ScanLocked},
	{step: sabotage.BlockBackups},
	{step: sabotage.SendBlocks},
	{step: sabotage.OpenOperations, pkg: "txn/worker", test: "TestFollowsFromFarBehind"},
	{step: sabotage.EpochsToWait, pkg: "region", test: "TestClassChangeWaitsForEpochs"},
	{step: sabotage.BlockedValidation, pkg: "recovery/transactions", test: "TestPaper5_3_NoValidationInBlockedRegions"},
	{step: sabotage.OldRoutes, pkg: "txn/worker", test: "TestPlannedForOtherRoutes"},
	{step: sabotage.InactiveWrite, pkg: "recovery/transactions", test: "TestPaper5_3_NoCommitsBeforeLocksAreRecovered"},
	{step: sabotage.FrozenBegin, pkg: "recovery/transactions", test: "TestPaper5_3_CommitsBeginAfterTheDrain"},
	{step: sabotage.Caught},
	{step: sabotage.OldAcks, pkg: "txn/worker", test: "TestOldAcknowledgementsDoNotCount"},
	{step: sabotage.Sever, pkg: "txn", test: "TestFreezeEndsBrokenConnections"},
	{step: sabotage.MessagesKey, pkg: "txn", test: "TestSeveredPeersWriteNoMessages"},
	{step: sabotage.FrozenRecords, pkg: "txn/participant", test: "TestPaper5_3_RecordsOfAFrozenLogAreEvidence"},
	{step: sabotage.LateRecords, pkg: "txn/participant", test: "TestPaper5_3_RecordsAfterTheDrainHaveNoEffect"},
	{step: sabotage.HeldRecords, pkg: "txn/participant", test: "TestHeldRecordsStay"},
	{step: sabotage.Ledger, options: "lost memory", with: loseMemory},
	{step: sabotage.Bounds, pkg: "txn/evidence", test: "TestBounds"},
	{step: sabotage.ForeignBounds, pkg: "txn/evidence", test: "TestBoundsSayNothingOfWhoWasThere"},
	{step: sabotage.SpilledNotes, pkg: "txn/evidence", test: "TestNotesBeyondTheOwnLog"},
	{step: sabotage.DrainFirst, pkg: "recovery/transactions", test: "TestPaper5_3_CommitsBeginAfterTheDrain"},
	{step: sabotage.Drain},
	{step: sabotage.NeedRecovery, pkg: "recovery/transactions", test: "TestPaper5_3_LockRecoveryFetchesMissingRecords"},
	{step: sabotage.Fetch, pkg: "recovery/transactions", test: "TestPaper5_3_LockRecoveryFetchesMissingRecords"},
	{step: sabotage.LockRecovery},
	{step: sabotage.Replicate, pkg: "recovery/transactions", test: "TestPaper5_3_VotesSurviveTheirWitness"},
	{step: sabotage.Votes},
	{step: sabotage.AllVotes, pkg: "recovery/transactions", test: "TestPaper5_3_DecidesWhenAllHaveVoted"},
	{step: sabotage.RequestVote, pkg: "recovery/transactions", test: "TestPaper5_3_RequestVoteTruncated"},
	{step: sabotage.Truncated, pkg: "recovery/transactions", test: "TestPaper5_3_RequestVoteTruncated"},
	{step: sabotage.CommitPrimaryVote, pkg: "recovery/transactions", test: "TestPaper5_3_Decide"},
	{step: sabotage.OtherVotes, pkg: "recovery/transactions", test: "TestPaper5_3_Decide"},
	{step: sabotage.BackupOutcome, pkg: "recovery/transactions", test: "TestPaper5_3_OneCommitBackupCommits"},
	{step: sabotage.AllDecided, pkg: "recovery/transactions", test: "TestNobodySettlesBeforeAllHaveDecided"},
	{step: sabotage.OutcomeFirst, pkg: "recovery/transactions", test: "TestPaper5_3_TruncateRecoveryAfterAllAcknowledgements"},
	{step: sabotage.ConfigAcks, pkg: "recovery/membership", test: "TestPaper5_2_CommitAfterAll"},
	{step: sabotage.OldLeases, options: "cuts in recovery", with: leaveBehind},
	{step: sabotage.OldConfig, pkg: "recovery/membership", test: "TestPaper5_2_OlderIsRefused"},
	{step: sabotage.SlowRecovery, pkg: "recovery/membership", test: "TestReconfigurationTakesALeaseOrTwo"},
	{step: sabotage.CompareAndSwap, pkg: "recovery/membership", test: "TestPaper5_2_OneCompareAndSwap"},
	{step: sabotage.Majority, pkg: "recovery/membership", test: "TestPaper5_2_MajorityOfProbes"},
	{step: sabotage.ProbeIncarnation, pkg: "recovery/membership", test: "TestPaper5_2_AnotherLifeIsMissing"},
	{step: sabotage.SettledJoin, pkg: "recovery/membership", test: "TestJoinWaitsForRecovery"},
	{step: sabotage.FilledPrimary, pkg: "cluster", test: "TestFillingIsNotPromoted"},
	{step: sabotage.BlocksOfOthers, pkg: "txn", test: "TestBlocksOfAnotherPrimary"},
	{step: sabotage.Dropped, pkg: "region", test: "TestDropWhileASlabIsKept"},
	{step: sabotage.ReservedIn, pkg: "region", test: "TestLeavesBeforeTheConfigurationIsKnown"},
	{step: sabotage.LateBlocks, pkg: "region", test: "TestBlocksOfAnEarlierTenure"},
	{step: sabotage.LeftLocks, options: "handovers", with: handOver},
	{step: sabotage.SharedLocks, pkg: "txn/evidence", test: "TestLeftLocksOfSeveral"},
	{step: sabotage.EarlierLoans, pkg: "txn", test: "TestEarlierLoansEnd"},
	{step: sabotage.TenureGoesOn, pkg: "farm", test: "TestTenureBeyondASkippedConfiguration"},
	{step: sabotage.LocateCurrent, pkg: "txn/worker", test: "TestLocatedInAnEarlierConfiguration"},
	{step: sabotage.OwnEvidence, pkg: "txn/evidence", test: "TestEvidenceOfAnEarlierReplica"},
	{step: sabotage.MoveFilled, pkg: "cluster", test: "TestMoveWaitsForFilling"},
	{step: sabotage.ShrinkFilled, pkg: "cluster", test: "TestShrinkWaitsForFilling"},
	{step: sabotage.HeldMoves, pkg: "recovery/membership", test: "TestHeldMoves"},
	{step: sabotage.FullTarget, pkg: "farm", test: "TestTargetThatBecomesFull"},
	{step: sabotage.FillingReads, pkg: "farm", test: "TestReadsOfWhatIsBack"},
	{step: sabotage.DepartedSettled, pkg: "farm", test: "TestDepartedAreFreedLate"},
	{step: sabotage.DepartedEpochs, pkg: "farm", test: "TestDepartedAtClose"},
	{step: sabotage.DepartedNames, pkg: "farm", test: "TestDepartedIsKeptAsOfThen"},
	{step: sabotage.FillSettled, pkg: "farm", test: "TestFilledAfterSettled"},
	{step: sabotage.FillNewer, pkg: "region", test: "TestPaper5_4_NewerStateStays"},
	{step: sabotage.FillLocked},
	{step: sabotage.GrantedLease, pkg: "cluster/lease", test: "TestMinorityLosesItsLeases"},
	{step: sabotage.LeaseBegin, pkg: "cluster/lease", test: "TestPaper5_1_ThreeWayHandshake"},
	{step: sabotage.LeaseMajority, pkg: "cluster/lease", test: "TestMinorityLosesItsLeases"},
	{step: sabotage.Expiry, pkg: "cluster/lease", test: "TestExpiry"},
	{step: sabotage.Beats, options: "wedges", with: wedge},
	{step: sabotage.Repeat, pkg: "rdma/call", test: "TestCallsOverALossyNetwork"},
	{step: sabotage.OtherLife, pkg: "rdma/call", test: "TestOtherLife"},
	{step: sabotage.Seal, pkg: "rdma/ring", test: "TestHalfWritten"},
	{step: sabotage.Credit, pkg: "rdma/ring", test: "TestCreditAfterCut"},
	{step: sabotage.Nonce, pkg: "rdma/ring", test: "TestResetShutsOutOldSender"},
	{step: sabotage.Wakeup, pkg: "txn/worker", test: "TestWaiter"},
	{step: sabotage.Found},
	{step: sabotage.FoundRow},
	{step: sabotage.JointBuckets, pkg: "index/hash", test: "TestLookupManyBetween"},
	{step: sabotage.ChainVersion, pkg: "index/hash", test: "TestSearchAlongAnotherChain"},
	{step: sabotage.StaleDirectory, pkg: "index/hash", test: "TestGrowthWhileInUse"},
	{step: sabotage.Fences, pkg: "index/btree", test: "TestStaleCaches"},
	{step: sabotage.GlanceFences, pkg: "index/btree", test: "TestLookupWhileLeavesChange"},
	{step: sabotage.RangeEnds, pkg: "index/btree", test: "TestQuestions"},
	{step: sabotage.Descriptor, options: "tables", with: defineTables},
	{step: sabotage.Triggers, pkg: "catalog", test: "TestTriggersOfTables"},
	{step: sabotage.Mark, options: "tables", with: defineTables},
	{step: sabotage.Orphans, options: "tables", with: defineTables},
	{step: sabotage.Numbers, options: "tables", with: defineTables},
	{step: sabotage.OldCopies, options: "old copies", with: ageMemories},
}

// defineTables makes clients define tables.
func defineTables(o *Options) {
	o.Tables = 3
}

// handOver hands over primaries, and kills machines just then.
func handOver(o *Options) {
	*o = o.Overlapping()
	o.Tables = 0
	handsOver(o)
}

// ageMemories makes machines come back with older copies of their memory.
func ageMemories(o *Options) {
	*o = o.Overlapping().plentiful()
	o.Farm.Machines, o.Farm.Replicas, o.Domains, o.Tables = 3, 2, 3, 0
	o.Duration, o.Overlap = 60*time.Millisecond, &Overlap{Kinds: []Fault{Kill, PowerCut, OldCopy}, Open: 2, Hold: 10 * time.Millisecond}
}

// loseMemory makes machines come back from a power cut without their memory.
func loseMemory(o *Options) {
	o.Farm.Machines, o.Farm.Replicas, o.Domains = 4, 2, 4
	o.Faults, o.Calm = []Fault{PowerCutUnsaved}, time.Millisecond
}

// growLarge makes nearly all transactions large.
func growLarge(o *Options) {
	o.Small = smallMax
}

// leaveBehind cuts machines off whose leases last.
func leaveBehind(o *Options) {
	o.Farm.Machines, o.Farm.Replicas, o.World.Loss = 5, 3, 0
	o.Readers, o.Duration, o.Faults = 2, 40*time.Millisecond, []Fault{CutInRecovery}
}

// killInSpikes returns options that kill machines while their messages are slow to arrive.
func killInSpikes(kill Fault) func(*Options) {
	return func(o *Options) {
		o.Farm.Machines, o.Farm.Replicas, o.World.Loss = 3, 2, 0
		o.Clients, o.Duration, o.Calm, o.Faults = 4, 40*time.Millisecond, 100*time.Microsecond, []Fault{Spike, Spike, Spike, kill}
	}
}

// fillLogs writes more than logs have room for, while a paused machine takes nothing out of them.
func fillLogs(o *Options) {
	o.Farm.Machines, o.Farm.Replicas, o.Farm.Workers, o.Farm.LogBytes, o.World.Loss = 3, 3, 1, 32<<10, 0
	o.Clients, o.Duration, o.Faults = 16, 20*time.Millisecond, []Fault{Pause}
}
