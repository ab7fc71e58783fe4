// Package hosts is what the providers between hosts, rdma/tcp and rdma/verbs, do alike: how machines meet over TCP, and what a machine does by itself.
//
//	Accept     accepts connections, but only so many whose other side has not said who it is
//	Security   TLS in both directions; Listen and Dial make the handshakes
//	Protocol   the greeting that begins a connection, and the reply: machines, worker, life, or why it is refused
//	Addresses  where machines are: as they have told themselves, or else as the caller knows
//	Sockets    accepted connections, by machine, so that they can be ended
//	Agents     the ends of other machines' connections here, at most one for each worker of a machine
//	Memories   registered memory, and the Copiers that carry out operations in it
//	Bell       calls a worker's bell on a goroutine of its own
//	Inbox      the receiver of datagrams, and datagrams of a machine to itself
//
// A provider has one of each, or one for each of its queues. None of them knows what operations look like on their way. All are safe for concurrent use,
// but for Agents, which its user's mutex guards; their own mutexes are of rank lockrank.Leaf, so none may be used with another Leaf held.
package hosts
