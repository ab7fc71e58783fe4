// Package verbs is the rdma provider for machines with RDMA cards: RoCE and InfiniBand, through libibverbs. It needs cgo and the build
// tag verbs; without them Join says so.
//
//	nic, err := verbs.Join(verbs.Config{Machine: 1, Cluster: id, Listen: ":7070", Resolve: addressOf, TLS: tls, GIDIndex: verbs.AnyGID})
//
//	machine 1                                            machine 2
//	  worker 0   Queue --- queue pair === queue pair ---> memory
//	             bell  <-- shared receive queue <======== worker 0
//	             conn  <-- TCP: queue pairs, keys ------> agent
//	  datagrams  UD    <--------------------------------> UD
//
// Each queue has one completion queue. It opens a reliable connection (RC) to each machine that it posts operations to, and the other machine's
// sibling opens one of its own in the other direction: so each side can end what it has begun, and wait until that is
// over, without regard to what the other has under way. The rings that come over all connections of a worker's siblings use up receives of one
// shared receive queue (SRQ).
//
// # Connections
//
// Queue pairs are agreed on over TCP, with TLS if there is a Config.TLS, and not with librdmacm: nobody is told a key of memory who has no certificate of
// the cluster. Over the same connection the queue asks where a piece of the memory of a key is, when it first uses it, and is told when a registration ends.
// So an operation that names no registration, or a place outside of one, is refused here, and does not reach the peer's card, which would break
// the connection. When either end of the TCP connection closes it, or its process ends, both queue pairs end. An agent replaces the former agent of the
// same worker, and all of former lives of that machine, once their queue pairs are gone: no operation of a former connection or life takes
// effect after one of a newer. Gone always returns false and Deaths reports nothing, because silence proves nothing.
//
// A connection breaks when the card reports that a request has failed, or an event of the queue pair, the port or the device. A LinkError says which device, port and peer, and
// what verbs say. The next post after its failures have been polled connects anew, if the device is there. A packet without an answer is repeated for 2 s, and by cards that wait up to four times as long, as they may, for 8 s; a
// peer that has no receive left for 0.3 s breaks the connection, too.
//
// # Operations
//
// A post copies the bytes of a WRITE into memory that the card knows, and appends a request. Flush hands the requests of all connections to
// the card with one call of C, which takes completions as well; those of one connection have one doorbell. WRITEs of up to 128 bytes travel inside
// their request. A completion is wanted only for the last READ of a batch, and for one of 64 requests, so that their places in the send queue become free: no more is
// posted than the send queue has places for, and the rest waits. Operations of a machine on itself are carried out by the post.
//
// Requests of a queue pair are carried out in order. But a READ whose answer is lost is repeated, after WRITEs that were posted
// later, and must not see them: a WRITE or a ring that follows a READ which is not done is fenced (IBV_SEND_FENCE), and waits for it. Nothing
// else is: a READ after a WRITE sees it, and WRITEs are never carried out twice or out of order. There are no atomics.
//
// # What an acknowledgement means
//
// A card acknowledges a WRITE when it has the bytes. They may still be on their way through PCIe to the memory, or to the processor's caches, which count as memory: both
// see the same bytes, and both are saved when the power fails, if there is a battery for the computer, as FaRM presumes (SOSP'15, section 2.1). PCIe
// lets no READ overtake a WRITE of the same card. So when the last WRITE of a batch that somebody waits for has no READ
// after it, the queue posts one, of 8 bytes, and WRITEs are reported done only when a READ after them is. One such READ settles all WRITEs of a batch.
//
// WRITEs land in rising order, and their last word last, because memory is never registered with relaxed ordering
// (IBV_ACCESS_RELAXED_ORDERING), and reliable connections place packets in order. Some networks do not, such as EFA of AWS, which has no RC either, or cards with
// adaptive routing: there this provider must not be used.
//
// # Waiting
//
// The completion queue has no interrupt for each completion. A goroutine takes what the worker does not poll for, and asks for an event (arms) only when
// nothing has come for a while; it then looks once more and sleeps with Go's poller on the descriptor of the completion channel. A machine with nothing to do uses no
// processor.
//
// # Memory
//
// A card pins the memory that it knows, so it counts as locked: see ulimit -l. Register has it pin the first piece (pieceBytes, 1 MiB) of the memory, and an agent each
// other piece when a peer first asks for it, with one registration (MR) each: what no other machine uses, which is most memory without a block, is not pinned. It stays pinned
// until Deregister. Memory that is given back to the system would leave the card with pages that nobody else sees: so nvram.Memory.Discard clears
// what is pinned in its place, and its storage is not given back. If the card cannot pin a piece, the connection of the machine that has asked breaks, and Config.Unpinned is told why.
//
// # Datagrams
//
// Datagrams go over one queue pair of the unreliable kind (UD), in packets of the port's MTU. Its key (Q_Key) is told to whoever has connected, as
// above, and changes with each life. Neither these packets nor those of other operations are encrypted or signed by cards.
package verbs
