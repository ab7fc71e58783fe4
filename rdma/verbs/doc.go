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
// Each queue has one completion queue. It opens a reliable connection (RC) to each machine that
// it posts operations to, and the other machine's sibling opens one of its own in the other
// direction: so each side can end what it has begun, and wait until that is over, without
// regard to what the other has under way. The rings of all siblings of a worker use up receives
// of one shared receive queue (SRQ).
//
// # Connections
//
// Machines agree on queue pairs over TCP, with TLS if there is a Config.TLS, and not with
// librdmacm: only holders of a certificate of the cluster learn keys of memory. Over the same
// connection the queue asks where a piece of a key's memory is, when it first uses that piece,
// and is told when a registration ends. So the queue itself refuses an operation that names no
// registration, or a place outside of one. The peer's card would break the connection. When
// either end of the TCP connection closes it, or its process ends, both queue pairs end. An
// agent replaces the former agent of the same worker, and all of former lives of that machine,
// once their queue pairs are gone: no operation of a former connection or life takes effect
// after one of a newer. Gone always returns false and Deaths reports nothing, because silence
// proves nothing.
//
// A connection breaks when the card reports that a request has failed, or an event of the queue
// pair, the port or the device. A LinkError names the device, the port and the peer, and has
// the error of verbs. Once the failures of the connection have been polled, the next post
// connects anew, if the device is there. A card repeats a packet without an answer for 2 s;
// cards may wait up to four times as long, and some do. A peer that has no receive left for 0.3
// s breaks the connection, too.
//
// A card may forget requests. So while requests are not known to be done, the
// queue looks for progress each second, and posts another request if there was none. After 10
// s without progress the connection breaks.
//
// # Operations
//
// A post copies the bytes of a WRITE into memory that the card knows, and appends a request.
// Flush hands the requests of all connections to the card with one call of C, which takes
// completions as well; those of one connection have one doorbell. WRITEs of up to 128 bytes
// travel inside their request. Only the last READ of a batch has a completion, and one in 64
// requests, which frees their places in the send queue: requests for which the send queue has
// no places wait. Operations of a machine on itself are carried out by the post.
//
// Requests of a queue pair are carried out in order. But a READ whose answer is lost is
// repeated, maybe after WRITEs that were posted later, and must not see them. So a WRITE or a
// ring that follows an unfinished READ is fenced (IBV_SEND_FENCE): it waits for the READ.
// Soft-RoCE forgets fenced requests: there the queue holds them back until the READ is done. No
// other request is fenced: a READ after a WRITE sees the WRITE, and WRITEs are never carried
// out twice or out of order. There are no atomics.
//
// # What an acknowledgement means
//
// A card acknowledges a WRITE when it has the bytes. The bytes may still be on their way
// through PCIe to the memory, or to the processor's caches. The caches count as memory: a
// reader sees the same bytes in both, and both are saved when the power fails, if the computer
// has a battery, as FaRM presumes (SOSP'15, section 2.1). PCIe lets no READ overtake a WRITE of
// the same card. So when the last WRITE of a batch that somebody waits for has no READ after
// it, the queue posts a READ of 8 bytes. WRITEs are reported done only when a READ after them
// is done. One such READ settles all WRITEs of a batch.
//
// WRITEs land in rising order, and their last word last, because memory is never registered
// with relaxed ordering (IBV_ACCESS_RELAXED_ORDERING), and reliable connections place packets
// in order. Some networks do not place packets in order, such as EFA of AWS, which has no RC
// either, or networks of cards with adaptive routing: this provider must not be used with them.
//
// # Waiting
//
// A completion by itself causes no interrupt. A goroutine takes the completions that the worker
// does not poll for. When none has come for a while, it asks for an event (arms the completion
// queue), looks once more, and sleeps with Go's poller on the descriptor of the completion
// channel. A machine with nothing to do uses no processor.
//
// # Memory
//
// A card pins the memory that it knows, and pinned memory counts as locked: see ulimit -l.
// Register makes the card pin the first piece (pieceBytes, 1 MiB) of the memory; an agent makes
// it pin each other piece when a peer first asks for that piece. Each piece has its own
// registration (MR). Memory that no other machine uses, such as most memory without a block, is
// not pinned. A piece stays pinned until Deregister. If pinned memory were given back to the
// system, the card would keep pages that nobody else sees: so nvram.Memory.Discard clears
// pinned memory in place, and keeps its storage. If the card cannot pin a piece, the connection
// of the machine that has asked breaks, and Config.Unpinned gets the reason.
//
// # Datagrams
//
// Datagrams go over one queue pair of the unreliable kind (UD), in packets of the port's MTU.
// Its key (Q_Key) changes with each life; other machines learn it over a TCP connection, as
// above. Neither these packets nor those of other operations are encrypted or signed by cards.
package verbs
