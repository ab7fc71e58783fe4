// Package growth measures how much it costs clients that their cluster grows and shrinks under
// load. It also checks that the data survive, and that they end up evenly spread over the machines.
//
//	result, err := growth.Measure(ctx, growth.Config{Program: "farmsql", Replicas: 1, Machines: 5, Back: 3},
//		func(t *bench.Target) (bench.Workload, error) { return tpcc.New(t, tpcc.Config{Warehouses: 12}) })
//	err = result.Print(os.Stdout)
//	err = result.Uneven()
//
// # A run
//
//	load   warm-up     joins, one after the other,   regions move   drain, stop, each          check
//	-----|--------|---|------|---|------|---|------|---|----------|---|-----|---|----|---|---|-----
//	                 machine 1 ..., then resize         evenness                     evenness
//
// Each machine is a process of farmsql serve with a data folder and a loopback address of its own,
// started as a user does it: the first with --cluster raft:, the others with a token of farmsql
// token. The machines reach each other over TCP, with TLS. The number of machines at first follows
// from the number of replicas (Config.first): one for one replica, three for three. A cluster that
// grows from one machine begins with one replica; farmsql resize can give it more (Config.Resize)
// before regions move.
//
// A fixed number of clients runs the workload over MySQL. They spread evenly over the machines that
// serve: when a machine has joined, clients of the others move to it, one at a time. Clients are
// not told that a machine is about to stop: they meet an error, connect to another machine, and go
// on. Each such error is counted. Any other error ends the run, and there is no result.
//
// The machines that joined last leave first, by farmsql drain and SIGTERM. The machines that keep
// the configuration stay. Between two steps the clients are left undisturbed for a time. The
// throughput in a step is compared with the throughput in these times.
//
// # What is decided
//
// After all steps the data are checked, at a machine that has joined if there is one. The
// workload's own check must pass. If the workload counts its commits (Counter), no acknowledged
// transaction may be missing, and every transaction found must be one that a client has entered. If
// a check fails there is no result.
//
// When all machines have joined, and again when the last has left, the run waits until the machines
// say that nothing is left to move. Then it counts, for each machine, the bytes of regions in its
// folder and the regions of which it is the primary. The spread is the difference between the
// highest and the lowest of these figures, as a part of the mean. Result.Uneven fails if a spread
// exceeds SpreadMost. Regions move as a whole: with fewer than five of them at each machine, a
// difference of one region already exceeds SpreadMost, and no move can help.
package growth
