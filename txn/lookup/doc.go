// Package lookup finds keys of data structures at other machines: one-two-sided operations (Storm,
// sections 4 and 5.3). A structure says where a key may be and whether what was read decides; package
// lookup posts the READs, and sends a message to the owner if they have not decided.
//
//	reader                                          owner, the primary of the structure's objects
//	Search.Start: where may the key be?
//	  ──── READ ──────────────────────────────────→ no code runs
//	Search.End: does that decide?  yes: done
//	  no: Search.Request ── message ──────────────→ the function given to Serve looks the key up
//	Search.Learn ←───────── Answer ────────────────   by reads of its own memory
//
// # A structure's part
//
// The paper's three callbacks in Go: lookup_start is Search.Start, lookup_end is Search.End for what a READ
// has returned and Search.Learn for what the owner has, rpc_handler is the function given to Serve. Locking and
// committing, which are in the paper's rpc_handler, too, are package txn's: a structure changes its objects in
// transactions. A structure keeps its own cache; it learns addresses in End and Learn, finds them in
// Start, and End finds out that one has become wrong: a READ by a pointer to freed memory fails with
// region.ErrFreed, and an object that lives says itself which key it has. Cached pointers must be forgotten at
// the end of an epoch (worker.Machine.OnEpoch).
//
// index/hash is one such structure, examples/skiplist another.
//
// # In transactions
//
// An Answer carries its Sources: the objects, and their versions, that it is true of. In a transaction the
// structure remembers them as a txn.Question, so that a key that the owner has found is validated like one that a READ
// has: by the versions of its sources, whoever has read them. Questions that are asked again during a commit
// use Walk, because the owner would wait for the locks that the transaction itself holds.
//
// # Ways
//
// A Way says how many READs a lookup may take before the message. Measured, the default, takes as many as cost
// what one message costs (rdma.Costs): so no lookup costs more than twice what the better of the two ways costs.
// Where this machine is the owner, all is done by reads of its memory.
package lookup
