// Package region holds objects: it owns the bytes of regions, the objects'
// layout, and the allocator, and nothing above it touches those bytes directly.
//
//	region:  | header 64 B | block table, 8 B a block | slabs ...           |
//	object:  | lock 1b | allocated 1b | 0 2b | version 60b || incarnation 64b || 48 B |  line 0
//	         | version 16b || 62 B of payload                                        |  line 1 ...
//
// # Objects
//
// An object begins at a 64-byte line and has whole lines. Readers copy it without
// any lock: the header says whether somebody writes, and what it was before and
// after the copy whether somebody has written. Where a NIC did the copying, which
// is atomic per line only, each line's version must be the header's. A writer
// owns the lock bit; it spoils the line versions, writes the payload, sets the line
// versions, and sets the header last (NSDI'14 section 3.5).
//
// A View reads parts of an object in place, by the same rule: nothing of what it
// saw counts unless the header is still the same at the end.
//
// A version counts the changes of a slot, also across the objects that live there
// one after the other; the incarnation counts those objects, and a fat pointer
// (Ptr) names one of them. Both begin anew only when the block gets another class.
//
// # Blocks and slabs
//
// A region is divided into blocks: of 1 MB from 128 MB on, of a 128th of the region
// below. A run of blocks is a slab of objects of one class; most classes take one
// block, large ones as many as waste little behind the last object. The block
// table says what every block is, on all replicas, before an object lives there, and in
// which generation: how many slabs the block has belonged to.
//
// There are 256 classes from 64 B to 1 MB. Counted in lines, the unit of allocation,
// a request wastes 1.3 % on average and at most 2.9 % (NSDI'14 section 3.3 has 1.8
// and 3.6 in bytes); the price of whole lines is paid by small objects, whose
// payload is rounded to 48, 110, 172 B ... Objects that share no line are worth it:
// 64 B cost one miss, and a NIC reads what lies between two line versions at once.
//
// # Allocator
//
// The Allocator of a region's primary keeps one bit a slot, in memory that does not
// outlive it: after a restart the headers tell which slots are free. A worker
// allocates from slabs of its own; Alloc takes a bit, Release gives it back, both
// by an atomic operation, so that hints may lead any worker to any slab. 10 million
// objects take 2 MB of Go heap.
//
// Freed memory serves its own class at once. For another class its block has to
// be empty, and every operation that might know a pointer into it has to end:
// see Advance. Then the block is cleared on every replica first.
//
// # Replicas that were away
//
// While a region has not all its replicas, the others mark what changes (Region.Mark),
// so that a machine that comes back with its replica need not read all of it. A
// Stale says what it needs, and why the rest is right.
//
// # Concurrency
//
// All methods are safe for concurrent use. Objects are written by who holds their
// lock bit; at backups ApplyBackup orders the writers of an object itself.
//
// # Limits
//
// Line versions have 16 bits: a NIC's read must not take as long as 65,536 writes of
// the object it reads. A region has at most 4 GB. A damaged block table is found by
// Check, and its blocks are left alone; headers are believed.
package region
