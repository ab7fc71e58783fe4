// Package farm puts the machines of an instance together: memory, NIC,
// allocator, transactions and recovery.
//
// A Member is one machine, which can fail alone: it reaches the others through
// its NIC, and the configuration through a store. That is all there is. A Local is
// an instance all of whose members run in this process and reach each other through
// rdma/local. Everything between them goes the way it would go between hosts:
// one-sided reads and writes, logs and message queues. None of them has to renew a
// lease, since they live and end with the process; one that does fail alone is
// evicted by the others, as anywhere.
//
// Opening an instance that has existed before is the recovery from a failure of
// all its machines, whether they were closed or killed: they meet in the configuration
// after the last one, package recovery finishes what their logs hold, and the free lists
// are rebuilt.
package farm
