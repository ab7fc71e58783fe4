package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// as connects as a user without a password.
func (s *server) as(t *testing.T, user, schema string) *stdsql.DB {
	t.Helper()
	db, err := stdsql.Open("mysql", fmt.Sprintf("%s@tcp(%s)/%s", user, s.addr, schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// ends runs a statement and returns the number of its error, 0 if it has none.
func ends(db *stdsql.DB, statement string) uint16 {
	rows, err := db.Query(statement)
	if err == nil {
		for rows.Next() {
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	return numberOf(err)
}

// Statements that need a privilege are refused without it.
func TestPrivileges(t *testing.T) {
	s := start(t, t.TempDir())
	root := s.open(t, "p")
	exec1(t, root,
		"create table secret (id int primary key, v int)", "insert into secret values (1, 1)", "create database own",
		"create user u@localhost", "grant all on own.* to u@localhost", "create user reader@localhost", "grant all on own.* to reader@localhost",
		"grant select, references on p.secret to reader@localhost", "create table open (id int primary key)", "create user near@localhost", "grant all on own.* to near@localhost", "grant select on p.open to near@localhost",
		"create user setter@localhost", "grant super on *.* to setter@localhost",
		"create user filer@localhost", "grant file on *.* to filer@localhost", "create table own.own (id int primary key)",
	)
	for _, c := range []struct {
		user, statement string
		number          uint16
	}{
		{"u", "select 1 into outfile '/tmp/farmsql-no'", 1227},
		{"u", "select 1 into dumpfile '/tmp/farmsql-no'", 1227},
		{"u", "load data infile '/etc/passwd' into table own.own", 1142},
		{"u", "set global autocommit = 0", 1227},
		{"u", "set @@global.max_connections = 1", 1227},
		{"u", "set persist sql_mode = ''", 1227},
		{"u", "set session sql_mode = '', global sql_mode = ''", 1227},
		{"u", "set session sql_mode = ''", 0},
		{"u", "create table own.l like p.secret", 1044},
		{"near", "create table own.l like p.secret", 1142},
		{"near", "create table own.c (id int primary key, f int, foreign key (f) references p.secret (id))", 1142},
		{"near", "create table own.c (id int primary key, f int references p.secret (id))", 1142},
		{"near", "alter table own.own add foreign key (id) references p.secret (id)", 1142},
		{"near", "alter table own.own add column f int, add foreign key (f) references p.open (id)", 1142},
		{"near", "create table own.n like p.open", 0},
		{"u", "create table own.self (id int primary key, f int, foreign key (f) references self (id))", 0},
		{"reader", "create table own.l like p.secret", 0},
		{"reader", "create table own.c (id int primary key, f int, foreign key (f) references p.secret (id))", 0},
		{"u", "create database other", 1044},
		{"near", "drop database p", 1142},
		{"u", "create database if not exists own", 0},
		{"setter", "set global long_query_time = 10", 0},
		{"filer", "select 1 into outfile '/tmp/farmsql-no'", 1290}, // there is no folder for that
		{"root", "select 1 into outfile '/tmp/farmsql-no'", 1290},
		{"root", "load data infile '/etc/passwd' into table own.own", 1290},
	} {
		if number := ends(s.as(t, c.user, "own"), c.statement); number != c.number {
			t.Errorf("%s: %s: error %d, want %d", c.user, c.statement, number, c.number)
		}
	}
	var content, folder *string
	if err := root.QueryRow("select load_file('/etc/passwd'), @@secure_file_priv").Scan(&content, &folder); err != nil || content != nil || folder != nil {
		t.Errorf("LOAD_FILE: %v, %v, %v", content, folder, err)
	}
}

// A user sees statements of others only with the privilege for that.
func TestStatementsOfOthers(t *testing.T) {
	s := start(t, t.TempDir())
	root := s.open(t, "p")
	exec1(t, root, "create user u@localhost", "create user watcher@localhost", "grant process on *.* to watcher@localhost")
	for user, want := range map[string]bool{"u": false, "watcher": true, "root": true} {
		var own, others int
		err := s.as(t, user, "").QueryRow("select sum(user = ?), sum(user <> ?) from information_schema.processlist", user, user).Scan(&own, &others)
		if err != nil || own == 0 || user != "root" && others > 0 != want {
			t.Errorf("%s: %d of its own, %d of others, %v", user, own, others, err)
		}
	}
}

// Statements about the user's own account need no privilege, and show no other account.
func TestOneself(t *testing.T) {
	s := start(t, t.TempDir())
	root := s.open(t, "p")
	exec1(t, root, "create user u@localhost", "create user other@localhost", "grant select on p.* to u@localhost")
	db := s.as(t, "u", "p")
	kept, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	for _, q := range []string{"show grants", "show grants for current_user()"} {
		rows, err := db.Query(q)
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		var said []string
		for rows.Next() {
			var grant string
			if err := rows.Scan(&grant); err != nil {
				t.Error(err)
			}
			said = append(said, grant)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || !strings.Contains(strings.Join(said, "\n"), "GRANT SELECT ON `p`.* TO `u`@`localhost`") {
			t.Errorf("%s: %q, %v", q, said, err)
		}
	}
	users := make(map[string]int)
	rows, err := db.Query("show processlist")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var user string
		var rest [7]any
		if err := rows.Scan(&rest[0], &user, &rest[1], &rest[2], &rest[3], &rest[4], &rest[5], &rest[6]); err != nil {
			t.Fatal(err)
		}
		users[user]++
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || users["u"] == 0 || len(users) != 1 {
		t.Errorf("%v, %v", users, err)
	}
	idOf := func(q interface {
		QueryRowContext(context.Context, string, ...any) *stdsql.Row
	}) (id int) {
		if err := q.QueryRowContext(t.Context(), "select connection_id()").Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	others, err := s.as(t, "other", "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	for q, want := range map[string]uint16{fmt.Sprint("kill ", idOf(others)): 1095, fmt.Sprint("kill query ", idOf(others)): 1095, "kill 1073741824": 1094, fmt.Sprint("kill ", idOf(kept)): 0, "show grants for other@localhost": 1044} {
		if number := ends(db, q); number != want {
			t.Errorf("%s: %d, want %d", q, number, want)
		}
	}
	if err := others.PingContext(t.Context()); err != nil {
		t.Errorf("the other's connection: %v", err)
	}
}

// A procedure has the rights of its definer, in every kind of call. Its writer gains no rights if
// another user calls it. A user who may call it may do through it what it does, and nothing else.
func TestDefiners(t *testing.T) {
	s := start(t, t.TempDir())
	root := s.open(t, "p")
	exec1(t, root,
		"create table secret (id int primary key)", "insert into secret values (7)", "create database own", "create table own.t (id int primary key)", "create table own.loot (id int)",
		"create user u@localhost", "create user v@'%'", "grant all on own.* to u@localhost",
		"create procedure count_them() select count(*) from secret", "create procedure as_caller() sql security invoker select count(*) from secret",
		"grant execute on procedure p.count_them to v@'%'", "grant execute on procedure p.as_caller to v@'%'",
	)
	exec1(t, s.as(t, "u", "own"),
		"create procedure take() insert into own.loot select id from p.secret", "create procedure rise() sql security definer grant all on *.* to u@localhost",
		"create procedure fine() insert into own.loot values (1)", "create trigger tg before insert on own.t for each row call take()",
	)
	for _, c := range []struct {
		user, statement string
		number          uint16
	}{
		{"root", "call own.take()", 1044},
		{"root", "call own.rise()", 1142},
		{"root", "insert into own.t values (1)", 1044},
		{"root", "call own.fine()", 0},
		{"v", "call p.count_them()", 0},
		{"v", "call p.as_caller()", 1142},
		{"v", "select count(*) from p.secret", 1142},
		{"u", "create definer = root@localhost procedure own.more() select * from p.secret", 1227},
		{"u", "create definer = u@localhost procedure own.more() select 1", 0},
		{"root", "create definer = gone@localhost procedure own.late() select 1", 0},
		{"root", "call own.late()", 1449},
		{"root", "select * from p.secret", 0}, // whatever failed before
	} {
		if number := ends(s.as(t, c.user, ""), c.statement); number != c.number {
			t.Errorf("%s: %s: error %d, want %d", c.user, c.statement, number, c.number)
		}
	}
	var n, rows int
	if err := root.QueryRow("select (select count(*) from own.loot), (select count(*) from own.t)").Scan(&n, &rows); err != nil || n != 1 || rows != 0 {
		t.Errorf("%d taken, %d rows, %v", n, rows, err)
	}
	var name, mode, text, rest string
	err := root.QueryRow("show create procedure own.take").Scan(&name, &mode, &text, &rest, &rest, &rest)
	if err != nil || !strings.HasPrefix(text, "create DEFINER=`u`@`localhost` procedure") {
		t.Errorf("%q, %v", text, err)
	}
}

// Users with the privilege can read and write files in the folder for that.
func TestSecureFilePriv(t *testing.T) {
	outside, folder := t.TempDir(), t.TempDir()
	s := start(t, t.TempDir(), "--secure-file-priv", folder)
	root := s.open(t, "f")
	exec1(t, root, "create table t (a int primary key, b text)", "create user u@localhost", "grant all on f.* to u@localhost")
	if err := os.WriteFile(filepath.Join(outside, "file"), []byte("1\tx\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "file"), filepath.Join(folder, "linked")); err != nil {
		t.Fatal(err)
	}
	u := s.as(t, "u", "f")
	for path, number := range map[string]uint16{
		filepath.Join(folder, "out"): 0, filepath.Join(outside, "out"): 1290, folder + "-beside": 1290, filepath.Join(folder, "link", "out"): 1290,
		folder + "/../out": 1290, "out": 1290, folder: 1290,
	} {
		if got := ends(root, fmt.Sprintf("select 1, 'x' into outfile '%s'", path)); got != number {
			t.Errorf("into outfile %s: error %d, want %d", path, got, number)
		}
	}
	for path, content := range map[string]string{
		filepath.Join(folder, "out"): "1\tx\n", filepath.Join(outside, "file"): "", filepath.Join(folder, "link", "file"): "", filepath.Join(folder, "linked"): "",
		folder: "", filepath.Join(folder, "missing"): "", "": "",
	} {
		for _, db := range []*stdsql.DB{root, u} {
			var got *string
			err := db.QueryRow("select load_file(?)", path).Scan(&got)
			want := content
			if db == u {
				want = ""
			}
			if err != nil || (got != nil) != (want != "") || got != nil && *got != want {
				t.Errorf("load_file(%s): %v, %v, want %q", path, got, err, want)
			}
		}
	}
	load := func(path string) string { return fmt.Sprintf("load data infile '%s' into table t", path) }
	got := []uint16{ends(root, load(filepath.Join(folder, "linked"))), ends(root, load(filepath.Join(folder, "out"))), ends(u, load(filepath.Join(folder, "out")))}
	if want := []uint16{1290, 0, 1142}; !slices.Equal(got, want) {
		t.Errorf("LOAD DATA: errors %v, want %v", got, want)
	}
	var n int
	if err := root.QueryRow("select count(*) from t where a = 1 and b = 'x'").Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside: %v, %v", entries, err)
	}
}
