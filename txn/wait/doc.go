// Package wait defines the ways in which a transaction's goroutine waits:
//
//	Waiter   until all of its pending operations and replies have completed
//	Need     for something that only other machines can provide, for a bounded time
//	Backoff  before another attempt, which may succeed in a moment
//	Lease    for the machine's lease, before the results of reads are shown (Confirm)
//
// Waiters and Leases are safe for concurrent use; Needs and Backoffs belong to one goroutine.
package wait
