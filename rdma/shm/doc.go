// Package shm is the rdma provider for machines that are processes of one host. A
// READ or WRITE is a copy from or to a file that the peer has mapped too.
//
//	nic, err := shm.Join("/dev/shm/farmsql", 1)
//
// All machines name one folder, best on a tmpfs:
//
//	FARMSQL-SHM         the format of all this
//	machine-1.lock      held by the process that is machine 1
//	machine-1.state     mapped by everybody: see below
//	machine-1.alive     a socket; connections to it end when the process does
//	machine-1.datagram  a socket
//
//	state:   | header: magic, machine, life, process, workers; alive |
//	worker:  | open | active | rung, parked |
//	slot:    | generation, key, bytes, device, inode, path bytes | path |
//
// A registration is a slot that says which file holds the memory and which
// inode that must be. Peers map the file at the first operation and keep it. So
// what is registered must be shared memory: a nvram.Folder's, or
// nvram.NewShared's; race builds, whose memory is on the heap, cannot join.
//
// # Operations
//
// They are done when the post returns, on the caller's goroutine, without
// allocation, lock or system call once the memory is mapped. Between two writes
// to its own active word, which is odd meanwhile, a queue checks three words of
// the peer (alive; open of the sibling; the slot's generation) and copies. Whoever
// takes something away first changes one of those words, and then waits until it
// has seen the active word of each queue of each living machine even or changed, or
// describing an operation on another machine or under another key. All these accesses are sequentially consistent, so that either the operation
// sees the change or its end is waited for.
//
// Whatever looks at the files of others is guarded: if somebody cuts one short, or
// its file system has no page left, the operation fails with ErrBroken where the
// process would die. A machine whose own state file is cut short dies.
//
// # Lives and deaths
//
// Machine and process are one. A machine's name is free again once the kernel has
// ended the process that had it and released its lock. Each life has a state
// file of its own, so that nothing of an earlier life is taken for the present
// one's; files are replaced, never cut short.
//
// Each machine holds a connection to the socket of each peer that it talks to. It
// ends with the peer's process, whatever killed that, and then the state of that
// life is marked dead, for everybody, if it was not marked closed: connections are
// broken from then on. Until
// somebody has noticed, operations still land in the memory of the dead process,
// which is what the paper's non-volatile memory is for. Nothing lands any more
// once the next life's Join has returned: it marks the former state dead itself,
// and waits as above. So a machine joins first and looks at its memory then.
//
// The files of a dead machine stay as long as others live; operations to it fail with
// ErrBroken until its next life. The folder goes with the last machine that leaves; what
// machines leave that are all killed, Sweep removes. A stopped process (SIGSTOP) is alive: its memory is served, it
// just does not answer. If it was stopped in the middle of an operation, which
// takes nanoseconds (waking a sleeper is no part of one), then Deregister of that key
// and Close of that machine wait for it to go on, and Join fails with ErrStuck after a
// while.
//
// # Drills
//
// A program built with the tag drills takes out the cable between two machines as long as
// the folder has a file for that (DrillFile). Tests give it to processes.
//
// # Doorbells
//
// Ring sets the sibling's rung word. A goroutine of each open worker watches that
// of its own: for a while it spins, giving way to other goroutines and to other
// processes; then it sets parked, and sleeps on the rung word unless that is set
// (futex). Who rings and finds parked set wakes it. So ringing costs two accesses to
// one line while the worker is awake, and an idle machine costs nothing. If a ringer
// ends before it has woken the worker, the end of its connection does.
//
// # Limits
//
// 128 workers and 16384 registrations at a machine; paths up to 448 bytes.
// Processes must see each other's files and, for volatile memory, each other's
// /proc: same host, same user, same container. The kernel keeps at most
// net.unix.max_dgram_qlen datagrams (often 10) for a receiver, and loses more.
package shm
