package storetest

import (
	"testing"

	"github.com/farmsql/farmsql/cluster"
)

// A System is a store that holds nothing yet, as several machines reach it. The functions that
// cause faults are nil where a store cannot have them, and Run leaves out their tests. All faults have
// taken effect when the function returns.
type System struct {
	// Machines is how many machines reach the store.
	Machines int
	// Store returns the store as a machine has opened it. It is another one after a restart.
	Store func(machine int) cluster.Store
	// MovedMayBeDone says that a swap that was carried out, and whose answer was lost, may be reported as
	// ErrMoved when another has followed.
	MovedMayBeDone bool
	// Restart ends everything that keeps the configuration, as a crash would, and starts it again.
	Restart func()
	// Cut keeps a machine from reaching the others, and what keeps the configuration, until heal.
	Cut func(machine int) (heal func())
	// CutAnswers lets what a machine sends pass, and drops all that is sent to it, until heal.
	CutAnswers func(machine int) (heal func())
	// Kill ends a machine as a crash would, until start. The others go on.
	Kill func(machine int) (start func())
	// Leader returns the machine that decides for all at the moment, or false if there is none.
	// The function is nil for a store without a leader.
	Leader func() (machine int, ok bool)
}

// Run runs the suite. open makes a new system for each test; what it starts ends with the test.
func Run(t *testing.T, open func(t *testing.T) *System) {
	var faults *System
	t.Run("opened and closed", func(t *testing.T) { faults = open(t) })
	for _, test := range []struct {
		name string
		run  func(t *testing.T, r *run)
		can  func(s *System) bool // nil if every system can have the test
	}{
		{"swap and load", testSwapAndLoad, nil},
		{"one of many swaps", testOneOfMany, nil},
		{"many swaps and loads", testHistory, nil},
		{"restart", testRestart, func(s *System) bool { return s.Restart != nil }},
		{"partition of a machine", testPartition, func(s *System) bool { return s.Cut != nil }},
		{"partition of the leader", testPartitionOfLeader, func(s *System) bool { return s.Cut != nil && s.Leader != nil }},
		{"many swaps and loads, with partitions", testHistoryWithPartitions, func(s *System) bool { return s.Cut != nil }},
		{"leader killed", testLeaderKilled, func(s *System) bool { return s.Kill != nil && s.Leader != nil }},
		{"answers lost", testAnswersLost, func(s *System) bool { return s.CutAnswers != nil }},
		{"answers to the leader lost", testAnswersToLeaderLost, func(s *System) bool { return s.CutAnswers != nil && s.Leader != nil }},
	} {
		if t.Failed() || (test.can != nil && !test.can(faults)) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			r := &run{t: t, system: open(t)}
			test.run(t, r)
			r.check()
		})
	}
}
