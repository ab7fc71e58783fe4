// Package region holds objects: it owns the bytes of regions, the objects'
// layout, and the allocator, and nothing above it touches those bytes directly.
//
//	region:  | header 64 B | block table, 8 B a block | slabs ...           |
//	object:  | lock 1b | allocated 1b | 0 2b | version 60b || incarnation 64b || 48 B |  line 0
//	         | version 16b || 62 B of payload                                        |  line 1 ...
//
// # Objects
//
// An object begins at a 64-byte line and consists of whole lines. Readers copy it
// without taking a lock: they load its header before and after the copy, and use
// the copy only if the header was unlocked and did not change. A NIC copies
// atomically only line by line, so after a READ the version of each line must also
// be the header's. A writer takes the lock bit; then it makes the line versions
// invalid, writes the payload, sets the new line versions, and sets the header last
// (NSDI'14 section 3.5).
//
// A View reads parts of an object in place, by the same rule: what it has read
// counts only if the header is still the same at the end.
//
// A version counts the changes of a slot, across all objects that use the slot one
// after the other; the incarnation counts these objects, and a fat pointer (Ptr)
// names one of them. Both restart only when the block is given to a new slab.
//
// # Blocks and slabs
//
// A region is divided into blocks: of 1 MB in regions of 128 MB and more, of 1/128
// of the region in smaller ones. A slab is a run of adjacent blocks with objects of
// one class: one block for most classes, more for large classes, so that little is wasted after the
// last object. The block table gives the state of each block, and its generation: the number of
// slabs that the block has belonged to. A slab's blocks are entered in the tables of all replicas
// before the first object is written there.
//
// There are 256 classes from 64 B to 1 MB. A request wastes 1.3 % of its lines on average, and at
// most 2.9 %. (In NSDI'14 section 3.3 it is 1.8 % and at most 3.6 % of the bytes.) Small objects
// pay for whole lines, because their payload is rounded up to 48, 110, 172 B ... In return no two
// objects share a line: an object of 64 B costs one cache miss, and a NIC reads all between two
// line versions atomically.
//
// # Allocator
//
// The Allocator of a region's primary keeps one bit per slot, in volatile memory:
// after a restart it finds the free slots by their headers. A worker allocates from
// slabs of its own. Alloc takes a bit and Release gives it back, both by an atomic
// operation, because a hint may lead any worker to any slab. 10 million objects take
// 2 MB of Go heap.
//
// A freed slot can be reused for its own class immediately. For another class, the whole block must
// be empty, and all operations that may hold a pointer into it must have ended: see Advance. Before
// such a reuse the block is cleared on every replica.
//
// # Replicas that were away
//
// While a replica of a region is away, the others mark the chunks that change (Region.Mark). A
// machine that comes back with its replica then need not read all of it. A Stale says which chunks
// the machine must read, and why the others are up to date.
//
// # Concurrency
//
// All methods are safe for concurrent use. Only the holder of an object's lock bit
// writes the object; at backups ApplyBackup serializes the writers of an object.
//
// # Limits
//
// Line versions have 16 bits: while a NIC reads an object, the object must not be
// written 65,536 times. A region has at most 4 GB. Check reports damage of the block
// table, and the allocator never uses the damaged blocks; it trusts the headers.
package region
