// Package wait has the ways in which a transaction's goroutine waits, and what ends each of them.
//
//	Waiter   for operations and replies that are counted: a worker's input ends them
//	Need     for something that only the rest of the instance can provide: a Lease bounds it
//	Backoff  for another attempt, which may succeed in a moment
//	Lease    for the machine's lease, before the results of reads are shown (Confirm)
//
// Waiters and Leases are safe for concurrent use; Needs and Backoffs belong to one goroutine.
package wait
