// Package hosts has the parts that the providers between hosts, rdma/tcp and rdma/verbs, share:
// how machines connect over TCP, and what a machine does by itself.
//
//	Accept     accepts connections, but only so many at a time that have sent no greeting
//	Security   TLS in both directions; Listen and Dial make the handshakes
//	Protocol   the greeting that begins a connection, and the reply: machines, worker, life, or why it is refused
//	Addresses  where machines are: as they have told in their greetings, or else as the caller knows
//	Sockets    accepted connections, by machine, so that they can be ended
//	Agents     the ends of other machines' connections here, at most one for each worker of a machine
//	Memories   registered memory, and the Copiers that carry out operations in it
//	Bell       calls a worker's bell on a goroutine of its own
//	Inbox      the receiver of datagrams, and datagrams of a machine to itself
//
// A provider has one of each, or one for each of its queues. None of them knows how operations
// are encoded on the network. All are safe for concurrent use, except Agents, which a mutex of
// the provider guards. Their own mutexes are of rank lockrank.Leaf: their callers must not hold
// another Leaf.
package hosts
