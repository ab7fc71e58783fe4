// Package skiplist is an example of a data structure of one's own over FaRM's transactions: a skip list, an
// ordered map from bytes to bytes, whose lookups are one-two-sided operations (package txn/lookup; Storm,
// section 4).
//
//	head ──────────────────────────→ node ───────────→ nil   level 2
//	head ───────────→ node ────────→ node ───────────→ nil   level 1
//	head ──→ node ──→ node ──→ node → node ──→ node ──→ nil   level 0
//
// Each node is an object. To find a key one goes along a level as long as the keys are less, then one level
// down: chasing pointers, some 2 log2 n of them. From another machine each would be a READ. So a machine caches
// where it has found keys. A lookup of one of these is a single READ of its node, which says itself whether it
// still has the key: nodes keep their key as long as they live. For any other key the lookup is one message to the
// primary of the head, near which all nodes are.
//
// In a transaction a lookup becomes a Question, with one source. If the key is there, that is its node; if it is
// not, the node before its place, which changes when the key is inserted. So two transactions that only look
// up conflict with those alone that change the same key or its neighbour. A change reads its way through Tx.Read, so it
// conflicts with changes of any node on the way: where many transactions change a list at once, operations that
// are kept until the commit, as in index/hash, would be better.
//
// Machines call Serve before they use a list.
package skiplist
