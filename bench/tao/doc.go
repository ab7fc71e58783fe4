// Package tao is the graph store of NSDI'14 section 4.4, after Facebook's TAO, under
// a load like LinkBench's.
//
// # The store
//
// A node is an object with its data inside, and its name is a fat pointer. Its edges
// of one type are a linked list, near the node, in reverse order of time; each list
// node, called block here, holds several edges. The node has the heads of its lists
// and how many edges are in them:
//
//	node:   id, version, length, type | counts | heads | data
//	block:  node's id, next, number of edges, type, is it the head | edges
//	edge:   name of the node it leads to, time, 8 bytes of data
//
//	operation            share   how
//	obj_get             28.84 %  lock-free read of the node
//	assoc_range         43.61 %  lock-free read of the list's head, whose pointer clients cache
//	assoc_count         11.68 %  lock-free read of the node
//	assoc_get           15.67 %  shipped to the node's primary, which looks through the list
//	obj_add              0.03 %  transaction
//	obj_update           0.04 %  the same
//	obj_delete          0.004 %  the same: the node and its lists; edges to it stay
//	assoc_add            0.11 %  the same; if there is such an edge it is replaced
//	assoc_delete         0.02 %  the same
//
// The paper increments a block's incarnation when the block is no longer the head, so that
// clients notice. Here only freeing an object changes its incarnation, so a block says whether
// it is the head. A range of more edges than the head has is read in a transaction.
//
// Clients keep pointers for a long time. The memory behind a pointer may have been freed, and may
// now be part of an object of another size. So the bytes that are read must also say to which
// object they belong.
//
// Loaded nodes are numbered, and a hash table maps the numbers to names: each process reads it
// once, after loading. Reads do not use it.
//
// # The load
//
// From LinkBench's configuration: two types of edges, 4.35 edges a node (as the paper
// had), data of 128 bytes in the median in nodes and 8 in edges, accesses by Zipf
// distributions (exponents 0.625 for nodes, 0.606 for their updates, 0.8 for edges and
// 0.741 for their updates; deletions uniform), 2.6 nodes in an assoc_get on average, half of
// which are there. Degrees follow a power law instead of LinkBench's table: 39 % of
// nodes have no edge, none has more than a thousand. A node's degree does not depend on how
// often the node is accessed; in LinkBench it does, for 0.5 % of the reads of edges. An update of
// a node keeps the length of its data.
//
// The mix is TAO's (USENIX ATC'13, figure 3), 99.8 % reads. As in the paper there are
// four kinds of reads: assoc_time_range is counted as assoc_range, and
// assoc_change_type as assoc_add. A range is of the ten newest edges.
//
// # What is checked
//
// There are as many nodes and edges as were loaded and added, minus those deleted. The counts are the
// lengths of the lists. Each list is in order, belongs to its node, and leads to no node twice. Every
// edge leads to a node that is there or has been deleted. Nodes and edges have the data that belong
// to their version and time.
package tao
