package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver for TargetConfig.DSN

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// An API is the way in which clients reach the database.
type API string

const (
	// Native clients run transactions on objects and indexes, in this process.
	Native API = "native"
	// SQL clients use database/sql. With a DSN they reach any MySQL server or PostgreSQL. Without
	// one they reach farmsql in their own process, through an in-process pipe. In a Cluster they
	// connect to the port of this host at which their machine serves MySQL.
	SQL API = "sql"
)

// Transports between the machines of a target.
const (
	TransportLocal = "local" // rdma/local, within one process
	TransportSHM   = "shm"   // rdma/shm, between processes of one host: a Cluster's
	TransportTCP   = "tcp"   // rdma/tcp over the loopback interface, without TLS, between those
	TransportHosts = "hosts" // rdma/tcp with TLS between those, each in a network namespace of its own
)

// A TargetConfig describes the database that a workload runs on. The zero value of a field
// means its default.
type TargetConfig struct {
	// API is Native by default.
	API API
	// DSN is the data source name of a MySQL server, in the form of
	// github.com/go-sql-driver/mysql, or of PostgreSQL, postgres://user@host:port/database.
	DSN string
	// ServerProcesses are the processes of the server at the DSN, if they are on this
	// computer: their processor time, and that of their descendants, is measured.
	ServerProcesses []int
	// The fields below are for farmsql without a DSN.

	Machines, Replicas int // 1 of each by default
	// Workers is the number of workers of each machine. The default is farmsql's own.
	Workers   int
	Transport string // TransportLocal by default
	// DataFolder, if not empty, is where the machines of this process keep their memory, in
	// files of a new folder that Close removes; otherwise they use ordinary memory. Saves, if
	// not empty, is where Close saves that memory, in a new folder that it also removes.
	DataFolder, Saves string
	// RegionSize and LogSize are as in farmsql.Config.
	RegionSize, LogSize farmsql.Size
	// Domains is the number of failure domains over which the machines of a Cluster are
	// spread; by default each machine is one.
	Domains int
	// LeaseTime and RecoveryPace are as in farmsql.Config, for the machines of a Cluster.
	LeaseTime    time.Duration
	RecoveryPace farmsql.Pace
}

// A Target is an open database that a workload runs on. It is empty at first, unless it is
// behind a DSN. Either all its machines are in this process, or one machine is and each
// other machine is in a process of its own (Cluster). Then all processes run the workload,
// and peers.go divides the work.
type Target struct {
	cfg TargetConfig
	dbs []*farmsql.DB
	// machines are all machines; those in other processes have no db.
	machines []machine
	sql      *sql.DB
	dialect  *dialect   // the dialect of the server at a DSN
	server   string     // the name and version of the server at a DSN
	served   chan error // receives the result of serving MySQL; nil if nothing is served
	places   []region.Addr
	peers    *peers   // nil if all machines are in this process
	clients  int      // number of clients of all runs so far
	folders  []string // folders that Close removes
	count    counter
}

// A machine is one machine of a database.
type machine struct {
	db *farmsql.DB
	i  int // index of the machine in db
}

// ErrTarget is wrapped by all errors about a TargetConfig.
var ErrTarget = errors.New("bench: no such target")

// validate sets the defaults, and returns an ErrTarget if there is no such target.
func (c *TargetConfig) validate() error {
	setDefault(&c.API, Native)
	setDefault(&c.Transport, TransportLocal)
	setDefault(&c.Machines, 1)
	setDefault(&c.Replicas, 1)
	switch {
	case c.API != Native && c.API != SQL:
		return fmt.Errorf("%w: API %q", ErrTarget, c.API)
	case c.DSN != "" && c.API != SQL:
		return fmt.Errorf("%w: a DSN (--dsn) is for the API %q", ErrTarget, SQL)
	case c.DSN == "" && len(c.ServerProcesses) > 0:
		return fmt.Errorf("%w: processes of a server (--server-pid) need a DSN (--dsn)", ErrTarget)
	case c.DSN != "" && (c.Machines != 1 || c.Replicas != 1 || c.Transport != TransportLocal || c.Workers != 0):
		return fmt.Errorf("%w: machines, replicas, workers and transport are those of the server at the DSN (--dsn)", ErrTarget)
	case c.DataFolder != "" && (c.DSN != "" || c.Transport != TransportLocal):
		return fmt.Errorf("%w: a data folder (--data) is for machines of farmsql in one process", ErrTarget)
	case c.Saves != "" && c.DataFolder == "":
		return fmt.Errorf("%w: saves (--saves) need a data folder (--data)", ErrTarget)
	case c.Transport != TransportLocal && !c.HasProcesses():
		return fmt.Errorf("%w: transport %q", ErrTarget, c.Transport)
	case c.Domains < 0 || c.Domains > c.Machines || (c.Domains > 0 && c.Replicas > c.Domains):
		return fmt.Errorf("%w: %d failure domains of %d machines, %d replicas", ErrTarget, c.Domains, c.Machines, c.Replicas)
	case c.Transport == TransportHosts && c.Machines > hostsMax:
		return fmt.Errorf("%w: %d machines in network namespaces, at most %d", ErrTarget, c.Machines, hostsMax)
	case c.Machines < 1 || c.Replicas < 1 || c.Replicas > c.Machines:
		return fmt.Errorf("%w: %d machines and %d replicas", ErrTarget, c.Machines, c.Replicas)
	}
	return nil
}

// HasProcesses reports whether the machines are those of a Cluster, each a process.
func (c *TargetConfig) HasProcesses() bool {
	return c.Transport == TransportSHM || c.Transport == TransportTCP || c.Transport == TransportHosts
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Open opens a target in this process or behind a DSN.
func Open(ctx context.Context, cfg TargetConfig) (*Target, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Transport != TransportLocal {
		return nil, fmt.Errorf("%w: machines over %s are processes: OpenCluster", ErrTarget, cfg.Transport)
	}
	t := &Target{cfg: cfg}
	var err error
	if cfg.DSN != "" {
		err = t.connect(ctx, cfg.DSN)
	} else {
		err = t.openLocal(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// connect connects clients of SQL to the server of a DSN.
func (t *Target) connect(ctx context.Context, dsn string) (err error) {
	if t.dialect, err = dialectOf(dsn); err != nil {
		return err
	}
	if _, err := processorTime(t.cfg.ServerProcesses); err != nil { // one of the processes does not exist
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if t.sql, err = t.dialect.open(dsn); err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if err := t.sql.QueryRowContext(ctx, t.dialect.version).Scan(&t.server); err != nil {
		return fmt.Errorf("bench: the server at the DSN: %w", err)
	}
	return nil
}

// settle makes a server do its background work (VACUUM ANALYZE) now, so that this work does not
// disturb the measurement.
func (t *Target) settle(ctx context.Context) error {
	if t.dialect == nil || t.dialect.settle == "" {
		return nil
	}
	if _, err := t.sql.ExecContext(ctx, t.dialect.settle); err != nil {
		return fmt.Errorf("bench: %s: %w", t.dialect.settle, err)
	}
	return nil
}

// serve serves MySQL at an address, as farmsql serve does, for the clients of this process.
func (t *Target) serve(ctx context.Context, db *farmsql.DB, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	t.served = make(chan error, 1)
	go func() { t.served <- db.Serve(context.WithoutCancel(ctx), l) }() // until db closes
	return t.connect(ctx, fmt.Sprintf("root@tcp(%s)/", l.Addr()))
}

// config returns the configuration that all databases of the target share.
func (t *Target) config() farmsql.Config {
	return farmsql.Config{
		Machines: t.cfg.Machines, Replicas: t.cfg.Replicas, Workers: t.cfg.Workers,
		RegionSize: t.cfg.RegionSize, LogSize: t.cfg.LogSize,
	}
}

func (t *Target) openLocal(ctx context.Context) error {
	cfg := t.config()
	cfg.Volatile = t.cfg.DataFolder == ""
	var err error
	if cfg.Folder, err = t.folderIn(t.cfg.DataFolder); err != nil {
		return err
	}
	if cfg.Saves, err = t.folderIn(t.cfg.Saves); err != nil {
		return err
	}
	db, err := farmsql.OpenContext(ctx, cfg)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	t.take(db)
	return nil
}

// folderIn creates a new folder in parent, for Close to remove; it does nothing if parent is
// empty.
func (t *Target) folderIn(parent string) (string, error) {
	if parent == "" {
		return "", nil
	}
	folder, err := os.MkdirTemp(parent, folderPattern)
	if err != nil {
		return "", fmt.Errorf("bench: %w", err)
	}
	t.folders = append(t.folders, folder)
	return folder, nil
}

// folderPattern begins the names of benchmarks' folders.
const folderPattern = "farmsql-bench-"

// take takes over an open database and its machines.
func (t *Target) take(db *farmsql.DB) {
	t.dbs = append(t.dbs, db)
	for i := range db.Machines() {
		t.machines = append(t.machines, machine{db, i})
	}
	if t.cfg.API == SQL {
		t.sql = db.SQL()
	}
}

// Close closes the target.
func (t *Target) Close() error {
	var errs []error
	if t.sql != nil {
		errs = append(errs, t.sql.Close())
	}
	for _, db := range t.dbs {
		errs = append(errs, db.Close())
	}
	if t.served != nil {
		errs = append(errs, <-t.served)
	}
	for _, folder := range t.folders {
		errs = append(errs, os.RemoveAll(folder))
	}
	return errors.Join(append(errs, t.count.close())...)
}

// API returns the way in which clients reach the database.
func (t *Target) API() API { return t.cfg.API }

// SQL returns the database for clients of SQL, or nil for native ones. It distributes the clients
// over the machines in this process.
func (t *Target) SQL() *sql.DB { return t.sql }

// Machines returns how many machines there are, in all processes; 0 behind a DSN.
func (t *Target) Machines() int { return len(t.machines) }

// Has reports whether machine i, from 0, is in this process.
func (t *Target) Has(i int) bool { return t.machines[i].db != nil }

// Here returns the machines that are in this process.
func (t *Target) Here() []int {
	var here []int
	for i := range t.machines {
		if t.Has(i) {
			here = append(here, i)
		}
	}
	return here
}

// Machine returns the transactions of machine i, which is in this process.
func (t *Target) Machine(i int) *txn.Machine { return t.machines[i].db.Machine(t.machines[i].i) }

// Places returns the address of an object on each machine: hints for spreading data over all
// machines.
func (t *Target) Places(ctx context.Context) ([]region.Addr, error) {
	if t.places != nil {
		return t.places, nil
	}
	places := make([]region.Addr, t.Machines())
	for i := range places {
		var err error
		if places[i], err = t.place(ctx, i); err != nil {
			return nil, err
		}
	}
	t.places = places
	return places, nil
}

// place allocates an object on machine i, and returns its address.
func (t *Target) place(ctx context.Context, i int) (place region.Addr, err error) {
	err = t.Machine(i).Run(ctx, func(tx *txn.Tx) error {
		p, _, err := tx.Alloc(8, 0)
		place = p.Addr
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("bench: a place at machine %d: %w", i, err)
	}
	return place, nil
}
