package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	_ "github.com/go-sql-driver/mysql" // for TargetConfig.DSN
)

// An API is how clients reach the database.
type API string

const (
	// Native is transactions on objects and indexes, in this process.
	Native API = "native"
	// SQL is database/sql: with a DSN any MySQL server, without one the database
	// in this process.
	SQL API = "sql"
)

// Transports between the machines of a target in this process.
const (
	TransportLocal = "local" // rdma/local
	TransportSHM   = "shm"   // rdma/shm, by which processes of one host reach each other
)

// A TargetConfig says what is measured. The zero value of a field is its default.
type TargetConfig struct {
	// API is Native by default.
	API API
	// DSN is the data source name of a MySQL server, in the form of
	// github.com/go-sql-driver/mysql. The fields after it are for a database in
	// this process.
	DSN string

	Machines, Replicas int // 1
	// Workers of each machine; by default farmsql's.
	Workers   int
	Transport string // TransportLocal
	// RegionSize and LogSize are farmsql.Config's.
	RegionSize, LogSize farmsql.Size
}

// A Target is an open database that a workload runs on, empty at first unless it
// is behind a DSN.
type Target struct {
	cfg TargetConfig
	dbs []*farmsql.DB
	// machines are all there are, whichever database they belong to.
	machines []machine
	sql      *sql.DB
	server   string // of a DSN
	remove   []string
}

// A machine is one of those of a database.
type machine struct {
	db *farmsql.DB
	i  int
}

// ErrTarget is what every complaint about a TargetConfig is.
var ErrTarget = errors.New("bench: no such target")

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
	case c.DSN != "" && (c.Machines != 1 || c.Replicas != 1 || c.Transport != TransportLocal || c.Workers != 0):
		return fmt.Errorf("%w: machines, replicas, workers and transport are those of the server at the DSN (--dsn)", ErrTarget)
	case c.Transport != TransportLocal && c.Transport != TransportSHM:
		return fmt.Errorf("%w: transport %q", ErrTarget, c.Transport)
	case c.Machines < 1 || c.Replicas < 1 || c.Replicas > c.Machines:
		return fmt.Errorf("%w: %d machines and %d replicas", ErrTarget, c.Machines, c.Replicas)
	}
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Open opens a target.
func Open(ctx context.Context, cfg TargetConfig) (*Target, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	t := &Target{cfg: cfg}
	open := t.openLocal
	switch {
	case cfg.DSN != "":
		open = t.openServer
	case cfg.Transport == TransportSHM:
		open = t.openShared
	}
	if err := open(ctx); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (t *Target) openServer(ctx context.Context) (err error) {
	if t.sql, err = sql.Open("mysql", t.cfg.DSN); err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	if err := t.sql.QueryRowContext(ctx, "SELECT VERSION()").Scan(&t.server); err != nil {
		return fmt.Errorf("bench: the server at the DSN: %w", err)
	}
	return nil
}

// config is what all databases of the target have in common.
func (t *Target) config() farmsql.Config {
	return farmsql.Config{
		Machines: t.cfg.Machines, Replicas: t.cfg.Replicas, Workers: t.cfg.Workers,
		RegionSize: t.cfg.RegionSize, LogSize: t.cfg.LogSize,
	}
}

func (t *Target) openLocal(ctx context.Context) error {
	cfg := t.config()
	cfg.Volatile = true
	db, err := farmsql.OpenContext(ctx, cfg)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	t.take(db)
	return nil
}

// take takes an open database and its machines.
func (t *Target) take(db *farmsql.DB) {
	t.dbs = append(t.dbs, db)
	for i := range db.Machines() {
		t.machines = append(t.machines, machine{db, i})
	}
	if t.cfg.API == SQL && t.sql == nil {
		t.sql = db.SQL()
	}
}

// memoryFolder is where machines keep what they share.
const memoryFolder = "/dev/shm"

// openShared opens machines that could be processes of their own, and here are
// members of a cluster in one process.
func (t *Target) openShared(ctx context.Context) error {
	folder, err := os.MkdirTemp(memoryFolder, "farmsql-bench-")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	t.remove = append(t.remove, folder)
	cfg := t.config()
	cfg.Machines, cfg.Folder, cfg.SharedFolder = 0, folder, filepath.Join(folder, "shared")
	cfg.Cluster = "file://" + filepath.Join(folder, "configuration")
	// All at a time: the first cannot have replicas before others are there.
	dbs, errs := make([]*farmsql.DB, t.cfg.Machines), make([]error, t.cfg.Machines)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var opening sync.WaitGroup
	for i := range dbs {
		cfg := cfg
		cfg.MachineID = i
		opening.Go(func() {
			if dbs[i], errs[i] = farmsql.OpenContext(ctx, cfg); errs[i] != nil {
				cancel()
			}
		})
	}
	opening.Wait()
	for _, db := range dbs {
		if db != nil {
			t.take(db)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// Close closes what has been opened, and removes it.
func (t *Target) Close() error {
	var errs []error
	if t.cfg.DSN != "" && t.sql != nil {
		errs = append(errs, t.sql.Close())
	}
	for _, db := range t.dbs {
		errs = append(errs, db.Close())
	}
	for _, f := range t.remove {
		errs = append(errs, os.RemoveAll(f))
	}
	return errors.Join(errs...)
}

// API says how clients are to reach the database.
func (t *Target) API() API { return t.cfg.API }

// SQL returns the database for clients of SQL, or nil for native ones. Machines in
// this process share the clients out among themselves.
func (t *Target) SQL() *sql.DB { return t.sql }

// Machines returns how many machines there are in this process.
func (t *Target) Machines() int { return len(t.machines) }

// Machine returns the transactions of machine i, from 0.
func (t *Target) Machine(i int) *txn.Machine { return t.machines[i].db.Machine(t.machines[i].i) }

// Places allocates an object on each machine and returns their addresses: hints by
// which data are spread over all machines.
func (t *Target) Places(ctx context.Context) ([]region.Addr, error) {
	places := make([]region.Addr, t.Machines())
	for i := range places {
		err := t.Machine(i).Run(ctx, func(tx *txn.Tx) error {
			p, _, err := tx.Alloc(8, 0)
			places[i] = p.Addr
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("bench: a place at machine %d: %w", i, err)
		}
	}
	return places, nil
}

// Hash creates a hash table, its shards dealt out to all machines, or finds the
// one of that name, and returns each machine's handle.
func (t *Target) Hash(ctx context.Context, name string, cfg hash.Config, places []region.Addr) ([]*hash.Table, error) {
	cfg.Places = places
	var tables []*hash.Table
	for _, m := range t.machines {
		tb, err := m.db.Hash(ctx, m.i, name, cfg)
		if err != nil {
			return nil, fmt.Errorf("bench: table %s: %w", name, err)
		}
		tables = append(tables, tb)
	}
	return tables, nil
}
