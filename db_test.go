package farmsql

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// small is a configuration for tests.
func small(folder string) Config {
	return Config{Folder: folder, Workers: 1, RegionSize: 8 * MiB, LogSize: MiB}
}

func mustOpen(t *testing.T, cfg Config) *DB {
	t.Helper()
	db, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func mustExec(t *testing.T, db *stdsql.DB, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func mustCheck(t *testing.T, db *DB) Report {
	t.Helper()
	r, err := db.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Errorf("%v", r)
	}
	return r
}

func TestReopen(t *testing.T) {
	for _, machines := range []int{1, 3} {
		folder := t.TempDir()
		cfg := small(folder)
		cfg.Machines, cfg.Replicas = machines, machines
		db := mustOpen(t, cfg)
		mustExec(t, db.SQL(), "create database d", "create table d.t (a int primary key, b varchar(20), key (b))",
			"insert into d.t values (1, 'x'), (2, 'y')", "create user u@localhost identified by 'p'", "grant select on d.* to u@localhost")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatalf("second close: %v", err)
		}
		again := mustOpen(t, Config{Folder: folder}) // the folder knows its layout
		if again.Machines() != machines {
			t.Errorf("%d machines, want %d", again.Machines(), machines)
		}
		var b string
		if err := again.SQL().QueryRow("select b from d.t where a = 2").Scan(&b); err != nil || b != "y" {
			t.Errorf("%q, %v", b, err)
		}
		var users int
		if err := again.SQL().QueryRow("select count(*) from mysql.user where user = 'u'").Scan(&users); err != nil || users != 1 {
			t.Errorf("%d users, %v", users, err)
		}
		if r := mustCheck(t, again); r.Objects == 0 || r.Machines != machines {
			t.Errorf("%v", r)
		}
	}
}

// A folder keeps its number of workers and its size of logs on a computer with other processors.
func TestFolderKeepsItsWorkers(t *testing.T) {
	folder := t.TempDir()
	cfg := Config{Folder: folder, RegionSize: 8 * MiB}
	open := func(processors, workers int, logs Size) {
		t.Helper()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		db := mustOpen(t, cfg)
		stored, _, err := farm.Stored(folder)
		if err != nil || stored.Workers != workers || Size(stored.LogBytes) != logs {
			t.Errorf("on %d processors: %d workers with logs of %v, want %d of %v: %v", processors, stored.Workers, Size(stored.LogBytes), workers, logs, err)
		}
		mustExec(t, db.SQL(), "create database if not exists d", "create table if not exists d.t (a int primary key auto_increment)", "insert into d.t values ()")
		mustCheck(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		cfg.RegionSize = 0 // the folder knows it
	}
	open(3, 3, DefaultLogSize)
	open(1, 3, DefaultLogSize)
	open(12, 3, DefaultLogSize)
}

// By default workers follow the processors, and logs shrink where there are many.
func TestWorkersFollowProcessors(t *testing.T) {
	for _, c := range []struct {
		processors, machines, replicas, workers int
		logs                                    Size
	}{
		{processors: 1, workers: 1, logs: 32 * MiB},
		{processors: 8, machines: 3, workers: 8, logs: 32 * MiB},
		{processors: 64, workers: 64, logs: 16 * MiB},
		{processors: 64, machines: 3, workers: 64, logs: 4 * MiB},
		{processors: 64, replicas: 3, workers: 64, logs: 4 * MiB},
		{processors: 300, workers: 127, logs: 8 * MiB},
	} {
		was := runtime.GOMAXPROCS(c.processors)
		got := Config{Machines: c.machines, Replicas: c.replicas}.withDefaults()
		runtime.GOMAXPROCS(was)
		if got.Workers != c.workers || got.LogSize != c.logs {
			t.Errorf("%+v: %d workers with logs of %v", c, got.Workers, got.LogSize)
		}
	}
}

func TestOpenTwice(t *testing.T) {
	folder := t.TempDir()
	mustOpen(t, small(folder))
	if _, err := Open(small(folder)); !errors.Is(err, nvram.ErrInUse) {
		t.Fatalf("got %v, want ErrInUse", err)
	}
}

// Another layout than the folder's is refused with a text about what was given.
func TestOtherLayout(t *testing.T) {
	cfg := small(t.TempDir())
	cfg.Machines, cfg.Replicas = 3, 3
	if err := mustOpen(t, cfg).Close(); err != nil {
		t.Fatal(err)
	}
	for says, other := range map[string]Config{
		"Machines (--machines) was 3 and is now 1": {Machines: 1},
		"replicas was 3 and is now 2":              {Replicas: 2},
		"workers was 1 and is now 2":               {Workers: 2},
	} {
		other.Folder = cfg.Folder
		db, err := Open(other)
		if err == nil {
			err = db.Close()
		}
		if !errors.Is(err, farm.ErrMismatch) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	if err := (Config{Folder: "x"}).Validate(); err != nil {
		t.Errorf("defaults: %v", err)
	}
	for want, c := range map[string]Config{
		"--data":             {},
		"Volatile":           {Folder: "x", Volatile: true},
		"--machines":         {Folder: "x", Machines: -1},
		"--replicas":         {Folder: "x", Machines: 2, Replicas: 3},
		"--workers":          {Folder: "x", Workers: 1000},
		"--region-size":      {Folder: "x", RegionSize: 3 * MiB},
		"--log-size":         {Folder: "x", LogSize: 100},
		"result buffer":      {Folder: "x", ResultBuffer: 1},
		"packets":            {Folder: "x", MaxPacket: 8 * GiB},
		"connections":        {Folder: "x", MaxConnections: -1},
		"TLS is required":    {Folder: "x", RequireTLS: true},
		"--secure-file-priv": {Folder: "x", SecureFilePriv: "/none"},
		"--recovery-pace":    {Folder: "x", RecoveryPace: PaceSlow},
		"RecoveryPace (--recovery-pace) is \"fast\"": {Folder: "x", Cluster: "file://x", RecoveryPace: "fast"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
		if _, err := Open(c); err == nil {
			t.Errorf("%s: Open accepted it", want)
		}
	}
}

func TestDriverSharesTheFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	dsn := folder + "?workers=1&regionsize=8MiB&logsize=1MiB"
	one, err := stdsql.Open(DriverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	mustExec(t, one, "create database d", "create table d.t (a int primary key)", "insert into d.t values (5)")
	two, err := stdsql.Open(DriverName, dsn+"&database=d")
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	var a int
	if err := two.QueryRow("select a from t").Scan(&a); err != nil || a != 5 {
		t.Fatal(a, err)
	}
	other, err := stdsql.Open(DriverName, folder+"?workers=2&regionsize=8MiB&logsize=1MiB")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Ping(); err == nil || !strings.Contains(err.Error(), "other options") {
		t.Errorf("other options: %v", err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := two.QueryRow("select a from t").Scan(&a); err != nil {
		t.Fatalf("closing one closed the other: %v", err)
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, small(folder)) // the last one released the folder
	mustCheck(t, db)
}

func TestDriverErrors(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                     "--data",
		"x?nope=1":             `unknown option "nope"`,
		"x?machines=many":      "machines",
		"x?regionsize=3MiB":    "--region-size",
		"x?logsize=%zz":        "data source name",
		":memory:?replicas=2":  "--replicas",
		"x?resultbuffer=12345": "result buffer",
	} {
		if db, err := stdsql.Open(DriverName, dsn); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", dsn, err, want)
			_ = db.Close()
		}
	}
	db, err := stdsql.Open(DriverName, "/proc/farmsql")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Ping(); !errors.Is(err, nvram.ErrUnwritable) {
		t.Errorf("unwritable: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := db.Ping(); err == nil {
		t.Error("a closed database answers")
	}
}

func TestVolatile(t *testing.T) {
	for range 2 {
		db, err := stdsql.Open(DriverName, ":memory:?workers=1&regionsize=8MiB&logsize=1MiB")
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, db, "create database d") // would exist the second time, were it kept
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An embedded database and a client over the network see the same data, and the
// same error for the same mistake.
func TestEmbeddedIsLikeTheNetwork(t *testing.T) {
	cfg := small("")
	cfg.Volatile = true
	db := mustOpen(t, cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := db.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	remote, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/?parseTime=true", l.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	mustExec(t, db.SQL(), "create database d", "create table d.t (a bigint unsigned primary key, b datetime(6), c decimal(20,6), d blob, e double)")
	mustExec(t, remote, "insert into d.t values (18446744073709551615, '2026-01-02 03:04:05.000006', 1.5, x'00ff', 0.1)")
	var answers [2]string
	for i, c := range []*stdsql.DB{db.SQL(), remote} {
		rows, err := c.Query("select * from d.t where a > ?", 5)
		if err != nil {
			t.Fatal(err)
		}
		values, targets := make([]any, 5), make([]any, 5)
		for j := range values {
			targets[j] = &values[j]
		}
		for rows.Next() {
			if err := rows.Scan(targets...); err != nil {
				t.Fatal(err)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
		types, _ := rows.ColumnTypes()
		for j, v := range values {
			answers[i] += fmt.Sprintf("%T %v; ", v, v)
			if types != nil {
				answers[i] += types[j].DatabaseTypeName()
			}
		}
		_, err = c.Exec("insert into d.t (a) values (18446744073709551615)")
		answers[i] += fmt.Sprint(err)
	}
	if answers[0] != answers[1] || !strings.Contains(answers[0], "18446744073709551615") || !strings.Contains(answers[0], "1062") {
		t.Errorf("embedded %s\nnetwork  %s", answers[0], answers[1])
	}
	if s := db.Stats(); s.Statements == 0 || s.Failed != 2 {
		t.Errorf("stats: %v", s)
	}
	cancel()
	serving.Wait()
	if err := remote.Ping(); err == nil {
		t.Error("the client outlived Serve")
	}
	if err := db.SQL().Ping(); err != nil {
		t.Errorf("the embedded connections did not: %v", err)
	}
}

func TestNativeIndexes(t *testing.T) {
	folder := t.TempDir()
	cfg := small(folder)
	cfg.Machines, cfg.Replicas = 3, 2
	db := mustOpen(t, cfg)
	ctx := t.Context()
	tree, err := db.Tree(ctx, "names", btree.Config{})
	if err != nil {
		t.Fatal(err)
	}
	table, err := db.Hash(ctx, "counts", hash.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Machine(0).Run(ctx, func(tx *txn.Tx) error {
		p, b, err := tx.Alloc(16, 0)
		if err != nil {
			return err
		}
		copy(b, "an object")
		if err := tree.Insert(tx, []byte("key"), p); err != nil {
			return err
		}
		return table.Put(tx, []byte("key"), []byte("value"))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.HashAt(ctx, 1, "names", hash.Config{}); !errors.Is(err, ErrOtherKind) {
		t.Errorf("the other kind: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = mustOpen(t, Config{Folder: folder})
	if tree, err = db.TreeAt(ctx, 2, "names", btree.Config{}); err != nil {
		t.Fatal(err)
	}
	if table, err = db.HashAt(ctx, 2, "counts", hash.Config{}); err != nil {
		t.Fatal(err)
	}
	err = db.Machine(2).Run(ctx, func(tx *txn.Tx) error {
		p, ok, err := tree.Get(tx, []byte("key"))
		if err != nil || !ok {
			return fmt.Errorf("tree: %v, %w", ok, err)
		}
		b, err := tx.Read(p)
		if err != nil || !bytes.HasPrefix(b, []byte("an object")) {
			return fmt.Errorf("object %q: %w", b, err)
		}
		v, ok, err := table.Get(tx, []byte("key"))
		if err != nil || !ok || string(v) != "value" {
			return fmt.Errorf("hash: %q %v, %w", v, ok, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mustCheck(t, db)
}

// A report must be able to be bad: an object that nothing points to is a leak.
func TestCheckFindsALeak(t *testing.T) {
	cfg := small("")
	cfg.Volatile = true
	db := mustOpen(t, cfg)
	mustExec(t, db.SQL(), "create database d", "create table d.t (a int primary key, b varchar(10), key (b))", "insert into d.t values (1, 'x')")
	sound := mustCheck(t, db)
	var leaked region.Ptr
	err := db.Machine(0).Run(t.Context(), func(tx *txn.Tx) (err error) {
		leaked, _, err = tx.Alloc(64, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := db.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "leak") || r.Objects != sound.Objects {
		t.Errorf("with %v leaked: %v", leaked, r)
	}
	if !strings.Contains(r.String(), "1 problem") {
		t.Errorf("%v", r)
	}
}
