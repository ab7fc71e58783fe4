// Package local is the rdma provider for machines that live in one process: a
// READ or WRITE is a copy between two memories.
//
//	net := local.NewNetwork(local.Options{})
//	a, _ := net.Join(1)
//	b, _ := net.Join(2)
//
// The copy is finished before the post returns, on the caller's goroutine, and a doorbell is a call
// of the peer's bell. Nothing is allocated and no lock is taken: an operation costs its copy, a
// table look-up and two atomic stores. These two stores, which mark the queue as active, make it
// safe to unmap memory: code that removes something (a registration, a queue, a machine, a cable)
// first unpublishes it and then waits until it has seen each queue of the network inactive once.
//
// With Options.Async, one goroutine per queue carries operations out later, after Flush, and they are
// reported through Poll. Tests use this to run the code above on a slow network.
//
// Each datagram is delivered by a goroutine of its own.
//
// Network.Cut takes out the cable between two machines: connections across it
// break, and nothing that was posted takes effect after Cut has returned. Mend
// puts the cable back.
//
// A queue's mutex (asynchronous mode) is taken before the network's. Bells are
// called with neither held.
package local
