package simtest

import (
	"time"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/sim"
	"github.com/farmsql/farmsql/recovery"
	"github.com/farmsql/farmsql/txn/step"
)

// The paper's machines have 30 threads, each with 8 transactions at a time, and about 84 replicas
// of regions (SOSP'15 section 6.4). A thread shares its queue pairs, logs and transactions with no
// other thread. So the simulation runs a slice of each machine: one thread, with its 8
// transactions, and 3 replicas. All counts here are a thirtieth of the counts in the paper.
const (
	threads     = 30
	tasksOfEach = 8
)

// Processor time of a thread's operations, chosen so that the thread carries out as many as a
// thread of the paper:
//
//   - it looks up 292,000 keys a second, each with one READ: 790 million on 90
//     machines (section 6.3). That is 3.4 us for an operation.
//   - it runs 51,800 transactions of TATP a second: 140 million on 90 machines. In
//     the mix of subscriber that is 19.3 us for 2.5 operations and one record. A
//     transaction that updates, one in five, costs the handling of its LOCK and the
//     reply, its COMMIT-PRIMARY and two COMMIT-BACKUPs. So the cost of a record is
//     the rest of the 19.3 us. It includes the work of TATP that subscriber lacks.
//   - a remote procedure call costs both sides together four times as much as a
//     READ (figure 2), so one of its two datagrams costs each side as much as an
//     operation.
//   - the contents of datagrams are ours, and so is their cost: decoding a list of
//     recovering transactions, or a configuration, runs at some 50 MB/s.
const (
	operationCost = 3400 * time.Nanosecond
	recordCost    = 10800 * time.Nanosecond
	kilobyteCost  = 20 * time.Microsecond
	// pollEvery is how often a waiting transaction checks whether it can go on.
	pollEvery = 5 * time.Microsecond
)

// cardBandwidth is a thread's share of two cards of 56 Gb/s (section 6.1).
const cardBandwidth = 2 * 56e9 / 8 / threads

// stepCosts are the costs of steps of transactions, at the machine that carries them out.
var stepCosts = [step.Count]time.Duration{
	step.Lock:         2 * recordCost, // LOCK, and LOCK-REPLY at the coordinator
	step.Unlock:       recordCost,
	step.ApplyPrimary: recordCost,
	step.ApplyBackup:  recordCost,
}

// recoveryCosts are the costs of steps of recovery: the two that happen for each transaction at
// each replica.
var recoveryCosts = [recovery.Steps]time.Duration{
	recovery.StepOutcome:   recordCost,
	recovery.StepTruncated: recordCost,
}

// paperOptions returns the options of section 6: leases of 10 ms (which is leaseTime), three
// replicas, five failure domains.
func paperOptions(seed uint64, machines int) Options {
	return Options{
		Seed: seed,
		World: sim.Options{
			Seed: 2 * seed, Drift: 100, // an even seed: no card reports deaths, as between hosts
			Processors: 1, Bandwidth: cardBandwidth,
			Costs: sim.Costs{Operation: operationCost, Datagram: operationCost, Kilobyte: kilobyteCost, Yield: pollEvery},
		},
		Farm:    farm.Config{Machines: machines, Replicas: 3, Workers: 1, RegionBytes: 1 << 20, LogBytes: 64 << 10, MessageBytes: 16 << 10},
		Domains: 5, Clients: tasksOfEach, Objects: 100 * machines, Keys: machines, LeafBytes: 400, Buckets: 32,
	}
}
