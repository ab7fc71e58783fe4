// Package region holds objects: it owns the bytes of regions, the objects'
// layout, and the allocator, and nothing above it touches those bytes directly.
//
//	region:  | header 64 B | block table, 8 B a block | slabs of blocks ...      |
//	object:  | lock 1b, allocated 1b, version 60b | incarnation 64b | 48 B       | line 0
//	         | version 16b | 62 B of payload                                     | line 1 ...
package region
