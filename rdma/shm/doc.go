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
// A registration is a slot that holds the path of the memory's file and the inode that the file
// must have. Peers map the file at the first operation and keep it mapped. So only shared memory
// can be registered: a nvram.Folder's, or nvram.NewShared's. Race builds, whose memory is on the
// heap, cannot join.
//
// # Operations
//
// An operation is complete when the post returns. It runs on the caller's goroutine, without
// allocation, lock or system call once the memory is mapped. It begins and ends with a write to the
// queue's own active word, which is odd in between; there the queue checks three words of the peer
// (alive; open of the sibling; the slot's generation) and copies.
//
// Code that removes something first changes one of those three words. Then it waits for each queue of
// each living machine, until it has seen that the queue's active word is even, has changed, or
// describes an operation on another machine or key. All these accesses are sequentially consistent,
// so either the operation sees the change, or the remover waits for the end of the operation.
//
// Code that reads files of other machines runs guarded: if a process truncates such a file, or its
// file system is full, the operation fails with ErrBroken instead of ending the process. A machine
// whose own state file is truncated dies.
//
// # Lives and deaths
//
// Each machine is one process. A machine's name is free again once the kernel has ended the process
// that had the name and released its lock. Each life has a state file of its own, so that no
// content of an earlier life is taken for the present one's; files are replaced, never truncated.
//
// Each machine holds a connection to the socket of each peer that it talks to. The connection ends
// with the peer's process, however that ends. Then the machine marks the peer's state dead, for all
// machines, unless it is marked closed; from then on connections to that life are broken. Until some
// machine has noticed the death, operations still take effect in the memory of the dead process,
// which plays the part of the paper's non-volatile memory. They have ended when the next life's Join
// returns: Join marks the former state dead itself, and waits as above. So a machine must join before
// it looks at its memory.
//
// The files of a dead machine stay as long as other machines live; operations to it fail with
// ErrBroken until its next life. The last machine that leaves removes the folder. If all machines
// are killed, Sweep removes the files that they leave.
//
// A stopped process (SIGSTOP) is alive: other machines can read and write its memory, but it does not
// answer. It is hardly ever stopped in the middle of an operation, which takes nanoseconds (waking a
// sleeper is not part of an operation). If it is, then Deregister of that key and Close of that
// machine wait until the process continues, and Join fails with ErrStuck after a while.
//
// # Drills
//
// A program built with the tag drills takes out the cable between two machines as long as the
// folder has a file that says so (DrillFile). Tests create these files.
//
// # Doorbells
//
// Ring sets the sibling's rung word. A goroutine of each open worker watches that worker's rung
// word: for a while it spins, yielding to other goroutines and to other processes; then it sets
// parked, and sleeps on the rung word unless that is set (futex). A ringer that finds parked set
// wakes it. So ringing costs two accesses to one line while the worker is awake, and an idle
// machine costs nothing. If a ringer ends before it has woken the worker, the end of its connection
// wakes it.
//
// # Limits
//
// 128 workers and 16384 registrations at a machine; paths up to 448 bytes.
// Processes must see each other's files and, for volatile memory, each other's
// /proc: same host, same user, same container. The kernel keeps at most
// net.unix.max_dgram_qlen datagrams (often 10) for a receiver, and loses more.
package shm
