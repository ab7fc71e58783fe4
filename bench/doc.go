// Package bench is the harness of the benchmarks: it runs a Workload against a Target, and reports
// the results with their conditions.
//
//	target, err := bench.Open(ctx, bench.TargetConfig{API: bench.Native, Machines: 3, Replicas: 3})
//	w := tatp.New(target, tatp.Config{Subscribers: 100_000, Seed: 1})
//	err = w.Load(ctx, bench.NewProgress(os.Stderr))
//	result, err := bench.Run(ctx, target, w, bench.Options{Threads: 2, WarmUp: 2 * time.Second, Duration: 10 * time.Second})
//	result.Print(os.Stdout)
//
// # Machines as processes
//
// A Target is in one process: its machines share a scheduler and a garbage collector. In a Cluster
// each machine is a process, which reaches the others over rdma/shm. The process has its own
// clients, because in SOSP'15 section 6 the load comes from the machines themselves. Clients of SQL
// connect over MySQL to a port of their machine, as to farmsql serve:
//
//	            Cluster            commands and reports, JSON on stdin and stdout
//	          /    |    \
//	ServeMachine ServeMachine ...  each with a Target that Has one machine, and a Workload
//
// All processes load and run the workload at the same time. The machine that Leads does the work
// that must be done once; other work is divided (Target.IsMine); and at Target.Barrier they wait
// for each other. A run begins at the same moment in all of them, and their measurements are merged
// by the millisecond. Machines can be killed during a run, and restarted. When the Cluster's
// process ends, for any reason, its machines end, and their memory is removed.
//
// # What is measured
//
// Each machine has a number of threads: goroutines with a Client each. In the closed loop a thread
// begins its next transaction when the last has ended. In the open loop (Options.Rate) transactions
// arrive at random times, whatever happens to those before them, and latency counts from the
// arrival: if a database stands still for a second, the transactions that arrive in that second
// count with their waiting time. A thread that waits for an arrival sleeps in the kernel, and spins
// on the clock for at most the last 200 µs. The result says how late transactions nevertheless began,
// and how many had not ended at the end of the run (Arrivals).
// Spinning takes a processor. If transactions arrive more often than once in 200 µs, a waiting
// thread spins all the time, which counts as processor time of the transactions; with more threads
// and machines than processors, they delay each other. Latency is then that of a busy computer.
//
// A transaction that meets a conflict is retried, and its latency includes the retries.
// Transactions count if they end within the measured time, which begins after the warm-up. A
// transaction may end as specified without doing its work: a row does not exist, or it has to roll
// back. It then counts as a transaction and also as a miss (ErrMiss).
//
// Histograms are HDR histograms of three digits, from 100 ns to 100 s.
//
// # What makes it believable
//
// After each run the workload's consistency is checked, and the replicas of several machines are
// compared, but for those over TransportHosts; a Cluster's machines have ended by then (Compare). A run that fails a check has no
// result. Builds with the race detector or with invariants are refused. The result has the computer
// and the program, how busy other processes kept the computer, the size of the data and of their
// memory (Result.ResidentBytes), what that memory survives (Durability), the number of runs, and
// their spread (Spread).
package bench
