package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/store"
	"github.com/farmsql/farmsql/txn"
)

// manyRows makes a table d.t with n rows, far more than one transaction of the
// instance can write.
func (in *instance) manyRows(n int) *client {
	in.t.Helper()
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, s VARCHAR(200))")
	const batch = 100
	for i := 0; i < n; i += batch {
		values := make([]string, batch)
		for j := range values {
			values[j] = fmt.Sprintf("(%d, '%s')", i+j, strings.Repeat("x", (i+j)%100))
		}
		c.exec("INSERT INTO t (a, s) VALUES " + strings.Join(values, ","))
	}
	return c
}

// smallLogs have room for no more than 192 KB of a transaction that is not large.
var smallLogs = farm.Config{RegionBytes: 8 << 20, LogBytes: 256 << 10}

func TestAlterLargeTable(t *testing.T) {
	in := openInstance(t, smallLogs)
	defer in.close()
	const n = 3000
	c := in.manyRows(n)
	for _, q := range []struct{ query, check string }{
		{"CREATE INDEX ka ON t (a)", "SELECT COUNT(*) FROM t WHERE a >= 0"},
		{"CREATE UNIQUE INDEX ua ON t (a, id)", "SELECT COUNT(*) FROM t WHERE a >= 0 AND id > 0"},
		{"ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7 AFTER id", "SELECT COUNT(*) FROM t WHERE b = 7"},
		{"ALTER TABLE t MODIFY COLUMN a BIGINT UNSIGNED", "SELECT COUNT(*) FROM t WHERE a < 3000"},
		{"ALTER TABLE t MODIFY COLUMN id INT", "SELECT COUNT(*) FROM t WHERE id > 0"},
		{"ALTER TABLE t DROP PRIMARY KEY, ADD COLUMN c INT DEFAULT 1", "SELECT COUNT(*) FROM t WHERE c = 1"},
		{"ALTER TABLE t ADD PRIMARY KEY (id)", "SELECT COUNT(*) FROM t WHERE id BETWEEN 1 AND 3000"},
		{"ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "SELECT COUNT(*) FROM t WHERE s >= ''"},
		{"ALTER TABLE t MODIFY COLUMN id INT AUTO_INCREMENT", "SELECT COUNT(*) FROM t"},
	} {
		c.exec(q.query)
		if rows := c.exec(q.check); rows[0][0] != int64(n) {
			t.Errorf("after %s: %v rows", q.query, rows[0][0])
		}
		if err := in.check(); err != nil {
			t.Fatalf("after %s: %v", q.query, err)
		}
	}
	c.exec("INSERT INTO t (a) VALUES (9999)")
	if rows := c.exec("SELECT MAX(id) FROM t"); rows[0][0] != int32(n+1) {
		t.Errorf("the sequence goes on at %v", rows[0][0])
	}
	// One that fails leaves the table as it was.
	c.exec("UPDATE t SET a = 1 WHERE id = 2900")
	if _, _, err := c.run("CREATE UNIQUE INDEX u ON t (a)"); myerr.Of(err).Num != 1062 {
		t.Errorf("duplicates: %v", err)
	}
	if _, _, err := c.run("ALTER TABLE t MODIFY COLUMN s VARCHAR(200) NOT NULL"); myerr.Of(err).Num != 1048 {
		t.Errorf("a NULL: %v", err)
	}
	c.exec("INSERT INTO t (id, a) VALUES (10000, 5)")
	c.exec("DROP TABLE t")
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// Rows that are longer than what a log has room for are rewritten and indexed like others.
func TestAlterLongRows(t *testing.T) {
	in := openInstance(t, smallLogs)
	defer in.close()
	c := in.manyRows(300) // too many for the statement's own transaction
	c.exec("ALTER TABLE t MODIFY COLUMN s LONGTEXT")
	const long = 600 << 10
	c.exec(fmt.Sprintf("UPDATE t SET s = REPEAT('x', %d) WHERE id IN (100, 250)", long))
	for _, q := range []string{
		"CREATE INDEX ka ON t (s(700))",
		"ALTER TABLE t ADD COLUMN b INT NOT NULL DEFAULT 7 AFTER id",
		"ALTER TABLE t MODIFY COLUMN a BIGINT",
		"ALTER TABLE t MODIFY COLUMN id INT, DROP PRIMARY KEY",
	} {
		if _, _, err := c.run(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if rows := c.exec(fmt.Sprintf("SELECT COUNT(*) FROM t WHERE LENGTH(s) = %d AND a >= 0", long)); rows[0][0] != int64(2) {
			t.Errorf("after %s: %v long rows", q, rows[0][0])
		}
		if err := in.check(); err != nil {
			t.Fatalf("after %s: %v", q, err)
		}
	}
}

// A statement waits for a table that is being altered, and sees it as it is
// afterwards; one that has seen it before cannot commit.
func TestWaitForAlteration(t *testing.T) {
	in := openInstance(t, smallLogs)
	defer in.close()
	in.manyRows(300)
	early, late := in.client("d"), in.client("d")
	if err := early.must(0, "BEGIN", "INSERT INTO t (a) VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var owner uint64
	err := in.cluster.Machine(0).Run(ctx, func(tx *txn.Tx) error {
		tbl, err := in.cat.Table(tx, "d", "t")
		if err == nil {
			tbl, err = in.cat.BeginAlteration(tx, tbl, nil)
		}
		if err == nil {
			owner = tbl.Alteration.Owner
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := early.run("COMMIT"); !myerr.IsConflict(err) {
		t.Errorf("a transaction from before the alteration: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := late.run("INSERT INTO t (a) VALUES (2)")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	hasty := in.client("d")
	if err := hasty.must(0, "SET innodb_lock_wait_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		"INSERT INTO t (a) VALUES (3)", "SELECT COUNT(*) FROM t", "SELECT * FROM t WHERE a = 1", "UPDATE t SET a = 1 WHERE a = 2", "DELETE FROM t", "TRUNCATE t", "DROP TABLE t",
		"ALTER TABLE t ADD COLUMN more INT", "CREATE INDEX ia ON t (a)", "SHOW CREATE TABLE t", "DESCRIBE t", "DROP DATABASE d",
	} {
		if _, _, err := hasty.run(q); myerr.Of(err).Num != myerr.LockWaitTimeout.Number {
			t.Errorf("no patience: %s: %d, %v", q, myerr.Of(err).Num, err)
		}
	}
	if err := in.cat.EndAlteration(ctx, "d", "t", owner); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after waiting: %v", err)
	}
}

// Structures that were being built when the instance stopped are dropped when it starts.
func TestAlterationIsUndoneAtStart(t *testing.T) {
	cfg := smallLogs
	cfg.Volatile = farm.NewVolatile()
	in := openInstance(t, cfg)
	in.manyRows(300)
	ctx := context.Background()
	err := in.cluster.Machine(0).Run(ctx, func(tx *txn.Tx) error {
		tbl, err := in.cat.Table(tx, "d", "t")
		if err != nil {
			return err
		}
		anchor, err := store.CreateAccess(tx, catalog.AccessBTree)
		if err != nil {
			return err
		}
		_, err = in.cat.BeginAlteration(tx, tbl, []catalog.Storage{{Anchor: anchor}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	in.close()
	in = openInstance(t, cfg)
	defer in.close()
	c := in.client("d")
	c.exec("INSERT INTO t (a) VALUES (1)")
	if rows := c.exec("SELECT COUNT(*) FROM t"); rows[0][0] != int64(301) {
		t.Errorf("%v rows", rows[0][0])
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// A dropped table's memory is freed, also by the next start.
func TestDroppedIsFreed(t *testing.T) {
	cfg := smallLogs
	cfg.Volatile = farm.NewVolatile()
	in := openInstance(t, cfg)
	in.manyRows(1000)
	ctx := context.Background()
	// Dropped, and nobody sweeps before the instance is closed.
	err := in.cluster.Machine(0).Run(ctx, func(tx *txn.Tx) error {
		tbl, err := in.cat.Table(tx, "d", "t")
		if err != nil {
			return err
		}
		return in.cat.DropTable(tx, tbl)
	})
	if err != nil {
		t.Fatal(err)
	}
	in.close()
	in = openInstance(t, cfg)
	defer in.close()
	if err := in.check(); err != nil {
		t.Error(err)
	}
	used := 0
	if err := in.e.Check(ctx, in.cluster.Root(), func(p region.Ptr) error { used++; return nil }, nil); err != nil {
		t.Fatal(err)
	}
	if used > 20 {
		t.Errorf("%d objects are still in use", used)
	}
}
