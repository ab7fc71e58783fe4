// Package farm builds the machines of an instance from memory, NIC, allocator, transactions and
// recovery.
//
// A Member is one machine, which can fail by itself: it reaches the others through its NIC, and the
// configuration through a store. There is no other kind of machine. A Local is an instance all of
// whose members run in this process and reach each other through rdma/local. They communicate as
// they would between hosts: by one-sided reads and writes, logs and message queues. No member has
// to renew a lease, because all of them live and end with the process. If a single member fails,
// the others evict it, as in any instance.
//
// Opening an existing instance means recovering from a failure of all its machines, whether they
// were closed or killed: the machines restart together in the configuration after the last one,
// package recovery finishes the transactions in their logs, and each primary rebuilds its free
// lists.
package farm
