package sql

import (
	"bytes"
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/txn"
)

// as returns a client who has logged in as a user.
func (in *instance) as(user, db string) *client {
	c := in.client(db)
	c.s.SetClient(gms.Client{User: user, Address: "localhost"})
	return c
}

// password returns the stored form of a user's password, and whether the user exists.
func (in *instance) password(user string) (hash string, ok bool) {
	rd := in.opt.Accounts.DB().Reader()
	defer rd.Close()
	u, ok := rd.GetUser(mysql_db.UserPrimaryKey{User: user, Host: "localhost"})
	if !ok {
		return "", false
	}
	return u.AuthString, true
}

// twoMachines returns an instance whose second machine is as if it were another process.
func twoMachines(t testing.TB) (a, b *instance) {
	t.Helper()
	cfg := testConfig
	cfg.Machines, cfg.Replicas = 2, 2
	return machinesOf(t, cfg)
}

// twoClients returns clients of two machines, both in database d, and the second client's machine.
func twoClients(t testing.TB) (onA, onB *client, ofB *txn.Machine) {
	t.Helper()
	a, b := twoMachines(t)
	onA, onB = a.client(""), b.client("")
	onA.exec("CREATE DATABASE d")
	onA.exec("USE d")
	onB.exec("USE d")
	return onA, onB, a.cluster.Machine(1)
}

// machinesOf returns an instance whose second machine is as if it were another process.
func machinesOf(t testing.TB, cfg farm.Config) (a, b *instance) {
	t.Helper()
	a = openWith(t, cfg, Options{Accounts: account.New(clock.System{}, true)})
	cat, err := OpenCatalog(context.Background(), a.cluster.Machine(1), a.cluster.Root(), catalog.Config{Sequences: a.cat.Sequences()})
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Accounts: account.New(clock.System{}, true)}
	e, err := NewEngine(a.cluster.Machine(1), cat, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := cat.Close(context.Background()); err != nil {
			t.Error(err)
		}
		a.close()
	})
	return a, &instance{t: t, cluster: a.cluster, cat: cat, e: e, cfg: cfg, opt: opt}
}

// Accounts that one machine makes, changes and drops are the same at another: at once for a client
// who logs in, before long for one who is logged in already, and in statements about accounts, which
// build on each other's changes.
func TestAccountsOfTwoMachines(t *testing.T) {
	a, b := twoMachines(t)
	onA, onB := a.client(""), b.client("")
	login := func(in *instance) {
		t.Helper()
		if err := in.e.RefreshAccounts(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	onA.exec("CREATE DATABASE d")
	onA.exec("CREATE TABLE d.t (id INT PRIMARY KEY)")
	onA.exec("CREATE USER joe@localhost IDENTIFIED BY 'secret'")
	login(b)
	was, ok := b.password("joe")
	if !ok || was == "" {
		t.Fatalf("who logs in elsewhere: %q, %v", was, ok)
	}
	onB.exec("CREATE USER ann@localhost")
	onA.exec("GRANT SELECT ON d.* TO joe@localhost")
	onB.exec("GRANT INSERT ON d.t TO joe@localhost")
	onB.exec("ALTER USER joe@localhost IDENTIFIED BY 'other'")
	login(a)
	if now, _ := a.password("joe"); now == was || now == "" {
		t.Errorf("the password is %q, was %q", now, was)
	}
	if _, ok := a.password("ann"); !ok {
		t.Error("a user of the other machine is not there")
	}
	joe := a.as("joe", "d")
	joe.s.Begin()
	joe.exec("SELECT * FROM t")
	joe.exec("INSERT INTO t VALUES (1)")
	onB.exec("REVOKE INSERT ON d.t FROM joe@localhost")
	time.Sleep(account.Freshness + time.Millisecond)
	joe.s.Begin()
	joe.exec("SELECT * FROM t")
	if _, _, err := joe.run("INSERT INTO t VALUES (2)"); err == nil {
		t.Error("joe inserts after REVOKE")
	}
	onA.exec("DROP USER joe@localhost")
	login(b)
	if _, ok := b.password("joe"); ok {
		t.Error("a user who was dropped may log in")
	}
	if _, _, err := onB.run("GRANT SELECT ON d.* TO joe@localhost"); err == nil {
		t.Error("a user who was dropped gets grants")
	}
}

// A statement about accounts that fails has no effect, here or elsewhere; nor has one that
// would change the tables that show them.
func TestFailedChangeOfAccounts(t *testing.T) {
	in := openWith(t, testConfig, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	ed := in.opt.Accounts.DB().Editor()
	in.opt.Accounts.DB().AddEphemeralSuperUser(ed, "own", "localhost", "secret") // as the server's own
	ed.Close()
	a, b := in.client(""), in.client("")
	for _, q := range []string{"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 0)", "CREATE USER joe@localhost IDENTIFIED BY 'secret'"} {
		a.exec(q)
	}
	was, _ := in.password("joe")
	for _, q := range []string{
		"ALTER USER joe@localhost IDENTIFIED BY 'other'", "DROP USER joe@localhost", "CREATE USER ann@localhost", "GRANT ALL ON *.* TO joe@localhost",
		"RENAME USER joe@localhost TO ann@localhost",
	} {
		if err := a.must(0, "BEGIN", "SELECT * FROM d.t"); err != nil {
			t.Fatal(err)
		}
		b.exec("UPDATE d.t SET v = v + 1")
		if _, _, err := a.run(q); !myerr.IsConflict(err) {
			t.Errorf("%s in a transaction that cannot commit: %v", q, err)
		}
		a.s.Abort()
		_ = a.s.TakeCommitError()
	}
	for _, q := range []string{
		"DROP USER joe@localhost, nobody@localhost", "CREATE USER ann@localhost, joe@localhost", "ALTER USER nobody@localhost IDENTIFIED BY 'x'",
		"RENAME USER joe@localhost TO ann@localhost, nobody@localhost TO x", "RENAME USER joe@localhost TO root@localhost",
		"RENAME USER joe@localhost TO " + strings.Repeat("x", 33), "RENAME USER joe@localhost TO x@" + strings.Repeat("x", 256),
		"GRANT SELECT ON d.t TO joe@localhost, nobody@localhost",
		"UPDATE mysql.user SET authentication_string = '' WHERE user = 'joe'", "DELETE FROM mysql.user", "DELETE FROM mysql.user WHERE user = 'joe' AND host = 'localhost'",
		"INSERT INTO mysql.role_edges VALUES ('localhost', 'joe', 'localhost', 'root', 'N')", "TRUNCATE TABLE mysql.user", "CREATE USER own@localhost", "RENAME USER joe@localhost TO own@localhost",
	} {
		if _, _, err := a.run(q); err == nil || myerr.IsConflict(err) {
			t.Errorf("%s: %v", q, err)
		}
	}
	for _, db := range []string{"", "d", "mysql"} {
		c := in.client(db)
		for _, q := range []string{"TRUNCATE TABLE mysql.user", "DELETE FROM mysql.user", "UPDATE mysql.user SET authentication_string = ''", "DELETE FROM mysql.role_edges"} {
			if _, _, err := c.run(q); err == nil || myerr.Of(err).Num != 1235 && db != "" { // without one go-mysql-server finds no database
				t.Errorf("in %q: %s: %v", db, q, err)
			}
		}
	}
	if err := a.must(0, "START TRANSACTION READ ONLY"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.run("CREATE USER ann@localhost"); err == nil || myerr.Of(err).Num != 1792 {
		t.Errorf("in a READ ONLY transaction: %v", err)
	}
	a.s.Abort()
	check := func() {
		t.Helper()
		if own, ok := in.password("own"); !ok || own == "" {
			t.Error("the server's own account is gone")
		}
		if now, ok := in.password("joe"); !ok || now != was {
			t.Errorf("joe's password is %q, was %q", now, was)
		}
		if _, ok := in.password("ann"); ok {
			t.Error("ann is there")
		}
		if rows := in.client("").exec("SHOW GRANTS FOR joe@localhost"); len(rows) != 1 {
			t.Errorf("joe has %v", rows)
		}
	}
	check()
	a.exec("CREATE USER other@localhost") // all accounts are read again
	check()
}

// Accounts survive a restart as statements have made them.
func TestAccountsAreStored(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	c := in.client("")
	for _, q := range []string{
		"CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "CREATE PROCEDURE d.p() SELECT 1",
		"CREATE USER joe@localhost IDENTIFIED BY 'secret' REQUIRE SSL", "CREATE ROLE reader, writer", "CREATE USER old@localhost", "CREATE USER gone",
		"GRANT SELECT ON d.* TO reader", "GRANT INSERT ON d.t TO writer", "GRANT EXECUTE ON PROCEDURE d.p TO joe@localhost",
		"GRANT REPLICATION_SLAVE_ADMIN ON *.* TO joe@localhost", "GRANT reader TO joe@localhost", "GRANT writer TO joe@localhost WITH ADMIN OPTION",
		"GRANT writer TO old@localhost", "RENAME USER old@localhost TO young@localhost, writer TO author", "DROP USER gone", "FLUSH PRIVILEGES",
	} {
		c.exec(q)
	}
	queries := []string{
		"SHOW GRANTS FOR joe@localhost", "SHOW GRANTS FOR young@localhost", "SHOW GRANTS FOR reader", "SHOW GRANTS FOR author",
		"SELECT user, host, plugin, authentication_string, ssl_type, account_locked FROM mysql.user ORDER BY user, host", "SELECT * FROM mysql.role_edges ORDER BY 1, 2, 3, 4",
	}
	var before [][]gms.Row
	for _, q := range queries {
		before = append(before, c.exec(q))
	}
	if len(before[4]) != 5 || len(before[5]) != 3 {
		t.Errorf("users %v, roles %v", before[4], before[5])
	}
	in.close()
	in = openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	for i, q := range queries {
		if now := in.client("").exec(q); !reflect.DeepEqual(now, before[i]) {
			t.Errorf("%s: %v, before %v", q, now, before[i])
		}
	}
	if err := in.check(); err != nil {
		t.Error(err)
	}
}

// Users that the previous version of farmsql has stored, all in one object, are found, and become
// rows with the first change of accounts. A program of the previous version then does not start,
// because it cannot see them.
func TestUsersOfTheVersionBefore(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openWith(t, cfg, Options{})
	before := mysql_db.CreateEmptyMySQLDb()
	before.AddRootAccount()
	var stored []byte
	before.SetPersister(keepIn{&stored})
	ed := before.Editor()
	ed.PutUser(&mysql_db.User{User: "joe", Host: "localhost", PrivilegeSet: mysql_db.NewPrivilegeSet(), Plugin: "mysql_native_password", AuthString: "*hash"})
	if err := before.Persist(gms.NewEmptyContext(), ed); err != nil {
		t.Fatal(err)
	}
	ed.Close()
	if err := in.e.Store.Machine.Run(context.Background(), func(tx *txn.Tx) error { return in.cat.PutSetting(tx, "users", stored) }); err != nil {
		t.Fatal(err)
	}
	in.close()
	for _, what := range []string{"at first", "after a change"} {
		in = openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
		if hash, ok := in.password("joe"); !ok || hash != "*hash" {
			t.Errorf("%s: joe's password is %q", what, hash)
		}
		if _, ok := in.password("ann"); ok != (what != "at first") {
			t.Errorf("%s: ann is there: %v", what, ok)
		}
		if hash, ok := in.password("root"); !ok || hash != "" {
			t.Errorf("%s: no root", what)
		}
		in.client("").exec("CREATE USER IF NOT EXISTS ann@localhost")
		in.close()
	}
	in = openWith(t, cfg, Options{})
	defer in.close()
	var left []byte
	if err := in.e.Store.Machine.Run(context.Background(), func(tx *txn.Tx) (err error) {
		left, err = in.cat.Setting(tx, "users")
		return err
	}); err != nil || len(left) == 0 {
		t.Fatalf("the setting of the version before is %q, %v", left, err)
	}
	if err := mysql_db.CreateEmptyMySQLDb().LoadData(gms.NewEmptyContext(), bytes.Clone(left)); err == nil {
		t.Error("the version before loads what it cannot know")
	}
}

// keepIn is a persister that keeps what it is given.
type keepIn struct{ to *[]byte }

// Persist implements mysql_db.MySQLDbPersistence.
func (k keepIn) Persist(_ *gms.Context, b []byte) error {
	*k.to = bytes.Clone(b)
	return nil
}

// A root account that was dropped does not come back, without a password, at the next start.
func TestRootStaysDropped(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	c := in.client("")
	c.exec("CREATE USER admin@localhost")
	c.exec("GRANT ALL ON *.* TO admin@localhost WITH GRANT OPTION")
	c.exec("DROP USER root@localhost")
	in.close()
	in = openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	if _, ok := in.password("root"); ok {
		t.Error("root is back")
	}
	in.as("admin", "").exec("CREATE USER other@localhost")
}

// Nor does it if dropping it is the first change of accounts ever.
func TestFirstChangeDropsRoot(t *testing.T) {
	cfg := testConfig
	cfg.Volatile = farm.NewVolatile()
	in := openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	in.client("").exec("DROP USER root@localhost")
	for range 2 {
		if _, ok := in.password("root"); ok {
			t.Error("root is there")
		}
		in.close()
		in = openWith(t, cfg, Options{Accounts: account.New(clock.System{}, false)})
	}
	in.close()
}

// REVOKE takes what GRANT has given, whatever the case of the names.
func TestRevokeOfCapitals(t *testing.T) {
	in := openWith(t, testConfig, Options{Accounts: account.New(clock.System{}, false)})
	defer in.close()
	c := in.client("")
	for _, q := range []string{"CREATE DATABASE MyDb", "CREATE TABLE MyDb.MyTable (id INT PRIMARY KEY)", "CREATE PROCEDURE MyDb.MyProc() SELECT 1", "CREATE USER joe@localhost"} {
		c.exec(q)
	}
	for _, what := range []string{"SELECT ON MyDb.*", "SELECT ON MyDb.MyTable", "INSERT ON MYDB.mytable", "EXECUTE ON PROCEDURE MyDb.MyProc"} {
		c.exec("GRANT " + what + " TO joe@localhost")
		c.exec("GRANT " + what + " TO joe@localhost")
		c.exec("REVOKE " + what + " FROM joe@localhost")
		if rows := c.exec("SHOW GRANTS FOR joe@localhost"); len(rows) != 1 {
			t.Errorf("after REVOKE %s: %v", what, rows)
		}
	}
	joe := in.as("joe", "MyDb")
	if _, _, err := joe.run("SELECT * FROM MyTable"); err == nil {
		t.Error("joe may read what he may not any more")
	}
}
