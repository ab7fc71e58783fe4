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
// Two transactions conflict only over the same key, however long they are open. A change stays an
// operation on a key (overlay.go) until commit, when it is applied to fresh copies of the buckets. A
// read is kept as a question with its answer, and the question is asked again at commit if the
// buckets have changed.
//
// # Growth
//
// A table has no fixed size: its shards split (growth.go). Each machine caches a directory of the
// shards. Each bucket stores the length of the hash prefix shared by its keys; from that length a
// machine sees that its directory is stale, and then reads the header of the shard. header.go
// describes the tree of shards.
//
// # Limits
//
// A key has at most 3072 bytes. A pair must fit into one object (1 MB), and the writes of a
// transaction into three quarters of a log. A shard's array is created in one transaction, so
// shards are smaller than the usual 64 KB if logs have less than 170 KB.
package hash
