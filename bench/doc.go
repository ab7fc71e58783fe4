// Package bench is the harness of the benchmarks: it runs a Workload against a
// Target and says what came out, and under which conditions.
//
//	target, err := bench.Open(ctx, bench.TargetConfig{API: bench.Native, Machines: 3, Replicas: 3})
//	w := tatp.New(target, tatp.Config{Subscribers: 100_000, Seed: 1})
//	err = w.Load(ctx, bench.NewProgress(os.Stderr))
//	result, err := bench.Run(ctx, target, w, bench.Options{Threads: 2, WarmUp: 2 * time.Second, Duration: 10 * time.Second})
//	result.Print(os.Stdout)
//
// # Machines as processes
//
// A Target is in one process: its machines share a scheduler and a garbage collector.
// A Cluster is the same workload on machines each of which is a process that reaches
// the others over rdma/shm, with its clients, as in SOSP'15 section 6 load comes from
// the machines themselves. Clients of SQL come over MySQL to a port of their machine, as to
// one that farmsql serve has started:
//
//	            Cluster            commands and reports, JSON on stdin and stdout
//	          /    |    \
//	ServeMachine ServeMachine ...  each with a Target that Has one machine, and a Workload
//
// All processes load and run the workload at a time; what must be done once the
// machine that Leads does, what can be shared out is shared out (Target.IsMine), and
// Target.Barrier is where they wait for each other. A run begins at one moment in all
// of them; what they have measured is put together by the millisecond. Machines can be
// killed in the middle of a run, and restarted. When the Cluster's process ends,
// whatever ends it, its machines end and what they had in memory is removed.
//
// # What is measured
//
// Each machine has so many threads, goroutines with a Client of their own. In the closed loop it
// begins the next transaction when the last has ended. In the open loop
// (Options.Rate) transactions arrive at random times whatever becomes of those
// before them, and latency counts from the arrival: a database that stands still
// for a second is not excused from the transactions that would have come in it. A thread
// that waits for the next sleeps in the kernel and looks at the clock for the last 200 µs
// at most; how late it began then all the same, and what had not ended when the run did, is
// in the result (Arrivals).
// That takes a processor: where more arrive than one in 200 µs a thread spins whenever it has nothing
// to do, it counts as processor time of the transactions, and with more threads and machines
// than processors it keeps them from each other. Latency is then that of a busy computer.
//
// A transaction that meets a conflict is run again, and its latency goes on. What
// is counted are transactions that ended within the measured time, which begins
// after the warm-up. A transaction that ends as its specification foresees without
// having done its work, for there is no such row or it was to be rolled back, is
// counted as a transaction and also as a miss (ErrMiss).
//
// Histograms are HDR histograms of three digits, from 100 ns to 100 s.
//
// # What makes it believable
//
// After each run the workload's consistency is checked, and all replicas of several machines
// are compared, of a Cluster once its machines have ended (Compare): a run that fails has no
// result. Builds with the race detector or with invariants are refused. The result
// says on what, with what and how busy the computer was with other things; how much
// data there were and how much memory they took (Result.ResidentBytes), what that memory
// outlives (Durability), and how many runs there were and how far they were apart (Spread).
package bench
