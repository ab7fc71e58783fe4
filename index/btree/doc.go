// Package btree is the ordered index: a B-tree whose leaves hold keys and
// region.Ptr values, over the transactions of package txn alone.
//
//	           anchor ── never moves; names the root, holds the Config
//	             │
//	       ┌─────┴──────┐          inner nodes: level 1 is cached on each
//	       a ...        m ...      machine, ordered by low fence, maybe stale
//	  ┌────┴───┐    ┌───┴────┐
//	[ ,f)    [f,m) [m,s)   [s, )   leaves: always read from their primary
//
// Every node carries its level, its tree and its fence keys [low, high), so that
// a reader can tell whether it has come to the right node (SOSP'15 section
// 6), and the incarnation in a fat pointer tells whether a node has been freed.
// Therefore any pointer to a leaf is safe to try, however old: the leaf itself
// proves that it is the right one. A lookup finds a level-1 node in the cache,
// and reads one object, the leaf. If it is the wrong leaf, the lookup reads the
// level-1 node again, and if need be the path from the anchor.
//
// # Transactions
//
// Two transactions that change different keys of one leaf must both commit,
// however long they are open. So nothing of the tree enters a read or write set
// while a transaction runs:
//
//   - its changes are kept as operations on keys, in key order, together with
//     their undo steps for savepoints. Its own Get and Scan see them;
//   - Prepare, called by the commit just before LOCK and again when a LOCK was
//     refused, applies these operations to fresh copies of the leaves, splits and
//     merges, and changes the nodes above where needed;
//   - its reads are kept as questions with their answers: this key was absent,
//     this key led there, this stretch held exactly these entries. Where a leaf
//     has changed since, validation asks the question again, of the committed
//     tree and without the transaction's own operations. The transaction aborts
//     only if the answer differs.
//
// # Invariants
//
// At every commit the fences of each level partition the key space, an inner
// node's entry for a child is the child's low fence, and its first entry is its
// own low fence. A node's level, tree and address never change. Nodes that a
// transaction replaces are locked at the version that it read, so that a split
// or merge is atomic without any lock on the way down.
//
// # Splitting and merging
//
// A node splits when it exceeds its Config's budget and has at least four
// entries; with fewer it moves to an object that holds them, so that keys of any
// length up to MaxKeyBytes find room and a split can always be done. Leaves
// split at the shortest separator. If keys are added in ascending order, a split
// leaves the left node full. A node under a quarter of its budget is merged with
// a neighbour if both fit into three quarters; an empty node is always merged.
// Keys are stored without the prefix that their node's fences have in common.
//
// # Concurrency and limits
//
// A Tree is safe for concurrent use by any number of transactions; a Cursor
// belongs to its transaction. Any number of machines may have the tree open.
// Keys have at most 3072 bytes.
package btree
