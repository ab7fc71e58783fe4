//go:build sabotage

package simtest

import (
	"time"

	"github.com/farmsql/farmsql/internal/sabotage"
)

// catches says what catches each protocol.
var catches = []catch{
	{step: sabotage.ValidationLast},
	{step: sabotage.LockedVersion},
	{step: sabotage.Answers},
	{step: sabotage.Parts},
	{step: sabotage.Backups},
	{step: sabotage.Validation, options: "members", with: asMembers},
	{step: sabotage.Drain, options: "members", with: asMembers},
	{step: sabotage.LockRecovery, options: "members", with: asMembers},
	{step: sabotage.Votes, options: "members", with: asMembers},
	{step: sabotage.OldLeases, options: "cuts in recovery", with: leaveBehind},
	{step: sabotage.BackupAcks, options: "spikes and kills at a step", with: killInSpikes(KillAtStep)},
	{step: sabotage.PrimaryAcks, options: "spikes and kills", with: killInSpikes(Kill)},
	{step: sabotage.Reservations, options: "full logs", with: fillLogs},
	{step: sabotage.Ledger, options: "lost memory", with: loseMemory},
}

// loseMemory has machines come back from a power cut without their memory.
func loseMemory(o *Options) {
	asMembers(o)
	o.Farm.Machines, o.Farm.Replicas, o.Domains = 4, 2, 4
	o.Faults, o.Calm = []Fault{PowerCutUnsaved}, time.Millisecond
}

func asMembers(o *Options) { o.New = NewMembers }

// leaveBehind cuts machines off whose leases last.
func leaveBehind(o *Options) {
	asMembers(o)
	o.Farm.Machines, o.Farm.Replicas, o.World.Loss = 5, 3, 0
	o.Readers, o.Duration, o.Faults = 2, 40*time.Millisecond, []Fault{CutInRecovery}
}

// killInSpikes returns options that kill machines while what they send is slow to arrive.
func killInSpikes(kill Fault) func(*Options) {
	return func(o *Options) {
		asMembers(o)
		o.Farm.Machines, o.Farm.Replicas, o.World.Loss = 3, 2, 0
		o.Clients, o.Duration, o.Calm, o.Faults = 4, 40*time.Millisecond, 100*time.Microsecond, []Fault{Spike, Spike, Spike, kill}
	}
}

// fillLogs writes more than logs have room for while a machine that is paused takes
// nothing out of them.
func fillLogs(o *Options) {
	asMembers(o)
	o.Farm.Machines, o.Farm.Replicas, o.Farm.Workers, o.Farm.LogBytes, o.World.Loss = 3, 3, 1, 32<<10, 0
	o.Clients, o.Duration, o.Faults = 16, 20*time.Millisecond, []Fault{Pause}
}
