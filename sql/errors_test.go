package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
)

// wantCode runs a statement that has to fail with MySQL's number and state.
func (c *client) wantCode(query string, code int, state string) {
	c.in.t.Helper()
	_, _, err := c.run(query)
	if e := myerr.Of(err); e == nil || e.Num != code || e.State != state {
		c.in.t.Errorf("%.60s: %v, want %d (%s)", query, err, code, state)
	}
}

// An error of storage that has lost all but its text was an unknown one, 1105.
func TestErrorsByTheirText(t *testing.T) {
	for _, text := range []string{catalog.ErrAltering.Error(), "analyzer: " + catalog.ErrAltering.Error()} {
		if e := myerr.Of(errors.New(text)); e.Num != myerr.LockWaitTimeout.Number || e.Message != "Lock wait timeout exceeded; try restarting transaction" {
			t.Errorf("%s: %v", text, e)
		}
	}
}

// Where no memory is left, a statement fails and undoes what it did; after a
// DROP there is room again.
func TestNoMemoryLeft(t *testing.T) {
	cfg := testConfig
	cfg.RegionBytes, cfg.RegionsMax = 2<<20, 2
	in := openInstance(t, cfg)
	t.Cleanup(in.close)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT)")
	insert := fmt.Sprintf("INSERT INTO t (v) VALUES ('%s')", strings.Repeat("x", 30_000))
	rows, failed := 0, error(nil)
	for ; rows < 1000; rows++ {
		if _, _, failed = c.run(insert); failed != nil {
			break
		}
	}
	if e := myerr.Of(failed); rows == 0 || e == nil || e.Num != myerr.RecordFull.Number || e.State != "HY000" {
		t.Fatalf("after %d rows: %v", rows, failed)
	}
	c.wantCode(insert, myerr.RecordFull.Number, "HY000")
	if n := c.exec("SELECT COUNT(*) FROM t")[0][0]; n != int64(rows) {
		t.Errorf("%v rows, want %d", n, rows)
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
	c.exec("DELETE FROM t WHERE id <= 10")
	c.exec(insert)
}

// A table that was found in one transaction is used in another, after somebody
// has altered it.
func TestTableChangedSincePlanned(t *testing.T) {
	in := newInstance(t)
	a, b := in.client(""), in.client("d")
	a.exec("CREATE DATABASE d")
	a.exec("CREATE TABLE d.t (id INT PRIMARY KEY)")
	ctx := in.e.NewContext(context.Background(), b.s)
	begin := func() {
		tr, err := b.s.StartTransaction(ctx, gms.ReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		ctx.SetTransaction(tr)
	}
	begin()
	table, ok, err := (&Database{e: in.e, name: "d"}).GetTableInsensitive(ctx, "t")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	b.s.Abort()
	a.exec("ALTER TABLE d.t ADD v INT")
	begin()
	defer b.s.Abort()
	editor := table.(*store.Table).Inserter(ctx)
	for name, err := range map[string]error{
		"reading":   read(ctx, table),
		"inserting": editor.Insert(ctx, gms.Row{int32(1)}),
		"closing":   editor.Close(ctx),
	} {
		if e := myerr.Of(err); e == nil || e.Num != myerr.TableChanged.Number || e.State != "HY000" {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.exec("DROP TABLE d.t")
	b.s.Abort()
	begin()
	if _, err := table.(*store.Table).BeginBulk(ctx, store.Began(ctx), nil); !myerr.TableChanged.Is(err) {
		t.Errorf("altering what is gone: %v", err)
	}
}

func read(ctx *gms.Context, t gms.Table) error {
	partitions, err := t.Partitions(ctx)
	if err != nil {
		return err
	}
	p, err := partitions.Next(ctx)
	if err != nil {
		return err
	}
	_, err = t.PartitionRows(ctx, p)
	return err
}

// GET_LOCK is for the sessions of one engine.
func TestUserLocks(t *testing.T) {
	in := newInstance(t)
	a, b := in.client(""), in.client("")
	for i, step := range []struct {
		c     *client
		query string
		want  any
	}{
		{a, "SELECT GET_LOCK('x', 0)", int32(1)},
		{a, "SELECT GET_LOCK('x', 0)", int32(1)}, // again, as MySQL 5.7 and later
		{b, "SELECT GET_LOCK('x', 0)", int32(0)},
		{b, "SELECT IS_FREE_LOCK('x')", int32(0)},
		{b, "SELECT IS_USED_LOCK('x')", uint32(1)},
		{b, "SELECT RELEASE_LOCK('x')", int32(0)},
		{b, "SELECT RELEASE_LOCK('none')", nil},
		{b, "SELECT GET_LOCK('y', 0)", int32(1)},
		{a, "SELECT RELEASE_LOCK('x')", int32(1)},
		{b, "SELECT GET_LOCK('x', 0)", int32(0)},
		{a, "SELECT RELEASE_LOCK('x')", int32(1)},
		{b, "SELECT GET_LOCK('x', 0)", int32(1)},
		{b, "SELECT RELEASE_ALL_LOCKS()", int32(2)},
		{a, "SELECT IS_FREE_LOCK('y')", int32(1)},
	} {
		if got := step.c.exec(step.query)[0][0]; fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("step %d, %s: %v (%T), want %v", i, step.query, got, got, step.want)
		}
	}
}
