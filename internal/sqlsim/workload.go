package sqlsim

import (
	"context"
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/internal/history"
	"github.com/farmsql/farmsql/internal/simtest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

// A workload is the SQL workload of one run. All machines of the run share it.
type workload struct {
	// rows is the number of keys of table t in use.
	rows int
	// numbers are the keys that AUTO_INCREMENT has generated for rows of table n, and places
	// is the index of each. A key that no client was told has not committed, so nobody can
	// see it.
	numbers []uint64
	places  map[uint64]int
}

// New returns the workload of one run, with this number of rows in table t.
func New(rows int) simtest.Workload {
	return &workload{rows: rows, places: make(map[uint64]int)}
}

// firstNumber is the history's index of the first row of table n.
const firstNumber = 1 << 12

// Name implements simtest.Workload.
func (w *workload) Name(i int) string {
	if i >= firstNumber {
		return fmt.Sprintf("n-%d", w.numbers[i-firstNumber])
	}
	return fmt.Sprintf("t-%d", i)
}

// noteNumber notes that AUTO_INCREMENT has given number to a row of table n, and returns the row's
// object of the history.
func (w *workload) noteNumber(number uint64) (history.Object, error) {
	if _, again := w.places[number]; again {
		return 0, fmt.Errorf("sqlsim: number %d has been given twice", number)
	}
	w.places[number] = len(w.numbers)
	w.numbers = append(w.numbers, number)
	return w.object("n", number)
}

// object returns a row's object of the history.
func (w *workload) object(table string, key uint64) (history.Object, error) {
	if table == "t" {
		return simtest.Row(int(key)), nil
	}
	place, known := w.places[key]
	if !known {
		return 0, fmt.Errorf("sqlsim: there is a row with number %d, which nobody has been given", key)
	}
	return simtest.Row(firstNumber + place), nil
}

// An engine is the SQL engine of one machine.
type engine struct {
	*workload
	machine *txn.Machine
	catalog *catalog.Catalog
	sql     *sql.Engine
	clients uint32
}

// processors is the number of a machine's processors: it must not depend on the computer.
const processors = 2

// Open implements simtest.Workload.
func (w *workload) Open(m *txn.Machine, root region.Ptr, cfg catalog.Config) (simtest.Engine, error) {
	cat, err := sql.OpenCatalog(ctx, m, root, cfg)
	if err != nil {
		return nil, err
	}
	e, err := sql.NewEngine(m, cat, sql.Options{Processors: processors})
	if err != nil {
		return nil, err
	}
	return &engine{workload: w, machine: m, catalog: cat, sql: e}, nil
}

// Catalog implements simtest.Engine.
func (e *engine) Catalog() *catalog.Catalog { return e.catalog }

// Session implements simtest.Engine.
func (e *engine) Session() simtest.Session { return e.session() }

// Check implements simtest.Engine.
func (e *engine) Check(root region.Ptr, object func(region.Ptr) error) error {
	return e.sql.Check(ctx, root, object, nil)
}

// SetUp implements simtest.Engine.
func (e *engine) SetUp() error {
	s := e.session()
	for _, query := range []string{
		"CREATE DATABASE d",
		"CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, v BIGINT UNSIGNED NOT NULL, pad VARCHAR(400), KEY (k), UNIQUE KEY (v))",
		"CREATE TABLE t_gone (id INT PRIMARY KEY, v BIGINT UNSIGNED NOT NULL)",
		"CREATE TABLE n (id INT PRIMARY KEY AUTO_INCREMENT, v BIGINT UNSIGNED NOT NULL, pad VARCHAR(400))",
		"CREATE TABLE n_gone (id INT PRIMARY KEY, v BIGINT UNSIGNED NOT NULL)",
	} {
		if err := s.insist(query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// attemptsMax bounds the attempts at a statement with which nothing should conflict.
const attemptsMax = 100

// insist runs a statement until it has no conflict.
func (s *session) insist(query string) (err error) {
	for range attemptsMax {
		if _, err = s.run(query); !myerr.IsConflict(err) {
			return err
		}
	}
	return err
}

var (
	ctx    = context.Background()
	client = gms.Client{User: "root", Address: "localhost"}
)
