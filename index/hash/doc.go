// Package hash is FaRM's hash table, chained associative hopscotch hashing
// (NSDI'14 section 3.6), over FaRM transactions. It grows while it is used.
//
// # Picture
//
//	anchor ──→ first shard's header ──→ headers of the shards it split into ──→ …
//	                  │
//	                  ↓        one READ
//	          bucket 0 │ bucket 1 │ bucket 2 │ … │ bucket n
//	                                   │
//	                                   ↓
//	                               block ──→ block      overflow chain of bucket 2
//
// A shard is an array of buckets, each an object with H/2 slots, next to each
// other in memory. A key's hash says its shard, by a prefix, and its home in the
// shard. The key is in its home, in the bucket after it, or in a block of the
// home's chain. A lookup reads the home and its neighbour with a single READ and
// follows the chain only if both do not have the key and there is a chain. An
// insert that finds no room in the two buckets displaces pairs to make some
// (plan.go), and only if that fails adds to the chain: at 90 % load and H = 8
// that is 4 % of all pairs.
//
// Pairs up to the table's inline limits are in their slot. Of other pairs the slot holds the
// hash and a pointer to an object with key and value, so that keys with the same hash are
// still distinguished.
//
// # Guarantees to a reader without locks
//
// Each object is consistent by itself. Adjacent buckets have a joint version
// that changes whenever one transaction writes both (figure 9); a pair of buckets
// whose joint versions differ is read again. A link says which version the chain
// has from there on; where a pair moves from the end of a chain forwards, all
// blocks it may be missed in get a new one. So a key that is in the table all the
// time is found.
//
// # Transactions
//
// Two transactions conflict only over the same key. A change stays an operation on a key
// (overlay.go) until commit, when it is applied to fresh copies of the buckets. A read is
// remembered as a question with its answer, and asked again if the buckets have changed. In
// between a transaction may stay open for as long as it likes.
//
// # Growth
//
// A table is not given a size. Shards split (growth.go), and each machine caches a directory
// of them. Each bucket has the length of the hash prefix that its keys share: by it a machine
// notices that its directory is stale, and then reads the header of the shard. header.go has
// the tree of shards.
//
// # Limits
//
// Keys of 3072 bytes; a pair fits into one object (1 MB) and, like all that a
// transaction writes, into three quarters of a log. The array of a shard is made in
// one transaction, so that shards are smaller than the usual 64 KB where logs
// have less than 170 KB.
package hash
