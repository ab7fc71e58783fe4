package farmsql

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/go-sql-driver/mysql"
)

// DriverName is the name of the driver registered with database/sql.
const DriverName = "farmsql"

// volatileName opens a volatile database.
const volatileName = ":memory:"

func init() { stdsql.Register(DriverName, Driver{}) }

// Driver opens databases for database/sql. The data source name is the data
// folder, with the schema to use and Config's settings as options:
//
//	./farmsql-data?database=test&machines=3&replicas=3&regionsize=64MiB
//
// The database opens on first use and closes with the last *sql.DB that names
// its folder. All *sql.DB of one process that name the same folder share it; their
// options must agree. The name ":memory:" stands for a volatile database of each
// *sql.DB's own.
type Driver struct{}

var _ driver.DriverContext = Driver{}

// Open implements driver.Driver.
func (d Driver) Open(name string) (driver.Conn, error) {
	return nil, errors.New("farmsql: this driver needs database/sql of Go 1.10 or newer")
}

// OpenConnector implements driver.DriverContext.
func (d Driver) OpenConnector(name string) (driver.Connector, error) {
	cfg, schema, err := ParseDSN(name)
	if err != nil {
		return nil, err
	}
	return &connector{cfg: cfg, schema: schema}, nil
}

// ParseDSN splits a data source name into a configuration and the schema that
// connections shall use.
func ParseDSN(name string) (cfg Config, schema string, err error) {
	folder, options, _ := strings.Cut(name, "?")
	cfg.Folder = folder
	if folder == volatileName {
		cfg.Folder, cfg.Volatile = "", true
	}
	values, err := url.ParseQuery(options)
	if err != nil {
		return Config{}, "", withPrefix(fmt.Sprintf("data source name %q: ", name), err)
	}
	for key, vs := range values {
		value := vs[len(vs)-1]
		if key == "database" {
			schema = value
			continue
		}
		if err := cfg.setOption(key, value); err != nil {
			return Config{}, "", withPrefix(fmt.Sprintf("data source name %q: ", name), err)
		}
	}
	return cfg, schema, cfg.Validate()
}

// setOption sets the field of an option of a data source name.
func (c *Config) setOption(key, value string) (err error) {
	number := func(field *int) { *field, err = strconv.Atoi(value) }
	bytes := func(field *Size) { err = field.UnmarshalText([]byte(value)) }
	switch key {
	case "machines":
		number(&c.Machines)
	case "replicas":
		number(&c.Replicas)
	case "workers":
		number(&c.Workers)
	case "regionsize":
		bytes(&c.RegionSize)
	case "logsize":
		bytes(&c.LogSize)
	case "resultbuffer":
		bytes(&c.ResultBuffer)
	default:
		return fmt.Errorf("unknown option %q", key)
	}
	if err != nil {
		return fmt.Errorf("option %s: %w", key, err)
	}
	return nil
}

// opened holds the databases that the driver has open, by absolute folder.
var opened = struct {
	lockrank.Mutex[lockrank.Opened]
	dbs map[string]*shared
}{dbs: make(map[string]*shared)}

// A shared is a database that several connectors share.
type shared struct {
	db   *DB
	cfg  Config
	uses int // connectors that use it
}

// A connector makes the connections of one *sql.DB.
type connector struct {
	cfg    Config
	schema string

	mu     lockrank.Mutex[lockrank.Connector]
	inner  driver.Connector // set by the first Connect
	folder string
	closed bool
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.open()
	if err != nil {
		return nil, err
	}
	return inner.Connect(ctx)
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return Driver{} }

// open returns the connector to the database, which the first call opens.
func (c *connector) open() (driver.Connector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, stdsql.ErrConnDone
	}
	if c.inner != nil {
		return c.inner, nil
	}
	folder, err := c.key()
	if err != nil {
		return nil, err
	}
	db, err := acquire(folder, c.cfg)
	if err != nil {
		return nil, err
	}
	inner, err := db.connector(c.schema)
	if err != nil {
		return nil, errors.Join(err, release(folder))
	}
	c.inner, c.folder = inner, folder
	return inner, nil
}

// key returns the database's key in opened.
func (c *connector) key() (string, error) {
	if c.cfg.Volatile {
		return fmt.Sprintf("%s%p", volatileName, c), nil
	}
	folder, err := filepath.Abs(c.cfg.Folder)
	if err != nil {
		return "", withPrefix("", err)
	}
	return folder, nil
}

// Close is called by (*sql.DB).Close.
func (c *connector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.inner == nil {
		return nil
	}
	return release(c.folder)
}

// acquire returns the database in a folder, and opens it for its first user. Each user must release
// it.
func acquire(folder string, cfg Config) (*DB, error) {
	opened.Lock()
	defer opened.Unlock()
	if s := opened.dbs[folder]; s != nil {
		if !reflect.DeepEqual(s.cfg.withDefaults(), cfg.withDefaults()) {
			return nil, fmt.Errorf("farmsql: %s is open in this process with other options", cfg.Folder)
		}
		s.uses++
		return s.db, nil
	}
	db, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	opened.dbs[folder] = &shared{db: db, cfg: cfg, uses: 1}
	return db, nil
}

// release ends the use of a database by one connector. The last one closes it.
func release(folder string) error {
	opened.Lock()
	defer opened.Unlock()
	s := opened.dbs[folder]
	s.uses--
	if s.uses > 0 {
		return nil
	}
	delete(opened.dbs, folder)
	return s.db.Close()
}

// connector returns a connector that speaks MySQL's protocol over a pipe within the process, so
// that types and errors are the same as over the network.
func (db *DB) connector(schema string) (driver.Connector, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd = db.wire.LocalAccount()
	cfg.Net, cfg.Addr, cfg.DBName = "pipe", "farmsql", schema
	cfg.ParseTime = true
	cfg.InterpolateParams = false
	cfg.MaxAllowedPacket = int(db.cfg.MaxPacket)
	cfg.CheckConnLiveness = false // connections are in this process: no network can break
	cfg.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return db.wire.Dial(ctx) }
	return mysql.NewConnector(cfg)
}
