package farmsql

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/sql/wire"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A DB is an open database. Close it when done.
type DB struct {
	cfg       Config
	instance  *instance
	operator  *Operator
	sequences *catalog.Sequences
	catalogs  []*catalog.Catalog // indexed by machine
	engines   []*sql.Engine      // indexed by machine
	wire      *wire.Server
	sql       *stdsql.DB

	closing sync.Once
	closed  error // the result of Close
}

// Open opens the database in cfg.Folder, creating it if there is none. If a process was killed,
// it recovers the state that was left. Open refuses a folder, and leaves it unchanged, if
// another process has it open, or if its machines do not match cfg. It also refuses a folder
// that was written in a newer format or under an earlier boot.
func Open(cfg Config) (*DB, error) { return OpenContext(context.Background(), cfg) }

// OpenContext is like Open, but gives up when ctx ends: a machine of a cluster waits until there
// are enough others.
func OpenContext(ctx context.Context, cfg Config) (*DB, error) {
	cfg.replicasGiven = cfg.Replicas
	cfg, err := cfg.identify(ctx)
	if err != nil {
		return nil, err
	}
	if cfg, err = cfg.withStored(); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	o := newOperator(cfg)
	in, err := cfg.openInstance(ctx, o)
	if err != nil {
		return nil, withPrefix("", err)
	}
	db := &DB{cfg: cfg, instance: in, operator: o}
	err = db.start(ctx)
	if in.uncheckedError() != nil {
		err = db.checkTrusted(ctx, err)
	} else if !db.hasOtherProcesses() { // then no transaction runs, and a conflict means torn memory
		err = tornBy(err)
	}
	if err != nil {
		return nil, withPrefix("", errors.Join(err, db.Close()))
	}
	o.isOpen.Store(true)
	return db, nil
}

// checkTrusted checks a folder that is opened with Config.Trust, and returns farm.ErrTorn if it is
// damaged. started is the result of db.start.
func (db *DB) checkTrusted(ctx context.Context, started error) error {
	reason, fault := db.instance.uncheckedError(), started
	if started == nil {
		r, err := db.Check(ctx) // Check marks a sound folder as checked
		if err != nil {
			return err
		}
		if r.OK() {
			db.cfg.Logger.Warn("trusted, checked and found sound", "folder", db.cfg.Folder, "objects", r.Objects, "reason", reason)
			return nil
		}
		shown := r.Problems[:min(len(r.Problems), problemsShown)]
		fault = fmt.Errorf("%s: %s", count(len(r.Problems), "problem"), strings.Join(shown, "; "))
	}
	return fmt.Errorf("%w: it was to be trusted, and cannot be: %w; %w", farm.ErrTorn, tornBy(fault), reason)
}

// problemsShown bounds how many problems an error names.
const problemsShown = 5

// tornBy explains a conflict that occurs although no transaction runs.
func tornBy(err error) error {
	if errors.Is(err, outcome.ErrConflict) {
		return fmt.Errorf("objects of different moments, or a lock that no transaction has: %w", err)
	}
	return err
}

// start opens the catalogs and engines of all machines, and then the server on top of them.
func (db *DB) start(ctx context.Context) error {
	db.sequences = catalog.NewSequences(db.instance.machine(0))
	// All machines must register their handlers before one of them ships a function.
	servers := make([]*hash.Server, db.instance.machines())
	for i := range servers {
		servers[i] = hash.Serve(db.instance.machine(i))
	}
	var engines []wire.Engine
	memory := store.NewMemory(db.instance.machine(0).Clock(), int64(db.cfg.StatementMemory), int64(ComputerMemory()))
	accounts := account.New(db.instance.machine(0).Clock(), db.hasOtherProcesses())
	for i := range db.instance.machines() {
		m := db.instance.machine(i)
		var c *catalog.Catalog
		err := db.step(ctx, stepCatalog, func() (err error) {
			c, err = sql.OpenCatalog(ctx, m, db.instance.root(), catalog.Config{Sequences: db.sequences, Lives: db.instance.members[i].Lives(), Hashes: servers[i]})
			return err
		})
		if err != nil {
			return err
		}
		db.catalogs = append(db.catalogs, c)
		var e *sql.Engine
		err = db.step(ctx, stepEngine, func() (err error) {
			e, err = sql.NewEngine(m, c, sql.Options{Accounts: accounts, Files: db.cfg.SecureFilePriv, Memory: memory})
			return err
		})
		if err != nil {
			return err
		}
		db.engines = append(db.engines, e)
		engines = append(engines, wire.OverSQL(e))
	}
	db.watchLives()
	if !db.hasOtherProcesses() { // if there are other processes, they may be changing rows
		if _, err := db.engines[0].Recount(ctx); err != nil {
			return err
		}
	}
	cfg := db.cfg.wire()
	cfg.Available = db.available()
	server, err := wire.New(cfg, engines...)
	if err != nil {
		return err
	}
	db.wire = server
	c, err := db.connector("")
	if err != nil {
		return err
	}
	db.sql = stdsql.OpenDB(c)
	return nil
}

// A startStep is a step of opening a database.
type startStep string

const (
	stepCatalog startStep = "open the catalog"
	stepEngine  startStep = "load users"
)

// step runs a step of opening until it succeeds: see persist.
func (db *DB) step(ctx context.Context, s startStep, do func() error) error {
	db.operator.failed(nil) // forget the errors of the step before
	if db.cfg.starting != nil {
		db.cfg.starting(db, s)
	}
	return db.persist(ctx, do)
}

// SQL returns the database for database/sql. It belongs to db and closes with
// it. Its connections stay within the process and have all rights.
func (db *DB) SQL() *stdsql.DB { return db.sql }

// Machine returns machine i, counted from 0, for native transactions. The
// packages index/btree and index/hash build on it.
func (db *DB) Machine(i int) *txn.Machine { return db.instance.machine(i) }

// Machines returns how many machines there are.
func (db *DB) Machines() int { return db.instance.machines() }

// Serve serves MySQL clients that connect to l, until ctx ends or db closes. Then it lets running
// statements finish, disconnects the clients and returns nil. It may be called for several listeners
// at a time.
func (db *DB) Serve(ctx context.Context, l net.Listener) error {
	err := db.wire.Serve(ctx, l)
	if errors.Is(err, wire.ErrClosed) {
		return nil
	}
	return err
}

// Stats returns counts of the SQL connections' work since Open.
func (db *DB) Stats() wire.Stats { return db.wire.Stats() }

// Close lets running statements finish, ends all connections, and closes the folder, which then has
// all committed transactions. Close may be called more than once.
func (db *DB) Close() error {
	db.closing.Do(func() { db.closed = db.close() })
	return db.closed
}

// endStatements lets running statements finish, and ends all connections. It returns the errors of
// closing the connections, and, if a statement still runs, the reason for that.
func (db *DB) endStatements() (errs []error, running error) {
	defer db.doNotWaitForever()()
	if db.sql != nil {
		errs = append(errs, db.sql.Close())
	}
	if db.wire != nil {
		running = db.wire.Close()
	}
	return errs, running
}

// close is Close without the check for an earlier call. If a statement does not end, everything that it may
// use stays open.
func (db *DB) close() error {
	ctx := context.Background()
	db.Hurry()
	errs, err := db.endStatements()
	if err != nil {
		// A statement still runs: unmapping its memory would crash it.
		return withPrefix("", errors.Join(append(errs, err)...))
	}
	db.leave()
	defer db.doNotWaitForever()()
	for _, e := range db.engines {
		errs = append(errs, e.Close(ctx))
	}
	if db.wire != nil && !db.hasOtherProcesses() { // if there are other processes, they go on counting rows
		errs = append(errs, db.engines[0].Counted(ctx))
	}
	for _, c := range db.catalogs {
		errs = append(errs, c.Close(ctx))
	}
	if db.sequences != nil {
		errs = append(errs, db.sequences.Close(ctx))
	}
	errs = append(db.unfinished(errs), db.operator.end(), db.instance.Close())
	if err := errors.Join(errs...); err != nil {
		return withPrefix("", err)
	}
	return nil
}
