// Package tcp is the rdma provider for machines on several hosts: an agent at each end of a TCP
// connection carries out READs and WRITEs in the memory of its machine.
//
//	nic, err := tcp.Join(tcp.Config{Machine: 1, Cluster: id, Listen: ":7070", Resolve: addressOf, TLS: tls})
//
//	machine 1                                         machine 2
//	  worker 0   Queue --- connection ---> agent        memory
//	             agent <--- connection --- Queue        worker 0
//	  datagrams  UDP  <---------------------------> UDP
//
// Each queue opens one connection to each machine that it posts operations to, and the other
// machine's sibling opens one of its own in the other direction. With TLS (version 1.3, both sides
// show certificates) nobody without a certificate of the cluster gets further than the handshake;
// without TLS, anybody who reaches the port can read and write the memory.
//
// # Operations
//
// A post appends a frame to the connection's output. Flush sends a batch with one system call, as one
// record of TLS if the batch is short, and never waits for the network. A batch that becomes longer
// than heldMax is sent earlier. The agent reads frames in order and copies. It answers a READ with the
// bytes and a signalled WRITE with a few. It answers an unsignalled operation only if that fails, and
// one in askEvery of them so that the queue learns that they are done. A goroutine of the connection
// reads the answers and makes Completions.
//
// A WRITE of more than chunkBytes is stored in several steps, in rising order. If the connection
// breaks meanwhile, the first part of it may have taken effect.
//
// Operations of a machine on itself are carried out by the post.
//
// # Connections
//
// The first operation on a machine begins to connect, in the background; operations posted
// meanwhile wait for the connection or fail with it. A greeting names the cluster, both
// machines, the worker, the life of the sender (the time of its Join), and the number of the
// connection in that life. A machine refuses greetings of an older life than it has heard of,
// or of an older connection. An agent replaces the former agent of the same worker, and all
// agents of former lives of that machine, and waits for their last copies before it begins. So
// no operation of a former connection or life takes effect after one of a newer. A new life at
// another address is refused while the life before is connected: somebody has started a second
// process as the same machine.
//
// A connection ends when either side closes it, or when the other host has not acknowledged bytes, or
// has had no room for them, for silenceMax. It also ends when the agent owes an answer and has been
// silent for about twice as long: a stopped process is silent while its kernel acknowledges everything.
// Gone always returns false and Deaths reports nothing, because silence proves nothing.
//
// Queue.Close lets the peers carry out what they have received, and waits until they have, but not
// longer than closePatience: a peer may still carry out frames that reach it after that.
//
// # Datagrams
//
// Datagrams are UDP packets, sealed with a key (AES-GCM). The receiver has handed the key to this life
// of the sender over a connection as above. A receiver drops packets that are not sealed with a key
// that it has handed out, and packets that it has received before. While a sender has no key, its
// datagrams are lost.
//
// # Line
//
// A line is for a user that exchanges datagrams without Go, such as the thread of C that keeps
// leases: every wake-up of Go costs more than the exchange. It is a second socket at the same
// port, so that firewalls need to know one number. The kernel looks at the first bytes of a
// datagram and gives it to the one socket or the other (SO_ATTACH_REUSEPORT_CBPF). The user
// seals the datagrams itself, with keys that the machines hand out to each other over
// connections as above. A connection itself would not do for leases: its records are sealed by
// Go, in order, and one lost packet would hold up all that follow.
package tcp
