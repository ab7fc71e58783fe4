// Package skiplist is an example of a data structure that a user builds over FaRM's transactions: a
// skip list, an ordered map from bytes to bytes. Its lookups are one-two-sided operations (package
// txn/lookup; Storm, section 4).
//
//	head ──────────────────────────→ node ───────────→ nil   level 2
//	head ───────────→ node ────────→ node ───────────→ nil   level 1
//	head ──→ node ──→ node ──→ node → node ──→ node ──→ nil   level 0
//
// Each node is an object. A search goes along a level while the keys are less, and then one level
// down. It follows some 2 log2 n pointers; from another machine each would cost a READ. So a
// machine caches the nodes in which it has found keys. A lookup of a cached key is a single READ of
// its node. The node shows whether it still has the key, because a node keeps its key as long as it
// exists. For any other key the lookup is one message to the primary of the head, near which all
// nodes are.
//
// In a transaction a lookup becomes a Question with one source. If the key is in the list, the
// source is its node. If not, the source is the node before its place, which changes when the key
// is inserted. So a transaction that only looks a key up conflicts only with changes of this key or
// its neighbour. A change reads its way through Tx.Read, so it conflicts with changes of any node
// on the way. If many transactions change a list at the same time, operations that are kept until
// the commit, as in index/hash, are better.
//
// Call Serve on each machine before it uses a list.
package skiplist
