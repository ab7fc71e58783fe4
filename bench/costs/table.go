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
			"txn.Operation.Aim", "region.(*Region).Aim", "txn.(*machine).lookable",
		},
	},
	{
		Name: "buckets: headers checked, pairs found and copied",
		Why:  "tags and keys are compared, versions checked before and after",
		own: []string{
			"index/hash.", "region.(*Pair).", "region.(*View).", "region.View.", "txn.Operation.Look", "txn.Operation.LookPair", "txn.(*Tx).LookPair", "txn.(*Tx).PeekPair",
		},
	},
	{
		Name: "asking ahead",
		Why:  "prefetches of what a transaction is going to read, which miss together and not one after the other; the processor waits where it has no more misses under way",
		own: []string{
			"internal/prefetch.", "index/hash.(*Table).Fetch", "index/hash.(*opened).fetch", "index/btree.(*Tree).Fetch", "index/btree.(*Tree).fetch",
			"txn.(*Tx).Fetch", "txn.Operation.Fetch", "region.(*Region).FetchAll", "region.(*Region).Fetch",
		},
	},
	{
		Name: "objects read and written by the transaction",
		Why:  "copied as a whole into its read and write sets, so that it sees one state and its own changes",
		own: []string{
			"txn.(*Tx).Read", "txn.(*Tx).ReadPart", "txn.(*Tx).Peek", "txn.(*Tx).Write", "txn.(*Tx).addWrite", "txn.(*Tx).earlierRead", "txn.(*Tx).ownWrite",
			"txn.(*Tx).Alloc", "txn.(*Tx).AllocArray", "txn.(*Tx).Free", "txn.(*Machine).alloc", "txn.(*Tx).Local", "txn.(*Tx).SetLocal", "txn.(*Tx).Scratch",
			"txn.(*state).fetch", "txn.Operation.read", "txn.Operation.readOnce", "region.(*Region).ReadObject", "region.(*Allocator).", "txn/set.(*Set).", "txn/set.(*Entry).", "txn/set.(*Arena).",
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
			"txn.(*state).awaitLocks", "txn.(*state).lockSelfLocked", "txn.(*state).lockOwnLocked", "txn.(*state).unlockPartLocked", "txn/participant.(*Replicas).LockWrite", "region.(*Region).Lock", "region.(*Region).Unlock",
		},
	},
	{
		Name: "commit: validation",
		Why:  "what was read and not written must be as it was",
		own: []string{
			"txn.(*Tx).Validate", "txn.(*state).validate", "txn.(*state).validateReadOnly", "txn.(*state).listChecks", "txn.(*state).addCheck", "txn.(*state).rewrites",
			"txn.(*state).runChecks", "txn.(*state).runRemoteChecks", "txn.(*state).readVersions", "txn.(*state).askVersions", "txn.(*state).judgeChecks", "txn.(*state).sources",
			"txn.(*state).ownLock", "txn.(*state).lockedAt",
		},
	},
	{
		Name: "commit: records",
		Why:  "what is written goes into the log of each replica, where a recovery finds it; one's own included",
		own: []string{
			"txn.(*state).writeLockRecordsLocked", "txn.(*state).encodeLocked", "txn.(*worker).StageLocked", "txn.(*worker).AppendLocked", "txn.(*worker).AppendAwaitedLocked", "txn.(*worker).AppendAckedLocked", "txn.(*worker).appendLocked", "txn.(*worker).ReserveLocked", "txn.(*worker).logOfLocked", "txn.(*commit).appendWrites",
			"txn/record.AppendHeader", "txn/record.AppendWrite", "txn/record.Append", "txn/record.WriteBytes", "txn/record.HeaderBytes", "txn/record.roundUp8", "txn/participant.(*OwnLog).",
			"txn.(*worker).writeTruncateLocked", "txn.(*worker).flushTruncationsLocked", "txn.(*worker).takeTruncatedLocked", "rdma/ring.(*Sender).", "rdma/shm.(*Queue).Write", "txn.(*patientQueue).Write",
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
		own:  []string{"txn.", "txn/record.(*Window).", "txn/wait.(*Lease).", "txn/wait.(*Need).", "txn/wait.(*Backoff)."},
	},
	{
		Name: "READs of other machines' memory",
		Why:  "copies of what others write, and so misses",
		own: []string{
			"rdma/shm.(*Queue).Read", "txn.(*patientQueue).Read", "txn.(*worker).readRaw", "txn.Operation.readPair", "txn.Operation.readPairOnce", "txn.Operation.ReadPair",
			"txn.(*machine).ReadPair", "region.Unpack", "txn.(*worker).PostReadLocked",
		},
	},
	{
		Name: "work for others: their records",
		Why:  "logs are read, and backups apply what was committed",
		all:  []string{"txn.(*worker).stepLogLocked"},
	},
	{
		Name: "work for others: messages and functions shipped",
		Why:  "validation of many objects, allocation, and updates of one field, which go to the primary",
		all:  []string{"txn.(*worker).stepMessagesLocked", "txn.(*machine).serve"},
	},
	{
		Name: "waiting, waking and going to sleep",
		Why:  "Go's scheduler, futexes, doorbells, the worker's lock, a look at what others have written: machines that share processors wait for each answer asleep; with a core each they poll",
		own: []string{
			"rdma/shm.(*doorbell).", "rdma/shm.ringBell", "rdma/shm.(*Queue).Ring", "txn.(*patientQueue).Ring", "txn.(*worker).ringPeersLocked", "txn.(*worker).ringLocked",
			"txn.(*worker).lock", "txn.(*worker).unlock", "txn.(*worker).answerBell", "txn.(*worker).kick", "txn.(*worker).stepLocked", "txn.(*worker).await", "txn/wait.NewWaiter", "txn/wait.(*Waiter).", "rdma/shm.futexWait", "rdma/shm.futexWake", "rdma/shm.schedYield", "internal/clock.",
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
