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
// other in memory. A prefix of a key's hash determines its shard, the hash's last bits
// its home bucket there. The key is in its home, in the bucket after it, or in a block of
// the home's chain. A lookup reads the home and its neighbour with a single READ. It
// follows the chain only if there is one and neither bucket has the key. An
// insert that finds no room in the two buckets displaces pairs to make some
// (plan.go), and only if that fails adds to the chain: at 90 % load and H = 8
// that is 4 % of all pairs.
//
// Pairs up to the table's inline limits are in their slot. For other pairs the slot holds the
// hash and a pointer to an object with key and value; the object's key distinguishes keys with
// the same hash.
//
// # Guarantees to a reader without locks
//
// Each object is consistent by itself. Adjacent buckets have a joint version
// that changes whenever one transaction writes both (figure 9); a pair of buckets
// whose joint versions differ is read again. A link holds the chain version that the next
// block must have; when a pair moves from the end of a chain towards its beginning, all
// blocks in which a reader could miss the pair get a new chain version. So a lookup finds
// a key that is in the table all the time.
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
// A table has no fixed size. Shards split (growth.go), and each machine caches a directory of
// them. Each bucket stores the length of the hash prefix that its keys share: by that length a
// machine notices that its directory is stale, and then reads the header of the shard. header.go
// describes the tree of shards.
//
// # Limits
//
// A key has at most 3072 bytes. A pair must fit into one object (1 MB), and all that a
// transaction writes into three quarters of a log. One transaction creates the array of a
// shard, so that shards are smaller than the usual 64 KB where logs have less than 170 KB.
package hash
