// Package growth measures what it costs the clients of a cluster that it grows and shrinks under load,
// and decides whether the data survive that, and end up evenly on the machines.
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
// Each machine is a process of farmsql serve with a data folder and a loopback address of its own, as a
// user starts it: the first with --cluster raft:, the others with a token of farmsql token. They reach
// each other over TCP, with TLS. There are as many machines at first as a cluster with so many replicas
// begins with (first): one if there is one replica, three if there are three. A cluster that grows from one machine
// begins with one replica; farmsql resize can give it more (Config.Resize) before regions move.
//
// A fixed number of clients runs the workload over MySQL. They spread evenly over the machines that
// serve: when a machine has joined, some clients of the others connect to it, one at a time. Nobody tells
// clients that a machine is about to stop. They meet an error, connect to another machine, and go on; each error is
// counted. Errors that have nothing to do with machines that stop end the run, and there is no result.
//
// Machines that joined last leave first, by farmsql drain and SIGTERM. The machines that keep the configuration stay.
// Between two steps there is an undisturbed time, to which the throughput in the steps compares.
//
// # What is decided
//
// After all steps, at a machine that has joined if there is one: the workload's own check, and, if the
// workload counts its commits (Counter), that no acknowledged transaction is missing and none is there that no client has
// entered. If either fails there is no result.
//
// When all machines have joined, and when the last has left, the run waits until the machines say that
// nothing is left to move. Then the bytes of regions in each machine's folder and the regions of which it is the
// primary are counted. The spread is the difference between the highest and the lowest, as a part of the
// mean. Result.Uneven fails if one is more than SpreadMost. Regions move as a whole: with fewer than
// five of them at each machine, a spread of one region is more than that, and nothing can be done about it.
package growth
