// Package kv is the key-value benchmark of NSDI'14 section 4.2: lookups and updates
// of random keys of 16 bytes in a hash table that is 90 % full, with values of 32
// bytes, keys drawn uniformly or by a Zipf distribution.
//
// Natively a lookup is a lock-free lookup, and an update a single operation, shipped
// to the key's primary and combined there with others of the same key (section 3.6).
// The size of the neighbourhood and of the values, and whether these are in the table
// or in objects of their own, can be chosen as in figures 10 and
// 11, and lookups that are one READ and then a message as in Storm, or of many keys
// that are waited for together (hash.Table.LookupMany), or several at a time that are
// each begun by itself (hash.Table.Lookups), as the threads of the paper have operations
// under way. Through SQL the same is a table with a primary key in a database named kv,
// without occupancy.
//
// Storm's cells of 128 bytes are slots: 4 bytes that describe the slot's content, the key,
// and a value of 108 bytes. Its buckets of one cell correspond to H = 2, although here a READ
// is always of two buckets. Its oversubscribed table is one of low occupancy, below 60 to 70
// %.
//
// The check after a run computes which part of the memory keys and values are (figure 11):
// the bytes of all keys and values, divided by those of all objects of the table. These are
// its buckets, the blocks of chains, the pairs in objects of their own, the headers of shards
// and the anchor, each with the size of its size class, so that object headers, line
// versions, control words, pointers and unused bytes count as memory. Memory that the
// allocator has not handed out, other replicas and the machines' directories do not count.
//
// A value contains its key's number and a checksum, which every lookup verifies; the check
// after a run verifies all values, and that no key is missing.
package kv
