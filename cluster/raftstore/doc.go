// Package raftstore keeps the configuration at an odd number of machines of the instance itself, so
// that machines on several hosts need no ZooKeeper.
//
//	raftstore.Create(folder, raftstore.Founding{...})   once, at each of the machines
//	s, err := raftstore.Open(raftstore.Config{Folder: folder, Listener: l, Dial: dial, TLS: tls})
//
//	c, err := raftstore.NewClient(raftstore.ClientConfig{...})   at each machine that is not one of them
//
//	machine 0                      machine 1 (leader)              machine 2
//	  CompareAndSwap -- proposal -->  log, fsync
//	  log, fsync   <--- entry ------   |  ---------- entry --------->  log, fsync
//	               ---- has it ---->   |  <--------- has it ---------
//	                              a majority has it: committed
//	  apply, return <-- committed --  apply  -------- committed ----->  apply
//
// A Store is a cluster.Store. Each of the machines has one, and asks its own. The machines agree by
// Raft on a log, whose entries are swaps. Each machine applies the committed ones in order to the
// current configuration: a swap succeeds if the configuration still has the revision that it
// expects.
//
// # What is promised
//
// CompareAndSwap returns nil or cluster.ErrMoved only after this machine has applied the swap, so
// the swap is in the logs of a majority, on their disks. Load asks the leader for the commit index
// that a majority confirms (Raft's read index) and waits until this machine has applied that far. It
// relies on no clock, and it writes nothing.
//
// Both return within Config.Patience, 5 s if that is not set, whatever the other machines, the
// network and the disk do. Without an answer the error matches cluster.ErrUnreachable and says which
// machines do not answer. A swap may still be carried out after such an error.
// Proposals and reads that were lost, with a connection or a leader, are sent again meanwhile. A
// proposal that is in the log twice takes effect once, because revisions only grow:
// CompareAndSwap refuses a configuration whose revision is not above the one that it replaces.
//
// With CheckQuorum and PreVote, a leader without a majority steps down, and a machine that comes back
// does not disturb the leader. When the leader fails, another is elected within 0.5 to 1 s, and
// requests wait that long, in a store that was calm, too. A machine that knows sooner that the leader has failed says so
// ([Store.Suspect]), and another stands for election at once.
//
// # Clients
//
// A machine that is not one of the store's has a Client, which is a cluster.Store, too. It asks
// one of the machines, which carries out the call as if it were its own. If the answer does not
// come within 100 ms, the Client asks another machine as well; the first answer counts. That is
// safe: see Client.ask. A Client promises what a Store promises, with one exception: if the
// answer to a swap was lost, and others have changed the configuration more than once before a
// copy of it was carried out, the error matches cluster.ErrUnreachable, and says that nobody
// knows. A Client learns of other founders when its owner asks for them (Founders), or knows
// them (Learn).
//
// # Connections
//
// The machines' connections and the clients' come to one listener, which may hand out
// connections of TLS whose handshake is made already: other protocols can share the port. A
// machine refuses a connection that comes from another cluster, looks for another machine, or
// comes from a machine founded with other machines or addresses. It tells the other side the
// reason.
//
// # On disk
//
// The folder has two files and belongs to one Store at a time. The file store.json
// has the settings that the machine was created with. The file log has snapshot, term, vote and entries: see logFile. Both begin
// with a format version. Everything is synced before any message tells of it. When a write
// fails, the Store stops and all calls return the reason, because nobody knows what a disk holds after
// a failed sync; open it again when the disk is mended.
//
// A machine whose folder is lost must not be created again under its number: it has forgotten whom
// it has voted for, and what it has promised to keep. Open therefore fails with ErrNotCreated where
// there is no store, and only Create makes one. Machines cannot be given another address, but
// Config.Dial decides what an address stands for.
//
// # Founders that are gone
//
// A machine that is gone for good is replaced: Forget, then Replace, at any machine or client.
// The number of machines stays the same. The successor, whose number no machine of the store
// has had, opens a part whose log is empty. It gets a snapshot and the entries, and then, in
// one change of Raft's (joint consensus), the vote of the machine that it replaces. See
// Founders for the steps, and the function due for what each needs.
//
// A leader proposes the change of the votes only while a majority of the future founders
// answers. Until the change is over, a majority of the former founders and a majority of the
// future ones must agree. Committed entries are safe even if machines come back that have been
// replaced one by one, and were a majority once: each step was in the logs of a majority of the
// founders before it, so some of those that come back know it, and do not vote for the others.
// A machine that has been replaced is refused, message by message, and told so: its Store fails
// with ErrRemoved.
//
// If a majority is lost for good, a Refounding makes one machine the only one, offline. Entries
// that only the others had are lost. The others are in Removed from then on, so each of them
// that reaches the machine stops, and its part can never be opened again; further machines get
// votes, one at a time, until there are as many as before (Founders.Wanted). The machine asks
// those that it left behind whether they keep a configuration nevertheless: see left.go. If two
// were refounded apart, each has a line of its own (cluster.Line). A machine that follows one
// of them refuses founders of the other, with ErrSplit, wherever it finds them: no machine goes
// over unnoticed.
//
// If more founders are wanted than there are (Want), as when regions get more replicas,
// machines get free places in the same way, one at a time. While the number of founders is
// even, one more of them than before must be there to go on.
//
// Entries and snapshots of such changes have format 2, and entries of Want format 3; until the
// first, everything is as the version before writes it. Changes are refused while a machine
// with a program that does not know them is connected; and after a Refounding, no machine gets
// a vote unless its program knows what a Refounding leaves behind (knowsRefounded).
//
// # Why go.etcd.io/raft
//
// Of the two well-kept libraries, this one is a state machine without goroutines, clock, disk and
// network (RawNode). It has read index, and forwards proposals and reads to the leader. It
// needs only the protobuf runtime, which the server has anyway, so that the program grows by
// 0.6 MB, of 79. Its price is that log and transport are this package's: one file, one connection in
// each direction.
//
// github.com/hashicorp/raft brings both. But there the caller makes a linearizable read of Barrier,
// which is an entry in the log, and VerifyLeader, and forwards to the leader by itself. A logger,
// metrics, another codec and a B-tree for the log (bbolt, or a write-ahead log made for
// gigabytes) come with it, for a value of a few kilobytes.
//
// # Concurrency and cost
//
// One goroutine owns the state machine, the log and all requests. Each other machine has one
// that connects and sends, and one for its answers; each accepted connection has one. A Client
// has one for each machine that it asks, while it asks. A leader sends a heartbeat of a few
// bytes to each machine five times a second, or three times in five seconds when nothing has
// happened for two seconds (calm.go). No timer rings more often while nothing is to be done. A
// machine that cannot be reached is dialled four times a second.
//
// A configuration may have up to 4 MiB. The log is compacted when it is longer than 1 MiB and four
// configurations.
package raftstore
