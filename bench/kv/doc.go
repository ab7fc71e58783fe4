// Package kv is the key-value benchmark of NSDI'14 section 4.2: lookups and updates in a hash table
// that is 90 % full. Keys have 16 bytes, values 32; keys are drawn uniformly or by a Zipf
// distribution.
//
// Natively a lookup is lock-free, and an update is a single operation, shipped to the key's primary
// and combined there with others of the same key (section 3.6). As in figures 10 and 11, the sizes
// of the neighbourhood and of the values can be chosen. Values can be in the table or in objects of
// their own. Lookups can be one READ and then a message, as in Storm; or of many keys that are
// waited for together (hash.Table.LookupMany), as the threads of the paper have several operations
// under way. They can be messages, as in HERD (Design Guidelines, section 4.3): one to each primary for
// all of its keys of a batch, which it looks up together and answers with one message. Through SQL the
// pairs are in a table with a primary key in a database named kv, and there is no occupancy.
//
// Storm's cells of 128 bytes are slots: 4 bytes that describe the slot's content, the key,
// and a value of 108 bytes. Its buckets of one cell correspond to H = 2, although here a READ
// is always of two buckets. Its oversubscribed table corresponds to a low occupancy, below 60 to
// 70 %.
//
// The check after a run computes the share of keys and values in the table's memory (figure 11):
// the bytes of all keys and values, divided by those of all objects of the table. These objects are
// its buckets, the blocks of chains, the pairs in objects of their own, the headers of shards and
// the anchor. Each counts with the size of its size class, hence with object headers, line
// versions, control words, pointers and unused bytes. Memory that the allocator has not handed out,
// other replicas and the machines' directories do not count.
//
// A value contains its key's number and a checksum, which every lookup verifies; the check
// after a run verifies all values, and that no key is missing.
package kv
