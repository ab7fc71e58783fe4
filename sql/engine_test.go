package sql

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/myerr"
)

// An instance is a cluster with an engine, for tests.
type instance struct {
	t       testing.TB
	cluster *farm.Local
	cat     *catalog.Catalog
	e       *Engine
	cfg     farm.Config
	opt     Options
	nextID  uint32
}

// testConfig is small, so that tests are quick.
var testConfig = farm.Config{RegionBytes: 8 << 20, LogBytes: 4 << 20}

func openInstance(t testing.TB, cfg farm.Config) *instance { return openWith(t, cfg, Options{}) }

func openWith(t testing.TB, cfg farm.Config, opt Options) *instance {
	t.Helper()
	cluster, err := farm.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	cat, err := OpenCatalog(ctx, cluster.Machine(0), cluster.Root(), catalog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(cluster.Machine(0), cat, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &instance{t: t, cluster: cluster, cat: cat, e: e, cfg: cfg, opt: opt}
}

func (in *instance) close() {
	in.t.Helper()
	ctx := context.Background()
	for _, err := range []error{in.e.Close(ctx), in.cat.Close(ctx), in.cluster.Close()} {
		if err != nil {
			in.t.Error(err)
		}
	}
}

func newInstance(t testing.TB) *instance {
	in := openInstance(t, testConfig)
	t.Cleanup(in.close)
	return in
}

// A client is one session.
type client struct {
	in *instance
	s  *Session
	// byPlan is set if the last statement was run by a plan of our own.
	byPlan bool
}

func (in *instance) client(db string) *client {
	in.nextID++
	s := in.e.NewSession("localhost", gms.Client{User: "root", Address: "localhost"}, in.nextID)
	s.SetCurrentDatabase(db)
	return &client{in: in, s: s}
}

// run runs one statement, once, and returns its rows.
func (c *client) run(query string) (gms.Schema, []gms.Row, error) {
	ctx := c.in.e.NewContext(context.Background(), c.s, gms.WithQuery(query))
	schema, iter, _, err := c.in.e.GMS().Query(ctx, query)
	if err != nil {
		return nil, nil, c.failed(err)
	}
	var rows []gms.Row
	for {
		row, err := iter.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			err = c.failed(err)
			_ = iter.Close(ctx)
			return schema, rows, err
		}
		rows = append(rows, row)
	}
	return schema, rows, iter.Close(ctx)
}

// failed returns the error that the listener sends for an error.
func (c *client) failed(err error) error {
	if conflict := c.s.Failed(); conflict != nil {
		return conflict
	}
	return err
}

// exec runs a statement that must not fail. Outside of a transaction it is
// run again after a conflict, as the listener does.
func (c *client) exec(query string) []gms.Row {
	c.in.t.Helper()
	for {
		_, rows, err := c.run(query)
		if myerr.IsConflict(err) && !c.s.Explicit() {
			continue
		}
		if err != nil {
			c.in.t.Fatalf("%s: %v", query, err)
		}
		return rows
	}
}

// show renders rows as the text protocol would.
func (c *client) show(schema gms.Schema, rows []gms.Row) string {
	ctx := c.in.e.NewContext(context.Background(), c.s)
	var b strings.Builder
	for _, row := range rows {
		for i, v := range row {
			if i > 0 {
				b.WriteString(" | ")
			}
			if v == nil {
				b.WriteString("NULL")
				continue
			}
			s, err := schema[i].Type.SQL(ctx, nil, v)
			if err != nil {
				c.in.t.Errorf("render %v: %v", v, err)
			}
			b.WriteString(s.ToString())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestFirstSteps(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20) NOT NULL, n INT, KEY(n), UNIQUE KEY (name))")
	c.exec("INSERT INTO t (name, n) VALUES ('a', 1), ('b', 2), ('c', 2)")
	c.exec("UPDATE t SET n = n + 1 WHERE n = 2")
	c.exec("DELETE FROM t WHERE id = 1")
	schema, rows, err := c.run("SELECT * FROM t WHERE n >= 2 ORDER BY id DESC")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := c.show(schema, rows), "3 | c | 3\n2 | b | 3\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, _, err := c.run("INSERT INTO t (name) VALUES ('B')"); myerr.Of(err).Num != 1062 {
		t.Errorf("duplicate: %v", err)
	}
}

// check walks everything, after what was dropped has been freed.
func (in *instance) check() error {
	ctx := context.Background()
	if err := in.cat.Sweep(ctx); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	used := map[region.Ptr]bool{in.cluster.Root(): true}
	return in.e.Check(ctx, in.cluster.Root(), func(p region.Ptr) error {
		if used[p] {
			return fmt.Errorf("object %v is used twice", p)
		}
		used[p] = true
		return nil
	}, nil)
}

// Users and their grants are part of the catalog.
func TestUsers(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	c := in.client("")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)",
		"CREATE USER joe@localhost IDENTIFIED BY 'secret'", "GRANT SELECT ON d.* TO joe@localhost"} {
		c.exec(q)
	}
	in.close()
	in = openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	if rows := in.client("").exec("SHOW GRANTS FOR joe@localhost"); len(rows) != 2 {
		t.Errorf("grants: %v", rows)
	}
	joe := in.client("d")
	joe.s.SetClient(gms.Client{User: "joe", Address: "localhost"})
	joe.exec("SELECT * FROM t")
	if _, _, err := joe.run("INSERT INTO t VALUES (1)"); err == nil {
		t.Error("joe may insert")
	}
}

// A session whose commit has failed is ready for another transaction.
func TestFailedCommitResetsSession(t *testing.T) {
	in := newInstance(t)
	a, b := in.client(""), in.client("")
	a.exec("CREATE DATABASE d")
	a.exec("CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
	a.exec("INSERT INTO d.t VALUES (1, 0)")
	if err := a.must(0, "BEGIN", "UPDATE d.t SET v = 1"); err != nil {
		t.Fatal(err)
	}
	b.exec("UPDATE d.t SET v = 2")
	if _, _, err := a.run("COMMIT"); !myerr.IsConflict(err) || myerr.Of(err).Num != 1213 || myerr.Of(err).State != "40001" {
		t.Errorf("commit: %v", err)
	}
	if err := a.s.TakeCommitError(); !myerr.IsConflict(err) {
		t.Errorf("kept: %v", err)
	}
	if err := a.s.TakeCommitError(); err != nil {
		t.Errorf("kept twice: %v", err)
	}
	if a.s.Explicit() || a.s.GetTransaction() != nil {
		t.Error("the session still has its transaction")
	}
	a.exec("UPDATE d.t SET v = v + 1")
	if rows := a.exec("SELECT v FROM d.t"); rows[0][0] != int32(3) {
		t.Errorf("%v", rows)
	}
}
