package doctor

// A Plan is what serve would do on the host.
type Plan struct {
	Data   string // the data folder, which need not exist
	Saves  string // the folder for saves, or ""
	Listen string // the address for clients

	// IsCluster says that the process is one machine of a cluster. The machines are on this host and meet
	// in Shared, or with IsTCP on several hosts: this one listens for the others at Advertise, whose host may
	// be empty if it is not known yet, and keeps in Identity who it is ("" if it does not).
	IsCluster bool
	Shared    string
	IsTCP     bool
	Advertise string
	Identity  string
	IsVerbs   bool // the machines reach each other with RDMA cards; this one uses Port of Device, if these are not zero
	Device    string
	Port      int
	Issuer    string // the address of the machine that admits this one; empty if that is not to join

	// Machines is the number of machines in this process, Peers that of the instance.
	Machines, Peers int
	Workers         int   // of each machine
	LogBytes        int64 // size of each log
	Exists          bool  // the data folder has a database

	// Files is how many open files serve needs for all clients, FilesLeast for one.
	Files, FilesLeast uint64
	// HeapLimit is serve's limit of its heap (GOMEMLIMIT), given the memory that it may use and the
	// part of it that logs and regions take.
	HeapLimit func(memory, mapped int64) int64
}

// logs returns the size of the logs of some machines: each has one for each worker of all machines.
func (p Plan) logs(machines int) int64 {
	return int64(machines) * int64(p.Peers) * int64(p.Workers) * p.LogBytes
}

// processes returns the number of processes on this host: all machines of a cluster are here, unless they
// reach each other over TCP.
func (p Plan) processes() int {
	if p.IsCluster && !p.IsTCP {
		return p.Peers
	}
	return 1
}

// machinesHere returns the number of machines on this host.
func (p Plan) machinesHere() int { return p.Machines * p.processes() }
