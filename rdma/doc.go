// Package rdma defines the interface of a network card. Providers implement it: rdma/local copies
// between machines of one process, rdma/shm between processes of one host, rdma/tcp between hosts. Every
// provider passes the test suite rdma/rdmatest.
//
//	machine 1                                    machine 2
//	  worker 0   Queue ======= connection ======= Queue   worker 0
//	  worker 1   Queue ======= connection ======= Queue   worker 1
//	  memory     Key 7 <------ READ, WRITE ------ Queue   (any worker's)
//
// A machine joins the network with a [NIC] and registers ranges of memory, each under a [Key] that
// the others learn in some other way. Each worker opens a [Queue]; worker w of one machine is
// connected to its sibling, worker w of every other machine and of its own, and to no other worker
// (Storm, section 5). READ and WRITE are one-sided: no code runs at the machine that owns the
// memory. A doorbell wakes that machine; WriteRing writes and rings in one operation. Operations are
// posted in batches, each of which Flush ends. In addition, machines send each other datagrams, which
// may be lost.
//
// # Guarantees
//
//   - The operations of one queue take effect at one machine in the order in
//     which they were posted. There is no order across machines or queues.
//   - WRITE stores in rising address order, at the granularity of 64-byte
//     lines, and stores its last word last: a reader that finds that word,
//     read atomically, finds all of the write and of every write before it.
//   - READ is atomic for each word. It is atomic for each aligned 64-byte line if
//     every writer of the line changes its first word before and after the rest,
//     as writers of objects do (NSDI'14, section 3.5). Different lines may come
//     from different moments.
//   - A completion means that the bytes are in the other machine's memory (or
//     have come from it), not that any code there has looked at them. In
//     non-volatile memory they are durable then: a commit relies on that for
//     COMMIT-BACKUP and COMMIT-PRIMARY (SOSP'15, section 4). If a card
//     acknowledges a WRITE before it is in memory, the provider must make it
//     read after the WRITE before it reports that a signalled WRITE is done.
//   - An operation either completes, or fails with a reason. When a connection
//     breaks, every pending operation on it fails with [ErrBroken], and may or
//     may not have taken effect. No later operation takes effect before all
//     these failures have been reported, so the caller knows about a lost write
//     before a later one takes effect. After that, posting connects again.
//   - Once Deregister, NIC.Close or Queue.Close returns, no operation touches
//     the memory in question any more, and it may be unmapped.
//
// An operation that names no registration is refused with [ErrKey], one that is misaligned or out of
// range with [ErrRange], and the connection goes on. Providers that know the registrations of the
// peer check at the post; they must if the peer's card would break the connection. Other providers
// let the peer check. If the registration ends while the operation is on its way, a card refuses the
// operation, and that breaks a reliable connection: the operation, and those posted after it, may
// fail with [ErrBroken]. No operation that is refused is carried out in part.
package rdma
