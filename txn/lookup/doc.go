// Package lookup finds keys of data structures at other machines: one-two-sided operations
// (Storm, sections 4 and 5.3). A structure says where a key may be, and whether the objects
// read there decide the lookup. Package lookup posts the READs, and sends a message to the
// owner if they have not decided.
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
// The paper's three callbacks are: lookup_start, Search.Start; lookup_end, Search.End after a
// READ and Search.Learn after the owner's answer; rpc_handler, the function given to Serve. The
// paper's rpc_handler also locks and commits. Package txn does that instead: a structure
// changes its objects in transactions. A structure keeps its own cache of addresses: End and
// Learn add to it, and Start looks in it. End notices that a cached address has become wrong: a
// READ by a pointer to freed memory fails with region.ErrFreed, and an object that is not freed
// says itself which key it has. A structure must forget its cached pointers at the end of an
// epoch (worker.Machine.OnEpoch).
//
// index/hash is one such structure, examples/skiplist another.
//
// # In transactions
//
// An Answer carries its Sources: the objects that it came from, with their versions. In a
// transaction the structure remembers them as a txn.Question. A key that the owner has found is
// then validated like a key that a READ has found: by the versions of its sources. Questions
// that are asked again during a commit use Walk, because the owner would wait for the locks
// that the transaction itself holds.
//
// # Ways
//
// A Way says how many READs a lookup may take before it sends the message. Measured, the
// default, allows as many READs as cost what one message costs (rdma.Costs), so no lookup costs
// more than twice what the better of the two ways costs. If this machine is the owner, the
// lookup only reads its own memory.
package lookup
