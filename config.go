package farmsql

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/recovery/data"
	"github.com/farmsql/farmsql/sql/wire"
)

// Config holds a database's settings. The zero value of a field means its
// default; only Folder has none.
type Config struct {
	// Folder is the data folder, created if need be. Each machine has a
	// subfolder for its memory. The package's documentation says what survives
	// there.
	Folder string

	// Saves, if not empty, is a folder on storage that survives a power failure. Close saves
	// everything there. If the data folder is gone, as a tmpfs is after a reboot, Open restores it
	// from there. A machine of Cluster saves and restores only its own memory.
	Saves string

	// Trust opens a folder that was in use when the computer went down, or that is a copy of such
	// a folder; without Trust, Open refuses these. Trust is safe if the computer was shut down
	// normally and the folder is on a disk. Open first checks the memory, and refuses the folder
	// if it is torn (farm.ErrTorn); a machine of Cluster can check only its own memory.
	Trust bool

	// Volatile keeps everything in ordinary memory instead of a folder: it is
	// gone when the database closes. For tests.
	Volatile bool

	// Machines is how many FaRM machines run in this process. 1 by default.
	//
	// This setting and the four after it are fixed when the folder is created. From then on the
	// default of each is the folder's value, and Open refuses another value.
	Machines int

	// Replicas is how many machines hold each region: one primary and f
	// backups. 1 by default; at most Machines. In a cluster it counts only for the first machine, which
	// begins the instance: afterwards Operator.Resize changes it, and another value is ignored.
	Replicas int

	// Workers is how many worker threads each machine runs. By default there is one for each
	// processor (GOMAXPROCS), so that goroutines on different processors share no worker.
	Workers int

	// RegionSize is the unit of placement and replication: a power of two from
	// 1 MiB to 2 GiB, the default. Space is taken as it fills.
	RegionSize Size

	// LogSize is the size of one transaction log; there is one for each pair
	// of workers that talk. A transaction that writes more than three quarters
	// of it takes memory beside the logs while it commits. A machine has Machines x Workers of them.
	// By default they take at most 1 GiB together and 32 MiB each, but at least 2 MiB each. With
	// Cluster the number of machines is not known; Replicas stands for it.
	LogSize Size

	// Cluster, if not empty, makes this process one machine of an instance whose machines are
	// processes, each with a Config of its own. Cluster says where they keep the configuration:
	// file://PATH, for machines of one host, or zk://HOST:PORT,HOST:PORT/PATH; all machines must give
	// the same text. Machines is 1 then. The first machine begins the instance, and its Replicas,
	// Workers and sizes become the instance's.
	//
	// With ClusterRaft, machines of several hosts keep the configuration themselves. The first machine
	// gives that, and Advertise; the others give Join. Their folders keep that, so later starts
	// need neither.
	Cluster string
	// Join is the token with which a new machine joins a cluster whose Cluster is ClusterRaft: see Invite, and
	// NewToken. Once the machine has joined it may be left out; if it is given, it must be of the same cluster.
	Join string
	// Invite, if not nil, is called when a cluster with ClusterRaft has been made. With the token as
	// many machines can join as are missing before the cluster begins. The token is secret, and is told
	// only here.
	Invite func(token string, machines int)
	// MachineID is the number of this machine in Cluster, from 0 to 1023. The machine's memory is
	// in the folder machine-ID in Folder.
	MachineID int
	// FailureDomain is a number shared by machines that may fail together: each region has at most
	// one replica in a domain. 0, the default, gives the machine a domain of its own.
	FailureDomain int
	// Transport is how the machines of Cluster reach each other: TransportShm by default. All
	// machines must have the same.
	Transport Transport
	// RDMA says which card the machine uses with TransportVerbs.
	RDMA RDMA
	// SharedFolder is the folder, on a tmpfs, through which the machines of Cluster reach each
	// other with TransportShm. By default it is in /dev/shm and named after Cluster.
	SharedFolder string
	// Advertise is the address, HOST:PORT, at which this machine listens, and at which the
	// other machines reach it. With TransportTCP it listens for connections and for UDP
	// packets, with TransportVerbs for connections over which keys are handed out.
	Advertise string
	// PeerTLS secures connections between machines with TransportTCP or TransportVerbs: its certificate is this
	// machine's, for Advertise's HOST, and RootCAs and ClientCAs hold the authorities that have
	// certified the other machines. Any holder of a certificate from these authorities can read and
	// change all data. It may be nil only if HOST is a loopback address.
	PeerTLS *tls.Config
	// LeaseTime is how long a machine may be silent before the others go on without it. The default
	// depends on how punctually this computer renews leases. All machines should have the same.
	LeaseTime time.Duration

	// UnavailableAfter is how long statements at a machine of Cluster wait for other machines, for
	// instance for a majority, or for a region whose machines are away. Then they fail with
	// wait.ErrUnavailable, MySQL's error 1047. By default ten lease times, and at least 3 s.
	UnavailableAfter time.Duration

	// RecoveryPace is the speed at which a machine of Cluster fills the replicas that replace lost
	// ones: PaceSlow by default.
	RecoveryPace Pace

	// ResultBuffer bounds the size of one statement's result: its rows are held
	// back until its transaction is validated. 64 MiB by default.
	ResultBuffer Size

	// StatementMemory bounds the memory that one statement uses: for rows that it sorts,
	// groups, joins or keeps back, for the read set of its transaction, and for the session's
	// variables. By default it is an eighth of the process's limit (GOMEMLIMIT), or, without
	// a limit, of the computer's memory. All statements together may use half of that limit or
	// memory.
	StatementMemory Size

	// MaxPacket bounds one request of a client (max_allowed_packet). 64 MiB by
	// default.
	MaxPacket Size

	// MaxConnections is how many network clients may be logged in. 1000 by default. One more
	// may log in if its user has the privilege SUPER. Clients that
	// have not logged in yet are limited to the same number, apart from these.
	MaxConnections int

	// SecureFilePriv is the folder in which LOAD_FILE, LOAD DATA INFILE and SELECT INTO
	// OUTFILE may read and write, for users with the FILE privilege. If it is empty, the
	// default, nobody may use them.
	SecureFilePriv string

	// TLS, if set, lets clients switch to TLS; with RequireTLS they must.
	TLS        *tls.Config
	RequireTLS bool

	// Shutdown is called when a client with the privilege SHUTDOWN asks the server to stop
	// (COM_SHUTDOWN, SHUTDOWN). It should make Serve return, but not wait for that. If it is nil,
	// such requests are refused.
	Shutdown func()

	// Logger receives log messages. By default nothing is logged.
	Logger *slog.Logger

	// Opening, if not nil, is called with an Operator as soon as this process holds the folder.
	// If a machine of Cluster has to wait for others, that is long before Open returns. If
	// Opening fails, Open fails. end, if not nil, is called before the folder is released: by
	// Close, or by an Open that fails.
	Opening func(*Operator) (end func() error, err error)

	// identity is the machine's identity in a cluster that keeps the configuration itself;
	// otherwise nil.
	identity *join.Identity
	// replicasGiven is Replicas before anything has taken its place; 0 if it was not given.
	replicasGiven int

	// starting is called at each step of opening, for tests.
	starting func(*DB, startStep)
}

// A Pace is the speed of data recovery (SOSP'15 section 6.4). A region with only one complete
// replica is always recovered at PaceAggressive.
type Pace string

// The paces.
const (
	// PaceSlow fetches 8 KB every 2 ms on average, so that transactions hardly
	// notice: 4 MB a second at each machine.
	PaceSlow Pace = "slow"
	// PaceAggressive fetches 32 KB at a time without a pause.
	PaceAggressive Pace = "aggressive"
)

// recovery returns the pace in the terms of package data: Slow, unless p is PaceAggressive.
func (p Pace) recovery() data.Pace {
	if p == PaceAggressive {
		return data.Aggressive
	}
	return data.Slow
}

// DefaultWorkers returns the default of Config.Workers on this computer.
func DefaultWorkers() int { return min(runtime.GOMAXPROCS(0), farm.WorkersMax) }

// Defaults of Config. DefaultLogSize is the size for a machine with up to 32 logs; see
// Config.LogSize.
const (
	DefaultRegionSize     = 2 * GiB
	DefaultLogSize        = 32 * MiB
	DefaultResultBuffer   = 64 * MiB
	DefaultMaxPacket      = 64 * MiB
	DefaultMaxConnections = 1000
)

// Bounds of Config.
const (
	machinesMax  = 64
	machineIDMax = 1023
	// A machine without a failure domain gets a number above all numbers that can be given.
	failureDomainMax = 1 << 20
	leaseTimeMin     = 5 * time.Millisecond

	regionSizeMin      = MiB
	statementMemoryMin = MiB
	regionSizeMax      = 2 * GiB
	logSizeMin         = 64 * KiB
	logSizeMax         = GiB
	logSizeUnit        = 4 * KiB
)

// withStored sets the layout fields that are zero to the values of the database in the folder, if
// there is one. It fails if that is of another instance, or has another number of machines.
func (c Config) withStored() (Config, error) {
	if err := c.checkFolder(); err != nil {
		return c, err
	}
	if c.Folder == "" || c.Cluster != "" {
		return c, nil // there is no folder, or the cluster's configuration has the layout
	}
	s, exists, err := farm.Stored(c.Folder)
	if err == nil && !exists && c.Saves != "" {
		s, exists, err = farm.Stored(c.Saves)
	}
	if err != nil {
		return c, withPrefix("", err)
	}
	if exists {
		// Check this first: otherwise Validate would complain about the stored number of replicas.
		if c.Machines != 0 && c.Machines != s.Machines {
			return c, fmt.Errorf("farmsql: %w: Machines (--machines) was %d and is now %d", farm.ErrMismatch, s.Machines, c.Machines)
		}
		setDefault(&c.Machines, s.Machines)
		setDefault(&c.Replicas, s.Replicas)
		setDefault(&c.Workers, s.Workers)
		setDefault(&c.RegionSize, Size(s.RegionBytes))
		setDefault(&c.LogSize, Size(s.LogBytes))
	}
	return c, nil
}

// withDefaults returns c with zero fields set to their defaults. Some stay zero, such as LeaseTime: their
// defaults depend on more than the Config.
func (c Config) withDefaults() Config {
	setDefault(&c.Machines, 1)
	setDefault(&c.Replicas, 1)
	if c.Cluster != "" {
		setDefault(&c.Transport, TransportShm)
	}
	setDefault(&c.Workers, DefaultWorkers())
	setDefault(&c.RegionSize, DefaultRegionSize)
	setDefault(&c.LogSize, Size(farm.DefaultLogBytes(max(c.Machines, c.Replicas), c.Workers)))
	setDefault(&c.ResultBuffer, DefaultResultBuffer)
	setDefault(&c.MaxPacket, DefaultMaxPacket)
	setDefault(&c.MaxConnections, DefaultMaxConnections)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first setting that cannot work, naming its field and the
// command line's flag.
func (c Config) Validate() error {
	c = c.provisional().withDefaults()
	switch {
	case c.Folder == "" && !c.Volatile:
		return errors.New("farmsql: Folder (--data) is empty: where shall the data be?")
	case c.Volatile && (c.Folder != "" || c.Saves != ""):
		return errors.New("farmsql: Volatile is set, and so is Folder or Saves")
	case c.SecureFilePriv != "" && !isFolder(c.SecureFilePriv):
		return fmt.Errorf("farmsql: SecureFilePriv (--secure-file-priv) is %q: must be a folder that exists", c.SecureFilePriv)
	case c.Cluster == "" && (c.MachineID != 0 || c.FailureDomain != 0 || c.LeaseTime != 0 || c.UnavailableAfter != 0 || c.RecoveryPace != ""):
		return errors.New("farmsql: MachineID, FailureDomain, LeaseTime, UnavailableAfter or RecoveryPace (--machine-id, --failure-domain, --lease, --unavailable-after, --recovery-pace) is given, and no Cluster (--cluster)")
	case c.Cluster != "" && c.Volatile:
		return errors.New("farmsql: Volatile cannot be combined with Cluster (--cluster)")
	case c.Cluster != "" && c.Machines != 1:
		return fmt.Errorf("farmsql: Machines (--machines) is %d: with Cluster (--cluster) this process is one machine", c.Machines)
	case c.MachineID < 0 || c.MachineID > machineIDMax:
		return fmt.Errorf("farmsql: MachineID (--machine-id) is %d: must be 0 to %d", c.MachineID, machineIDMax)
	case c.FailureDomain < 0 || c.FailureDomain > failureDomainMax:
		return fmt.Errorf("farmsql: FailureDomain (--failure-domain) is %d: must be 1 to %d, or 0 for one of its own", c.FailureDomain, failureDomainMax)
	case c.LeaseTime < 0 || (c.LeaseTime > 0 && c.LeaseTime < leaseTimeMin):
		return fmt.Errorf("farmsql: LeaseTime (--lease) is %v: must be at least %v", c.LeaseTime, leaseTimeMin)
	case c.UnavailableAfter < 0 || (c.UnavailableAfter > 0 && c.UnavailableAfter < c.LeaseTime):
		return fmt.Errorf("farmsql: UnavailableAfter (--unavailable-after) is %v: must be at least the lease time, %v", c.UnavailableAfter, c.LeaseTime)
	case c.RecoveryPace != "" && c.RecoveryPace != PaceSlow && c.RecoveryPace != PaceAggressive:
		return fmt.Errorf("farmsql: RecoveryPace (--recovery-pace) is %q: must be %q or %q", c.RecoveryPace, PaceSlow, PaceAggressive)
	case c.Cluster != "" && (c.Replicas < 1 || c.Replicas > machinesMax):
		return fmt.Errorf("farmsql: Replicas (--replicas) is %d: must be 1 to %d", c.Replicas, machinesMax)
	case c.Machines < 1 || c.Machines > machinesMax:
		return fmt.Errorf("farmsql: Machines (--machines) is %d: must be 1 to %d", c.Machines, machinesMax)
	case c.Cluster == "" && (c.Replicas < 1 || c.Replicas > c.Machines):
		return fmt.Errorf("farmsql: Replicas (--replicas) is %d: must be 1 to the number of machines, %d", c.Replicas, c.Machines)
	case c.Workers < 1 || c.Workers > farm.WorkersMax:
		return fmt.Errorf("farmsql: Workers (--workers) is %d: must be 1 to %d", c.Workers, farm.WorkersMax)
	case c.RegionSize < regionSizeMin || c.RegionSize > regionSizeMax || c.RegionSize&(c.RegionSize-1) != 0:
		return fmt.Errorf("farmsql: RegionSize (--region-size) is %v: must be a power of two from %v to %v", c.RegionSize, regionSizeMin, regionSizeMax)
	case c.LogSize < logSizeMin || c.LogSize > logSizeMax || c.LogSize%logSizeUnit != 0:
		return fmt.Errorf("farmsql: LogSize (--log-size) is %v: must be a multiple of %v from %v to %v", c.LogSize, logSizeUnit, logSizeMin, logSizeMax)
	case c.StatementMemory < 0 || (c.StatementMemory > 0 && c.StatementMemory < statementMemoryMin):
		return fmt.Errorf("farmsql: StatementMemory (--statement-memory) is %v: must be at least %v", c.StatementMemory, statementMemoryMin)
	}
	return errors.Join(c.checkTransport(), c.wire().Validate())
}

func (c Config) farm() farm.Config {
	return farm.Config{
		Folder: c.Folder, Saves: c.Saves, Trust: c.Trust, Machines: c.Machines, Replicas: c.Replicas, Workers: c.Workers,
		RegionBytes: int64(c.RegionSize), LogBytes: int64(c.LogSize), Logger: c.Logger,
	}
}

func (c Config) wire() wire.Config {
	return wire.Config{
		ResultBufferBytes: int64(c.ResultBuffer), MaxPacketBytes: int64(c.MaxPacket),
		MaxConnections: c.MaxConnections, TLS: c.TLS, RequireTLS: c.RequireTLS, Shutdown: c.Shutdown, Logger: c.Logger,
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
