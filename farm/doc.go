// Package farm builds the machines of an instance from memory, NIC, allocator, transactions and
// recovery.
//
// A Member is one machine, which can fail by itself: it reaches the others through its NIC, and the
// configuration through a store. There is no other kind of machine. A Local is an instance all of
// whose members run in this process and reach each other through rdma/local. They communicate as
// they would between hosts: by one-sided reads and writes, logs and message queues. None of them
// has to renew a lease, since they live and end with the process; a member that fails by itself is
// evicted by the others, as anywhere.
//
// To open an existing instance is to recover from a failure of all its machines, whether they were
// closed or killed: they restart together in the configuration after the last one, package recovery
// finishes the transactions in their logs, and each primary rebuilds its free lists.
package farm
