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
// Storm's cells of 128 bytes are slots: 4 bytes that say what is in it, the key, and a
// value of 108. Its buckets of one cell are those of H = 2, although a READ is always of two
// buckets here. Its oversubscribed table is one of low occupancy, below 60 to 70 %.
//
// How much of the memory keys and values are is what the check after a run finds (figure 11):
// the bytes of all keys and values, over those of all objects that the table consists of.
// These are its buckets, the blocks of chains, the pairs that are objects of their own, the
// headers of shards and the anchor, each as large as its size class, so that object headers,
// line versions, control words, pointers and what is empty count as memory. Memory that the
// allocator has not handed out, other replicas and the machines' directories do not count.
//
// A value says which key it is of and contains a checksum, which every lookup looks
// at; the check after a run looks at all, and that no key is missing.
package kv
