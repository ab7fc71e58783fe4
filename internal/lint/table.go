package lint

// module is the path of the repository's packages.
const module = "github.com/farmsql/farmsql"

// layers are all packages: one imports only from lines above its own. "." is the
// module's root.
var layers = [][]string{
	{"internal/clock", "internal/invariant", "internal/sabotage", "internal/history", "internal/lint", "internal/prefetch", "internal/protocol", "internal/cputime", "internal/testcert", "internal/host"},
	{"internal/lockrank", "internal/lint/draw"},
	{"nvram"},
	{"region"},
	{"rdma"},
	{"rdma/ring", "rdma/call", "rdma/rdmatest", "rdma/hosts"},
	{"rdma/local", "rdma/shm", "rdma/tcp", "rdma/verbs", "internal/sim"},
	{"rdma/call/calltest", "internal/testnet"},
	{"cluster"},
	{"cluster/lease", "cluster/zookeepertest", "cluster/raftstore", "cluster/storetest", "cluster/peerport"},
	{"cluster/join"},
	{"txn/record", "txn/message", "txn/route", "txn/step", "txn/wait", "txn/commitstate"},
	{"txn/set", "txn/outcome"},
	{"txn/participant"},
	{"txn/evidence"},
	{"txn/worker"},
	{"txn"},
	{"txn/lookup"},
	{"recovery", "internal/txntest"},
	{"recovery/membership", "recovery/transactions", "recovery/data"},
	{"farm"},
	{"index/hash", "index/btree", "examples/skiplist"},
	{"catalog"},
	{"internal/simtest"},
	{"sql/row"},
	{"sql/myerr"},
	{"sql/compat"},
	{"sql/store"},
	{"sql/executor", "sql/account", "sql/explain", "sql/routine", "sql/trigger", "sql/plan"},
	{"sql/exec"},
	{"sql/fast"},
	{"sql/change"},
	{"sql"},
	{"sql/wire"},
	{"internal/sqlsim"},
	{"."},
	{"internal/cli", "sql/sqltest"},
	{"internal/cli/clitest"},
	{"cmd/farmsql/doctor"},
	{"cmd/farmsql"}, // above the benchmarks: what they need to draw and to profile is not in the server
	{"bench", "bench/micro", "bench/micro/table", "bench/costs"},
	{"bench/tao", "bench/tatp", "bench/tpcc", "bench/kv", "bench/lease", "bench/failure", "bench/growth", "bench/shapes", "bench/rdma", "bench/costs/coststest"},
	{"bench/tpch"}, // beside a MariaDB that bench/shapes starts
	{"bench/compare", "bench/report"},
	{"cmd/farmsql-bench"},
	{"internal/lists"},
	{"sql/enginetest"},  // go-mysql-server's own tests, on our engine
	{"test", "test/vm"}, // the binary, as its users see it; tests in a virtual machine
}

// core packages import only the standard library, and what is listed here.
var core = map[string][]string{
	"internal/clock":        nil,
	"internal/invariant":    nil,
	"internal/sabotage":     nil,
	"internal/history":      nil,
	"internal/lint":         nil,
	"internal/prefetch":     nil,
	"internal/cputime":      nil,
	"internal/testcert":     nil,
	"internal/host":         nil,
	"internal/protocol":     nil,
	"nvram":                 {"golang.org/x/sys/unix"}, // mmap, msync, flock
	"region":                nil,
	"rdma":                  nil,
	"rdma/ring":             nil,
	"rdma/call":             nil,
	"rdma/call/calltest":    {"github.com/cockroachdb/datadriven"},
	"rdma/rdmatest":         nil,
	"rdma/local":            nil,
	"rdma/shm":              {"golang.org/x/sys/unix"}, // futex, mapped files
	"rdma/hosts":            {"golang.org/x/sys/unix"}, // options of sockets
	"rdma/tcp":              {"golang.org/x/sys/unix"}, // options of sockets, sends that do not wait
	"rdma/verbs":            {"golang.org/x/sys/unix"}, // descriptors of completions and events
	"internal/sim":          nil,
	"internal/testnet":      nil,
	"cluster":               {"golang.org/x/sys/unix", "github.com/go-zookeeper/zk"},
	"cluster/lease":         {"golang.org/x/sys/unix"}, // sockets
	"cluster/raftstore":     {"golang.org/x/sys/unix", "go.etcd.io/raft/v3", "go.etcd.io/raft/v3/raftpb", "go.etcd.io/raft/v3/tracker", "google.golang.org/protobuf/proto"},
	"cluster/storetest":     nil,
	"txn/record":            nil,
	"txn/message":           nil,
	"txn/route":             nil,
	"txn/step":              nil,
	"txn/wait":              nil,
	"txn/commitstate":       nil,
	"txn/set":               nil,
	"txn/outcome":           nil,
	"txn/participant":       nil,
	"txn/evidence":          nil,
	"txn/worker":            nil,
	"txn":                   nil,
	"txn/lookup":            nil,
	"recovery":              nil,
	"recovery/membership":   nil,
	"recovery/transactions": nil,
	"recovery/data":         nil,
	"internal/txntest":      nil,
	"farm":                  nil,
	"index/hash":            nil,
	"index/btree":           {"github.com/google/btree"}, // orders the cache of inner nodes
	"catalog":               nil,
	"internal/simtest":      nil,
}

// mysqlServer packages are go-mysql-server and its parser; only mysqlUsers may
// import them.
var (
	mysqlServer = []string{"github.com/dolthub/go-mysql-server", "github.com/dolthub/vitess"}
	mysqlUsers  = []string{"sql", "sql/row", "sql/myerr", "sql/compat", "sql/store", "sql/executor", "sql/plan", "sql/exec", "sql/fast", "sql/routine", "sql/trigger", "sql/explain", "sql/change", "sql/account", "sql/wire", "sql/enginetest", "internal/sqlsim", "."}
)

// unsafeUsers may import unsafe and C: they share bytes with files, NICs
// and a thread of C, give addresses to the processor, and ask the runtime which
// processor a goroutine runs on.
var unsafeUsers = []string{"internal/clock", "internal/prefetch", "nvram", "region", "rdma", "rdma/...", "cluster/lease"}

// clockUsers may read the process's clock and its source of randomness.
// rdma/shm drives processes, and cluster/raftstore a library with a disk and a network: they never run in
// the simulator.
var clockUsers = []string{"internal/clock", "cmd/...", "bench", "bench/...", "rdma/rdmatest", "rdma/shm", "rdma/hosts", "rdma/tcp", "rdma/verbs", "cluster/zookeepertest", "cluster/raftstore", "cluster/storetest", "cluster/peerport", "cluster/join", "internal/testcert", "internal/testnet", "test/vm"}

// simulated packages run in internal/sim, except their files in unsimulated: farm/save.go saves
// folders of the file system, at Close, and cluster/lease/locked.go is only for measurements.
var (
	simulated = []string{
		"region", "rdma/ring", "rdma/call", "cluster", "cluster/lease", "txn/record", "txn/message", "txn/route", "txn/step", "txn/wait", "txn/commitstate", "txn/set", "txn/outcome", "txn/participant", "txn/evidence", "txn/worker", "txn", "txn/lookup", "recovery", "recovery/membership", "recovery/transactions", "recovery/data", "farm",
		"index/hash", "index/btree", "catalog", "sql/row", "sql/myerr", "sql/compat", "sql/store", "sql/executor", "sql/plan", "sql/exec", "sql/fast", "sql/routine", "sql/trigger", "sql/explain", "sql/change", "sql/account", "sql",
	}
	unsimulated = []string{"farm/save.go", "cluster/lease/locked.go"}
)

// ranked packages have mutexes with ranks, beside the simulated ones.
var ranked = []string{"nvram", "rdma/local", "rdma/shm", "rdma/hosts", "rdma/tcp", "rdma/verbs", "cluster/raftstore", "sql/wire", "."}

// A function of functionLinesMax lines surely has more than one idea. A function of
// functionLinesMany lines deserves a second look.
const (
	functionLinesMax  = 100
	functionLinesMany = 70
)
