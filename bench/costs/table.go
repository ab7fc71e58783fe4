package costs

// table has the costs of a transaction in the order of its steps: lookups, reads and writes,
// commit, work for other machines.
var table = []Cost{
	{
		Name: "the first load of a bucket's header",
		Why:  "a miss of the cache, what a lookup by hash has to cost where nothing else can be done meanwhile; lookups together hide it",
		own:  []string{"region.(*View).look"},
	},
	{
		Name: "from a key to its bucket",
		Why:  "hashing, and a load of the directory's entry, which misses if there are many",
		own: []string{
			"index/hash.(*Table).Home", "index/hash.(*Table).route", "index/hash.(*opened).home", "index/hash.(*entrance).", "index/hash.(*routes).",
			"index/hash.(*directory).", "index/hash.mix", "index/hash.sum", "index/hash.tagOf", "index/hash.bucketOf",
			"txn/worker.Operation.Aim", "region.(*Region).Aim", "txn/worker.(*Machine).Lookable",
		},
	},
	{
		Name: "buckets: headers checked, pairs found and copied",
		Why:  "tags and keys are compared, versions checked before and after",
		own: []string{
			"index/hash.", "txn/lookup.", "region.(*Pair).", "region.(*View).", "region.View.", "txn/worker.Operation.Look", "txn/worker.Operation.LookPair", "txn.(*Tx).LookPair", "txn.(*Tx).PeekPair",
		},
	},
	{
		Name: "asking ahead",
		Why:  "prefetches of what a transaction is going to read, which miss together and not one after the other; the processor waits where it has no more misses under way",
		own: []string{
			"internal/prefetch.", "index/hash.(*Table).Fetch", "index/hash.(*opened).prefetch", "index/btree.(*Tree).Fetch", "index/btree.(*Tree).prefetch",
			"txn.(*Tx).Fetch", "txn/worker.Operation.Fetch", "region.(*Region).FetchAll", "region.(*Region).Fetch",
		},
	},
	{
		Name: "objects read and written by the transaction",
		Why:  "copied as a whole into its read and write sets, so that it sees one state and its own changes",
		own: []string{
			"txn.(*Tx).Read", "txn.(*Tx).ReadPart", "txn.(*Tx).Peek", "txn.(*Tx).Write", "txn.(*Tx).addWrite", "txn.(*Tx).earlierRead", "txn.(*Tx).ownWrite",
			"txn.(*Tx).Alloc", "txn.(*Tx).AllocArray", "txn.(*Tx).Free", "txn.(*Machine).alloc", "txn.(*Tx).Local", "txn.(*Tx).SetLocal", "txn.(*Tx).Scratch",
			"txn.(*state).fetch", "txn/worker.Operation.ReadWithin", "txn/worker.Operation.readOnce", "region.(*Region).ReadObject", "region.(*Allocator).", "txn/set.(*Set).", "txn/set.(*Entry).", "txn/set.(*Arena).",
		},
	},
	{
		Name: "B-trees: walks, scans and changes asked for",
		Why:  "inner nodes are cached, a leaf is an object of 1 KB",
		own:  []string{"index/btree.", "github.com/google/btree."},
	},
	{
		Name: "commit: leaves of B-trees",
		Why:  "changed leaves are built anew, and taken apart and put together where they split or merge",
		all:  []string{"index/btree.(*pending).Prepare"},
	},
	{
		Name: "commit: buckets",
		Why:  "found again, compared with what was seen, and changed in a copy",
		own:  []string{"index/hash.(*editor).", "index/hash.(*neighbourhood).", "index/hash.(*overlay).reset"},
		all:  []string{"index/hash.(*overlay).Prepare"},
	},
	{
		Name: "growth of hash tables",
		Why:  "pairs move to new shards, a few with each insert",
		all:  []string{"index/hash.(*Table).maintain"},
	},
	{
		Name: "commit: locks",
		Why:  "an atomic operation on each object that is written, whose address is checked",
		own: []string{
			"txn.(*state).awaitLocks", "txn.(*state).lockSelfLocked", "txn.(*state).lockOwnLocked", "txn.(*state).unlockOwnLocked", "txn/participant.(*Replicas).LockWrite", "region.(*Region).Lock", "region.(*Region).Unlock",
		},
	},
	{
		Name: "commit: validation",
		Why:  "what was read and not written must be as it was",
		own: []string{
			"txn.(*Tx).Validate", "txn.(*state).validate", "txn.(*state).validateReadOnly", "txn.(*state).listChecks", "txn.(*state).addCheck", "txn.(*state).rewrites",
			"txn.(*state).runChecks", "txn.(*state).runRemoteChecks", "txn.(*state).postVersionReads", "txn.(*state).askVersions", "txn.(*state).judgeChecks", "txn.(*state).sources",
			"txn.(*state).ownLock", "txn.(*state).lockedAt",
		},
	},
	{
		Name: "commit: records",
		Why:  "what is written goes into the log of each replica, where a recovery finds it; one's own included",
		own: []string{
			"txn.(*state).writeLockRecordsLocked", "txn.(*state).encodeLocked", "txn/worker.(*Worker).StageLocked", "txn/worker.(*Worker).AppendLocked", "txn/worker.(*Worker).AppendAwaitedLocked", "txn/worker.(*Worker).AppendAckedLocked", "txn/worker.(*Worker).appendLocked", "txn/worker.(*Worker).ReserveLocked", "txn/worker.(*Worker).logOfLocked", "txn.(*commit).appendWrites",
			"txn/record.AppendHeader", "txn/record.AppendWrite", "txn/record.Append", "txn/record.WriteBytes", "txn/record.HeaderBytes", "txn/record.roundUp8", "txn/participant.(*OwnLog).",
			"txn/worker.(*Worker).writeTruncateLocked", "txn/worker.(*Worker).flushTruncationsLocked", "txn/worker.(*Worker).takeTruncatedLocked", "rdma/ring.(*Sender).", "rdma/shm.(*Queue).Write", "txn/worker.(*patientQueue).Write",
		},
	},
	{
		Name: "commit: new state into place",
		Why:  "each object that is written, as a whole, with the versions of its lines",
		own: []string{
			"txn.(*state).commitPrimariesLocked", "txn.(*state).applySelfLocked", "txn/participant.(*Replicas).ApplyPrimary", "region.(*Region).Write", "region.(*Region).write", "region.(*Region).apply", "region.(*Region).storePayload",
		},
	},
	{
		Name: "transactions: beginning, planning, ending",
		Why:  "who has which object, in which order; sets that the next transaction uses again are cleared",
		own:  []string{"txn.", "txn/worker.", "txn/record.(*Window).", "txn/wait.(*Lease).", "txn/wait.(*Need).", "txn/wait.(*Backoff)."},
	},
	{
		Name: "READs of other machines' memory",
		Why:  "copies of what others write, and so misses",
		own: []string{
			"rdma/shm.(*Queue).Read", "txn/worker.(*patientQueue).Read", "txn/worker.(*Worker).readRaw", "txn/worker.Operation.ReadPairWithin", "txn/worker.Operation.readPairOnce", "txn/worker.Operation.ReadPair",
			"txn/worker.(*Machine).ReadPair", "region.Unpack", "txn/worker.(*Worker).PostReadLocked",
		},
	},
	{
		Name: "work for others: their records",
		Why:  "logs are read, and backups apply what was committed",
		all:  []string{"txn/worker.(*Worker).stepLogLocked"},
	},
	{
		Name: "work for others: messages and functions shipped",
		Why:  "validation of many objects, allocation, and updates of one field, which go to the primary",
		all:  []string{"txn/worker.(*Worker).stepMessagesLocked", "txn/worker.(*Machine).serve"},
	},
	{
		Name: "waiting, waking and going to sleep",
		Why:  "Go's scheduler, futexes, doorbells, the worker's lock, a look at what others have written: machines that share processors wait for each answer asleep; with a core each they poll",
		own: []string{
			"rdma/shm.(*doorbell).", "rdma/shm.ringBell", "rdma/shm.(*Queue).Ring", "txn/worker.(*patientQueue).Ring", "txn/worker.(*Worker).RingPeersLocked", "txn/worker.(*Worker).ringLocked",
			"txn/worker.(*Worker).Lock", "txn/worker.(*Worker).Unlock", "txn/worker.(*Worker).flushLocked", "txn/worker.(*Worker).GatherLocked", "txn/worker.(*Worker).endBatchLocked", "txn/worker.(*Worker).beginAwait", "txn/worker.(*Worker).endAwait", "txn/worker.(*Worker).answerBell", "txn/worker.(*Worker).kick", "txn/worker.(*Worker).stepLocked", "txn/worker.(*Worker).Await", "txn/wait.NewWaiter", "txn/wait.(*Waiter).", "rdma/shm.futexWait", "rdma/shm.futexWake", "rdma/shm.schedYield", "internal/clock.",
		},
		all: []string{"runtime.mcall", "runtime.mstart", "runtime.gopark", "runtime.goready"},
	},
	{
		Name: "allocation and garbage collection",
		Why:  "but for those within what is counted as a whole: leaves of B-trees, buckets at commit, growth, work for others",
		own:  []string{"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.wbBufFlush", "runtime.bulkBarrierPreWrite", "runtime.gcAssistAlloc"},
		all:  []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"},
	},
	{
		Name: "the benchmark",
		Why:  "transactions are drawn, rows taken apart, latencies recorded; two readings of the clock",
		own: []string{
			"bench.", "bench/tatp.", "bench/tpcc.", "bench/kv.", "bench/tao.", "github.com/HdrHistogram/hdrhistogram-go.",
		},
	},
}
