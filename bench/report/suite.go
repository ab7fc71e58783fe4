package report

// Flags of runs in the closed loop. The brief runs are for tables that compare many
// settings with each other.
const (
	closed = " --warm-up 1s --duration 3s"
	brief  = " --warm-up 300ms --duration 1s"
)

// Flags for machines with one worker, and for two or three machines, which are processes.
const (
	worker = " --workers 1"
	two    = " --transport shm --machines 2 --replicas 2"
	three  = " --transport shm --machines 3 --replicas 3"
)

// Flags for machines of one process whose memory is in files: on a tmpfs, and in the folder of the
// results, which may be on a disk. The table says where it was.
const (
	onTmpfs = " --data /dev/shm"
	onDisk  = " --data " + resultsFolder
)

// Experiments that stand in several tables. A hash table's number of buckets is a power of two: so
// 12 million keys become 15.1 million, and 10 million would become 7.5 million.
var (
	tatp1M   = experiment{name: "tatp-1m", args: "tatp --subscribers 1000000" + worker + closed}
	tatp100K = experiment{name: "tatp-100k", args: "tatp --subscribers 100000" + worker + closed}
	tatp3    = tatpMachines("tatp-shm-3", "--machines 3 --replicas 3"+worker)
	tatp3x2  = tatpMachines("tatp-shm-3-2", "--machines 3 --replicas 3 --threads 2"+worker)
	tpcc1    = experiment{name: "tpcc-1", args: "tpcc --warehouses 1" + worker + closed}
	tpcc3    = experiment{name: "tpcc-shm-3", args: "tpcc --warehouses 3" + three + worker + closed}
	tpcc3x2  = experiment{name: "tpcc-shm-3-2", args: "tpcc --warehouses 3 --threads 2" + three + worker + closed}
	tpcc2    = experiment{name: "tpcc-shm-2", args: "tpcc --warehouses 2" + two + worker + closed}

	tatp1MTmpfs = experiment{name: "tatp-1m-tmpfs", args: tatp1M.args + onTmpfs}
	tatp1MDisk  = experiment{name: "tatp-1m-disk", args: tatp1M.args + onDisk}
	tpcc1Tmpfs  = experiment{name: "tpcc-1-tmpfs", args: tpcc1.args + onTmpfs}
	tpcc1Disk   = experiment{name: "tpcc-1-disk", args: tpcc1.args + onDisk}

	kv1M     = experiment{name: "kv-1m", args: "kv --keys 1000000" + worker + closed}
	kv15M    = experiment{name: "kv-15m", args: "kv --keys 12000000" + worker + closed}
	kv15M24  = experiment{name: "kv-15m-24", args: "kv --keys 12000000 --batch 24" + worker + closed}
	kv15M256 = experiment{name: "kv-15m-256", args: "kv --keys 12000000 --batch 256" + worker + closed}
	kv3      = experiment{name: "kv-shm-3", args: "kv --keys 300000" + three + worker + closed}
	kv3Many  = experiment{name: "kv-shm-3-many", args: "kv --keys 300000 --batch 32" + three + worker + closed}
)

// tatpMachines returns the experiment of TATP on machines that share memory.
func tatpMachines(name, machines string) experiment {
	return experiment{name: name, args: "tatp --subscribers 30000 --transport shm " + machines + closed}
}

// A variant is an experiment as a row of a table.
type variant struct {
	label string
	experiment
}

// scalings are the rows of the table that shows how throughput changes with one quantity, grouped by
// that quantity.
var scalings = []struct {
	what string
	rows []variant
}{
	{"TATP, data", []variant{
		{"100,000 subscribers, 1 M rows", tatp100K},
		{"1,000,000 subscribers, 10 M rows", tatp1M},
		{"10,000,000 subscribers, 100 M rows", experiment{name: "large-tatp", args: "tatp --subscribers 10000000" + worker + closed, once: true, isLarge: true}},
	}},
	{"key-value, data", []variant{
		{"0.9 M keys", kv1M},
		{"15.1 M keys", kv15M},
		{"121 M keys", experiment{name: "large-kv", args: "kv --keys 100000000" + worker + closed, once: true, isLarge: true}},
	}},
	{"TATP, workers of a machine, a thread for each", []variant{
		{"1", tatp100K},
		{"2", experiment{name: "tatp-100k-2", args: "tatp --subscribers 100000 --workers 2 --threads 2" + closed}},
	}},
	{"key-value, the same", []variant{
		{"1", kv1M},
		{"2", experiment{name: "kv-1m-2", args: "kv --keys 1000000 --workers 2 --threads 2" + closed}},
	}},
	{"TPC-C, workers of a machine, a thread and a warehouse for each", []variant{
		{"1", tpcc1},
		{"2", tpccWorkers("tpcc-2", "2")},
		{"4", tpccWorkers("tpcc-4", "4")},
	}},
	{"TPC-C, machines over `rdma/shm`, a worker, a thread and a warehouse each", []variant{
		{"1", experiment{name: "tpcc-shm-1", args: "tpcc --warehouses 1 --transport shm" + worker + closed}},
		{"2, 2 replicas", tpcc2},
		{"3, 3 replicas", tpcc3},
	}},
	{"TATP, machines over `rdma/shm`, a worker and a thread each", []variant{
		{"1", tatpMachines("tatp-shm-1", "--machines 1 --replicas 1"+worker)},
		{"2, 2 replicas", tatpMachines("tatp-shm-2", "--machines 2 --replicas 2"+worker)},
		{"3, 3 replicas", tatp3},
		{"5, 3 replicas", tatpMachines("tatp-shm-5", "--machines 5 --replicas 3"+worker)},
	}},
}

// transports are the rows of the table that compares the networks, grouped by what is measured.
var transports = []struct {
	what string
	rows []variant
}{
	{"TATP, 1 thread each", []variant{
		{overLocal, tatpOver("tatp-local-3", "local", "1")},
		{overSHM, tatp3},
		{overTCP, tatpOver("tatp-tcp-3", "tcp", "1")},
		{overHosts, tatpOver("tatp-hosts-3", "hosts", "1")},
	}},
	{"TATP, 8 threads each", []variant{
		{overLocal, tatpOver("tatp-local-3-8", "local", "8")},
		{overSHM, tatpOver("tatp-shm-3-8", "shm", "8")},
		{overTCP, tatpOver("tatp-tcp-3-8", "tcp", "8")},
		{overHosts, tatpOver("tatp-hosts-3-8", "hosts", "8")},
	}},
	{"TATP, 64 threads each", []variant{
		{overLocal, tatpOver("tatp-local-3-64", "local", "64")},
		{overSHM, tatpOver("tatp-shm-3-64", "shm", "64")},
		{overTCP, tatpOver("tatp-tcp-3-64", "tcp", "64")},
		{overHosts, tatpOver("tatp-hosts-3-64", "hosts", "64")},
	}},
	{"lookups, one by one, 1 thread each", []variant{
		{overLocal, kvOver("kv-over-local", "local", "")},
		{overSHM, kvOver("kv-over-shm", "shm", "")},
		{overTCP, kvOver("kv-over-tcp", "tcp", "")},
		{overHosts, kvOver("kv-over-hosts", "hosts", "")},
	}},
	{"lookups, 32 keys together, 1 thread each", []variant{
		{overLocal, kvOver("kv-over-local-many", "local", " --batch 32")},
		{overSHM, kvOver("kv-over-shm-many", "shm", " --batch 32")},
		{overTCP, kvOver("kv-over-tcp-many", "tcp", " --batch 32")},
		{overHosts, kvOver("kv-over-hosts-many", "hosts", " --batch 32")},
	}},
}

// Labels of the rows of transports.
const (
	overLocal = "`rdma/local`, one process"
	overSHM   = "`rdma/shm`"
	overTCP   = "`rdma/tcp`, loopback"
	overHosts = "`rdma/tcp`, TLS 1.3, network namespaces"
)

// askings are the rows of the table that compares lookups by READs with lookups by messages, grouped by how many keys are
// looked up at the same time.
var askings = []struct {
	what string
	rows []asking
}{
	{"one by one, 1 thread each", askingsOf("", "")},
	{"one by one, 8 threads each", askingsOf("-8", " --threads 8")},
	{"32 keys together, 1 thread each", askingsOf("-many", " --batch 32")},
	{"256 keys together, 1 thread each", askingsOf("-256", " --batch 256")},
}

// An asking measures lookups over one network, once by READs and once by messages.
type asking struct {
	label               string
	byReads, byMessages experiment
}

// askingsOf returns an asking for each network. suffix makes the experiments' names unique; more has further flags.
func askingsOf(suffix, more string) (rows []asking) {
	for _, n := range []struct{ label, transport string }{{overLocal, "local"}, {overSHM, "shm"}, {overTCP, "tcp"}} {
		name := "kv-over-" + n.transport + suffix
		rows = append(rows, asking{n.label, kvOver(name, n.transport, more), kvOver(name+"-asked", n.transport, more+" --by-message")})
	}
	return rows
}

// tatpOver returns TATP on three machines over a transport, with this number of clients each.
func tatpOver(name, transport, threads string) experiment {
	return experiment{name: name, args: "tatp --subscribers 30000 --machines 3 --replicas 3 --transport " + transport + " --threads " + threads + worker + closed}
}

// kvOver returns lookups on three machines over a transport; more has further flags. The table has
// few keys, because loading more over a network takes longer than the measurement.
func kvOver(name, transport, more string) experiment {
	return experiment{name: name, args: "kv --keys 30000 --machines 3 --replicas 3 --transport " + transport + more + worker + closed}
}

// tpccWorkers returns TPC-C on one machine with n workers, n warehouses and n clients.
func tpccWorkers(name, n string) experiment {
	return experiment{name: name, args: "tpcc --warehouses " + n + " --workers " + n + " --threads " + n + closed}
}

// kvVariants are the rows of the table of the hash table's settings. A slot of 128
// bytes has 4 bytes that describe its content, the key, and a value of 108 bytes.
var kvVariants = []variant{
	{"", kv1M},
	{"H = 2", kvVariant("kv-h2", "--neighbourhood 2")},
	{"H = 4", kvVariant("kv-h4", "--neighbourhood 4")},
	{"H = 6", kvVariant("kv-h6", "--neighbourhood 6")},
	{"H = 16", kvVariant("kv-h16", "--neighbourhood 16")},
	{"values outside the table", kvVariant("kv-out", "--inline-bytes 1")},
	{"values of 64 bytes", kvVariant("kv-v64", "--value-bytes 64")},
	{"values of 128 bytes", kvVariant("kv-v128", "--value-bytes 128")},
	{"values of 128 bytes, H = 6", kvVariant("kv-v128-h6", "--value-bytes 128 --neighbourhood 6")},
	{"values of 128 bytes, H = 2", kvVariant("kv-v128-h2", "--value-bytes 128 --neighbourhood 2")},
	{"values of 128 bytes, outside", kvVariant("kv-v128-out", "--value-bytes 128 --inline-bytes 1")},
	{"values of 320 bytes", kvFew("kv-v320", "--value-bytes 320")},
	{"values of 320 bytes, H = 2", kvFew("kv-v320-h2", "--value-bytes 320 --neighbourhood 2")},
	{"values of 320 bytes, outside", kvFew("kv-v320-out", "--value-bytes 320 --inline-bytes 1")},
	{"50 % full", kvVariant("kv-50", "--occupancy 50")},
	{"75 % full", kvVariant("kv-75", "--occupancy 75")},
	{"24 keys together", kvVariant("kv-24", "--batch 24")},
	{"256 keys together", kvVariant("kv-256", "--batch 256")},
	{"5 % updates", kvVariant("kv-u5", "--updates 5")},
	{"20 % updates", kvVariant("kv-u20", "--updates 20")},
	{"50 % updates", kvVariant("kv-u50", "--updates 50")},
	{"Zipf 0.99", kvVariant("kv-zipf", "--zipf 0.99")},
	{"Zipf 0.99, 5 % updates", kvVariant("kv-zipf-u5", "--zipf 0.99 --updates 5")},
	{"Zipf 0.99, 20 % updates", kvVariant("kv-zipf-u20", "--zipf 0.99 --updates 20")},
	{"Zipf 0.99, 50 % updates", kvVariant("kv-zipf-u50", "--zipf 0.99 --updates 50")},
	{"3 machines over `rdma/shm`, 3 replicas", kv3},
	{"the same, 32 keys together", kv3Many},
	{"the same, one by one, 20 % updates", kvFew("kv-shm-3-u20", "--updates 20"+three)},
	{"3 machines over `rdma/shm`, slots of 128 bytes", kvFew("kv-cells", cells)},
	{"the same, H = 2, one READ, then a message (Storm)", kvFew("kv-storm", storm)},
	{"the same, oversubscribed: 45 % full", kvFew("kv-storm-45", storm+" --occupancy 45")},
}

const (
	cells = "--value-bytes 108 --transport shm --machines 3 --replicas 1"
	storm = cells + " --neighbourhood 2 --lookups one-two-sided"
)

func kvVariant(name, args string) experiment {
	return experiment{name: name, args: "kv --keys 1000000 " + args + worker + brief}
}

// kvFew returns a kv experiment with fewer keys, because loading a million takes longer than all else.
func kvFew(name, args string) experiment {
	return experiment{name: name, args: "kv --keys 300000 " + args + worker + brief}
}

// graphs are the rows of the table of the graph store.
var graphs = []variant{
	{"1 machine, lock-free reads only", experiment{name: "tao-1", args: "tao --nodes 300000 --lock-free" + worker + closed}},
	{"3 machines, 3 replicas over `rdma/shm`, lock-free reads only", experiment{name: "tao-shm-3",
		args: "tao --nodes 300000 --lock-free" + three + worker + closed}},
	{"the same, TAO's mix of operations", experiment{name: "tao-shm-3-mix",
		args: "tao --nodes 300000" + three + worker + closed}},
}

// Curves of the open loop.
var curves = []variant{
	{"one machine, one thread", experiment{name: "tatp-open-1", once: true,
		args: "tatp --subscribers 100000 --workers 1 --warm-up 500ms --duration 2s --rate 50000,100000,200000,300000,400000,500000,600000,700000,800000"}},
	{"two machines over rdma/shm, two replicas, a thread each", experiment{name: "tatp-open-2", once: true,
		args: "tatp --subscribers 30000" + two + " --workers 1 --warm-up 500ms --duration 2s --rate 10000,20000,40000,80000,120000,160000,200000"}},
	{"three machines over rdma/shm, three replicas, a thread each", experiment{name: "tatp-open-3", once: true,
		args: "tatp --subscribers 30000 --transport shm --machines 3 --replicas 3 --workers 1 --warm-up 500ms --duration 2s --rate 10000,20000,40000,60000,80000,100000,120000,140000"}},
}

var (
	micro   = experiment{name: "micro", tool: goTest, once: true, args: "-tags gms_pure_go -run ^$ -bench . -benchtime 300ms -count 3 ./bench/micro"}
	compare = experiment{name: "compare", tool: compareScript, once: true, isLarge: true}
	leases  = experiment{name: "lease", args: "lease --duration 20s", isForeign: true, once: true}
	shaped  = experiment{name: "shapes", args: "shapes --rounds 5 --seed 1", isForeign: true, once: true, isLarge: true}
	queried = experiment{name: "tpch", args: "tpch --scale 0.1 --rounds 3 --seed 1", isForeign: true, once: true, isLarge: true}
)

// failures are the kinds of failures, by SIGKILL unless a row says otherwise. With ten machines a
// run takes nine seconds or more, so there are ten of those runs; twenty with clients over MySQL,
// and forty of the others.
var failures = []variant{
	{"a machine that is not the CM", experiment{name: "failure-machine", args: "failure --runs 40", isForeign: true, once: true, isLarge: true}},
	{"the CM", experiment{name: "failure-cm", args: "failure --runs 40 --kill cm", isForeign: true, once: true, isLarge: true}},
	{"a machine that is not the CM, stopped: its lease runs out", experiment{name: "failure-stop", args: "failure --runs 40 --by stop", isForeign: true, once: true, isLarge: true}},
	{"the CM, stopped", experiment{name: "failure-stop-cm", args: "failure --runs 40 --kill cm --by stop", isForeign: true, once: true, isLarge: true}},
	{"a failure domain of two machines of ten", experiment{name: "failure-domain", args: "failure --runs 10 --kill domain --machines 10 --domains 5",
		isForeign: true, once: true, isLarge: true}},
	{"a machine, clients over MySQL", experiment{name: "failure-sql", args: "failure --runs 20 --api sql", isForeign: true, once: true, isLarge: true}},
	{"a machine, aggressive data recovery", experiment{name: "failure-aggressive", args: "failure --runs 40 --pace aggressive", isForeign: true, once: true, isLarge: true}},
}

// suite returns all experiments, each once, in the order of the tables.
func suite() (all []experiment) {
	seen := make(map[string]bool)
	for _, s := range sections {
		for _, e := range s.experiments {
			if !seen[e.name] {
				seen[e.name] = true
				all = append(all, e)
			}
		}
	}
	return all
}
