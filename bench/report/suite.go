package report

// Flags of runs in the closed loop. The brief ones are of tables that compare many
// settings with each other.
const (
	closed = " --warm-up 1s --duration 3s"
	brief  = " --warm-up 300ms --duration 1s"
)

// Experiments that stand in several tables.
var (
	tatp1M   = experiment{name: "tatp-1m", args: "tatp --subscribers 1000000" + closed}
	tatp100K = experiment{name: "tatp-100k", args: "tatp --subscribers 100000" + closed}
	tatp3    = tatpMachines("tatp-shm-3", "--machines 3 --replicas 3")
	tpcc1    = experiment{name: "tpcc-1", args: "tpcc --warehouses 1" + closed}
	tpcc3    = experiment{name: "tpcc-shm-3", args: "tpcc --warehouses 3 --transport shm --machines 3 --replicas 3" + closed}
	kv1M     = experiment{name: "kv-1m", args: "kv --keys 1000000" + closed}
	kv10M    = experiment{name: "kv-10m", args: "kv --keys 10000000" + closed}
	kvMany   = experiment{name: "kv-10m-many", args: "kv --keys 10000000 --batch 24" + closed}
)

// tatpMachines is TATP on machines that share memory.
func tatpMachines(name, machines string) experiment {
	return experiment{name: name, args: "tatp --subscribers 30000 --transport shm " + machines + closed}
}

// A variant is an experiment as a row of a table.
type variant struct {
	label string
	experiment
}

// scalings are the rows of the table of how throughput changes with one thing,
// by what that is.
var scalings = []struct {
	what string
	rows []variant
}{
	{"TATP, data", []variant{
		{"100,000 subscribers, 1 M rows", tatp100K},
		{"1,000,000 subscribers, 10 M rows", tatp1M},
		{"10,000,000 subscribers, 100 M rows", experiment{name: "large-tatp", args: "tatp --subscribers 10000000" + closed, once: true, isLarge: true}},
	}},
	{"key-value, data", []variant{
		{"0.9 M keys", kv1M},
		{"7.5 M keys", kv10M},
		{"121 M keys", experiment{name: "large-kv", args: "kv --keys 100000000" + closed, once: true, isLarge: true}},
	}},
	{"TATP, workers of a machine", []variant{
		{"1", tatp100K},
		{"2", experiment{name: "tatp-100k-2", args: "tatp --subscribers 100000 --threads 2" + closed}},
	}},
	{"key-value, workers of a machine", []variant{
		{"1", kv1M},
		{"2", experiment{name: "kv-1m-2", args: "kv --keys 1000000 --threads 2" + closed}},
	}},
	{"TATP, machines over `rdma/shm`, a thread each", []variant{
		{"1", tatpMachines("tatp-shm-1", "--machines 1 --replicas 1")},
		{"2, 2 replicas", tatpMachines("tatp-shm-2", "--machines 2 --replicas 2")},
		{"3, 3 replicas", tatp3},
		{"5, 3 replicas", tatpMachines("tatp-shm-5", "--machines 5 --replicas 3")},
	}},
}

// kvVariants are the rows of the table of the hash table's settings.
var kvVariants = []variant{
	{"", kv1M},
	{"H = 4", kvVariant("kv-h4", "--neighbourhood 4")},
	{"H = 16", kvVariant("kv-h16", "--neighbourhood 16")},
	{"50 % full", kvVariant("kv-50", "--occupancy 50")},
	{"75 % full", kvVariant("kv-75", "--occupancy 75")},
	{"values of 64 bytes", kvVariant("kv-v64", "--value-bytes 64")},
	{"values of 128 bytes", kvVariant("kv-v128", "--value-bytes 128")},
	{"values of 320 bytes", kvVariant("kv-v320", "--value-bytes 320")},
	{"values of 320 bytes, H = 4", kvVariant("kv-v320-h4", "--value-bytes 320 --neighbourhood 4")},
	{"24 keys together", kvVariant("kv-many", "--batch 24")},
	{"Zipf 0.99", kvVariant("kv-zipf", "--zipf 0.99")},
	{"5 % updates", kvVariant("kv-u5", "--updates 5")},
	{"20 % updates", kvVariant("kv-u20", "--updates 20")},
	{"50 % updates", kvVariant("kv-u50", "--updates 50")},
	{"Zipf 0.99, 20 % updates", kvVariant("kv-zipf-u20", "--zipf 0.99 --updates 20")},
	{"3 machines in a process", kvVariant("kv-m3", "--machines 3 --replicas 1")},
	{"the same, one READ, then a message (Storm)", kvVariant("kv-m3-storm", "--machines 3 --replicas 1 --one-two-sided")},
	{"3 machines, 3 replicas, 20 % updates", kvVariant("kv-m3-u20", "--machines 3 --replicas 3 --updates 20")},
}

func kvVariant(name, args string) experiment {
	return experiment{name: name, args: "kv --keys 1000000 " + args + brief}
}

// graphs are the rows of the table of the graph store.
var graphs = []variant{
	{"1 machine, lock-free reads only", experiment{name: "tao-1", args: "tao --nodes 300000 --lock-free" + closed}},
	{"3 machines, 3 replicas over `rdma/shm`, lock-free reads only", experiment{name: "tao-shm-3",
		args: "tao --nodes 300000 --lock-free --transport shm --machines 3 --replicas 3" + closed}},
	{"the same, TAO's mix of operations", experiment{name: "tao-shm-3-mix",
		args: "tao --nodes 300000 --transport shm --machines 3 --replicas 3" + closed}},
}

// Curves of the open loop.
var curves = []variant{
	{"one machine, one thread", experiment{name: "tatp-open-1", once: true,
		args: "tatp --subscribers 100000 --warm-up 500ms --duration 2s --rate 50000,100000,200000,300000,400000,500000,600000,700000,800000"}},
	{"three machines over rdma/shm, three replicas, a thread each", experiment{name: "tatp-open-3", once: true,
		args: "tatp --subscribers 30000 --transport shm --machines 3 --replicas 3 --warm-up 500ms --duration 2s --rate 10000,20000,40000,60000,80000,100000,120000,140000"}},
}

var (
	micro   = experiment{name: "micro", tool: goTest, once: true, args: "-tags gms_pure_go -run ^$ -bench . -benchtime 300ms -count 3 ./bench/micro"}
	compare = experiment{name: "compare", tool: compareScript, once: true, isLarge: true}
	leases  = experiment{name: "lease", args: "lease --duration 20s", isForeign: true, once: true}
)

// failures are what is killed. Each run takes six to ten seconds.
var failures = []variant{
	{"a machine that is not the CM", experiment{name: "failure-machine", args: "failure --runs 40", isForeign: true, once: true, isLarge: true}},
	{"the CM", experiment{name: "failure-cm", args: "failure --runs 40 --kill cm", isForeign: true, once: true, isLarge: true}},
	{"a failure domain of two machines of ten", experiment{name: "failure-domain", args: "failure --runs 10 --kill domain --machines 10 --domains 5",
		isForeign: true, once: true, isLarge: true}},
	{"a machine, aggressive data recovery", experiment{name: "failure-aggressive", args: "failure --runs 10 --pace aggressive", isForeign: true, once: true, isLarge: true}},
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
