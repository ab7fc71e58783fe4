package doctor

// A Plan is what serve would do on the host.
type Plan struct {
	Data   string // the data folder, which need not exist
	Saves  string // the folder for saves, or ""
	Listen string // the address for clients

	// IsCluster is set if the process is one machine of a cluster. The machines of one host meet in the
	// folder Shared. With IsTCP they are on several hosts: this one listens for the others at
	// Advertise, whose host is empty if it is not known yet. It keeps its identity in the folder
	// Identity, which is "" if it keeps none.
	IsCluster bool
	Shared    string
	IsTCP     bool
	Advertise string
	Identity  string
	IsVerbs   bool // the machines use RDMA cards; this one uses Port of Device, if these are set
	Device    string
	Port      int
	Issuer    string // the address of the machine that admits this one; empty if this one does not join

	// Machines is the number of machines in this process, Peers the number in the instance.
	Machines, Peers int
	Workers         int   // of each machine
	LogBytes        int64 // size of each log
	Exists          bool  // the data folder has a database

	// Files is the number of open files that serve needs for all clients,
	// FilesLeast the number for one client.
	Files, FilesLeast uint64
	// HeapLimit returns the limit that serve sets for its heap (GOMEMLIMIT). memory is the memory
	// that serve may use; mapped is the part of it that logs and regions take.
	HeapLimit func(memory, mapped int64) int64
}

// logs returns the size of the logs of this number of machines. A machine has a log for each worker of each machine.
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
