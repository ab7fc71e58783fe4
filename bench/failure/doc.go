// Package failure measures what the failure of machines costs the surviving machines:
// SOSP'15 section 6.4.
//
//	c, err := bench.OpenCluster(ctx, ...) // machines that are processes
//	err = c.Load(ctx, progress)
//	result, err := failure.Measure(ctx, c, log, failure.Config{Kill: failure.Machine, Runs: 40})
//	result.Print(os.Stdout)
//
// # A run
//
//	warm-up   before      killed                                     data recovered     stop
//	--------|-----------|----+-----+------+--------+---------+------+-----------------|---> check, restart
//	                       suspected  probed  stored  committed  all active
//	                                                     data recovery started
//
// Clients of all machines run the workload, each at its machine: natively, or with TargetConfig.API
// bench.SQL over MySQL, which each machine serves at a port of the host. Errors of a survivor's
// clients around the failure must be conflicts (over MySQL, error 1213): they are counted, and the
// transaction is run again. Any other error ends the run, and there is no result. An undisturbed
// time serves as comparison. Then machines are killed with SIGKILL: one, the CM, or all of a
// failure domain. Or they are stopped with SIGSTOP (Config.Way), so that only their leases show it,
// as when a host is gone. One thing differs from that: the others can read and write the memory of
// a stopped machine until they evict it, as when a processor stops and its network card does not.
// The run goes on until every region has been active for a while, and has all replicas again for
// which there are machines. Stopped machines are killed then. The workload's consistency is checked
// at a survivor; if it is violated there is no result. At last the killed machines are started
// again, and the next run begins when all replicas are filled, and the cluster has moved replicas and handed
// over primaries until all machines have their share, which it begins some time after they are back.
//
// If the CM is not to be killed, the machine with the most primaries is.
//
// # What is measured
//
// Throughput is measured by the millisecond, on the clock that all processes of a host share. Only
// the survivors' clients count, before the failure too. The throughput is back at the end of the first
// interval of 20 ms after the suspicion with 80 % of the average throughput before the failure. The
// steps are from the machines' logs:
//
//   - suspected: the first machine says that it suspects what was killed, or the
//     machine that leads the reconfiguration begins it;
//   - probed, stored, committed (NEW-CONFIG-COMMIT), all regions active: at the
//     machine that leads; if several reconfigurations are needed, of the last;
//   - data recovery started, recovered: the first machine begins to fill a replica,
//     and the last replica is filled. If too few failure domains are left, nothing is
//     filled before the killed machines are back, and neither step is reported.
//
// # JSON
//
// WriteJSON writes one object. Times are in milliseconds since the kill, or the stop. Only those in
// timeline are, as in all benchmarks, in seconds since the measured time began:
//
//	{"conditions": {...},                   bench.Conditions, of the median run
//	 "kind": "machine", "pace": "slow",     what was killed, and how data are recovered
//	 "way": "kill",                         or "stop"
//	 "domains": 5,                          failure domains
//	 "leaseMilliseconds": 100, "leaseKeptBy": "...",
//	 "runs": [{"killed": [2], "beforePerSecond": 81000,
//	           "suspected": 9.8, "probed": 10.1, "stored": 10.3, "committed": 21,
//	           "allActive": 30, "throughput": 52, "recoveryStarted": 31, "recovered": 1900,
//	           "whole": 4100, "filledReplicas": 3, "filledBytes": 5000000,
//	           "return": {"whole": 900, "filledReplicas": 3,   since it was started again
//	                      "readBytes": 200000, "heldBytes": 5000000},
//	           "aborts": {"deadlock (1213)": 12, ...}}, ...],
//	 "replicasCompared": true,              if it was done after the last run
//	 "distribution": [{"name": "killed to suspected", "runs": 40,
//	           "minimum": 5, "median": 9, "p90": 30, "maximum": 95}, ...],
//	 "timeline": {"run": 17, "perMillisecond": [81, 79, ...],
//	           "events": [{"seconds": 1.0, "text": "killed"}, ...],
//	           "filled": [2.1, 2.4, ...]}}
//
// throughput, recoveryStarted and recovered are left out if they did not happen. The
// timeline is that of the run whose time from the suspicion to 80 % of the throughput
// is the median; filled has, for each replica, when it was filled.
package failure
