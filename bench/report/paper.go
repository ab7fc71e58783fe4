package report

// Figures of the papers, per hardware thread. SOSP'15: 90 machines of 30 threads that run
// transactions, three replicas, machines connected by two cards of 56 Gbit/s each. NSDI'14: 20
// machines of 32 threads, one card of 40 Gbit/s each.
const (
	sospThreads = 90 * 30
	nsdiThreads = 20 * 32

	// paperReplicas is the number of replicas for each figure of SOSP'15: runs with fewer
	// replicas do less work, and are not compared.
	paperReplicas  = 3
	paperTATP      = 140e6 / sospThreads // transactions a second, section 6.3
	paperNewOrders = 4.5e6 / sospThreads
	paperLookups   = 790e6 / sospThreads
	paperTao       = 126e6 / nsdiThreads // operations a second, NSDI'14 section 4.4
	paperTaoReads  = 1.02                // RDMA reads of an operation that only reads
)

// Goals, on one machine with one worker unless the comment says otherwise.
const (
	goalTATP      = 650_000 // transactions a second, 1,000,000 subscribers
	goalTPCC      = 40_000  // transactions of the full mix a second, one warehouse
	goalLookups   = 4e6     // lookups a second, of 10 million keys or more in a table 90 % full
	goalMultiGet  = 8e6     // lookups a second in batches, of 10 million keys or more in a table 90 % full
	goalMisses    = 6       // the greatest number of dependent misses of a TATP transaction
	goalSQLite    = 2       // ratio to SQLite's transactions of TATP a second, in memory, in one run
	hereThreads   = 2       // hardware threads that three machines share
	goalTATP3     = hereThreads * paperTATP
	goalNewOrder3 = hereThreads * paperNewOrders
)
