package wire

import (
	stdsql "database/sql"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	protocol "github.com/dolthub/vitess/go/mysql"
	driverlib "github.com/go-sql-driver/mysql"
)

// Requests of former versions of the protocol do the same as the statements that have replaced them,
// for clients with the privileges.
func TestFormerRequests(t *testing.T) {
	s := startServer(t, Config{})
	mustExec(t, s.openLocal(t), "create user u@localhost", "grant select on test.* to u@localhost")
	victim, err := s.open(t, "").Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer victim.Close()
	var id uint32
	if err := victim.QueryRowContext(t.Context(), "select connection_id()").Scan(&id); err != nil {
		t.Fatal(err)
	}
	kill := binary.LittleEndian.AppendUint32([]byte{comProcessKill}, id)
	ask := func(c *rawClient, request []byte) (number uint16) {
		c.write(t, 0, request)
		if p := c.read(t); p[0] == 0xff {
			number = binary.LittleEndian.Uint16(p[1:])
		}
		return number
	}
	other := dialRawAs(t, s.addr, "u")
	if n := ask(other, kill); n != 1142 {
		t.Errorf("another user's connection: %d", n)
	}
	if n := ask(other, []byte{comRefresh, 1}); n != 1044 {
		t.Errorf("FLUSH PRIVILEGES without a privilege: %d", n)
	}
	root := dialRaw(t, s.addr)
	for _, request := range [][]byte{{comRefresh, 1}, {comRefresh, 4}, kill} {
		if n := ask(root, request); n != 0 {
			t.Errorf("%v: %d", request, n)
		}
	}
	if n := ask(root, binary.LittleEndian.AppendUint32([]byte{comProcessKill}, 1<<30)); n != 1094 {
		t.Errorf("nobody: %d", n)
	}
	if n := ask(root, []byte{comRefresh, 32}); n != 1047 {
		t.Errorf("what there is not: %d", n)
	}
	eventually(t, "its end", func() bool { return victim.PingContext(t.Context()) != nil })
	if got := root.exec(t, "select 42"); !strings.Contains(got, "42") {
		t.Errorf("the connection is out of step: %q", got)
	}
}

// Clients can prepare all statements that the engine knows, also those that the protocol library does
// not know; errors have MySQL's numbers.
func TestPrepared(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/?multiStatements=true")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	mustExec(t, db, "create database test", "create table test.t (id int primary key, a int)", "insert into test.t values (1, 10), (2, 20)")
	for query, want := range map[string]int{
		"select a from test.t where id = ? for share":                              20,
		"select a from test.t where id = any (select id from test.t where id = ?)": 20,
		"select a from test.t where id = ?; ":                                      20,
		"select a from test.t where id = ? ;--":                                    20,
		"select a from test.t where id = ?; /* of all */ -- there is":              20,
		"select /*! a */ from test.t /* ? :v1 */ where id = ? -- ?":                20,
		"select ? + length('" + strings.Repeat("x", 100_000) + "')":                100_002,
	} {
		stmt, err := db.Prepare(query)
		if err != nil {
			t.Errorf("%.80s: %v", query, err)
			continue
		}
		var got int
		if err := stmt.QueryRow(2).Scan(&got); err != nil || got != want {
			t.Errorf("%.80s: %d, %v", query, got, err)
		}
		must(t, stmt.Close())
	}
	do, err := db.Prepare("do sleep(?)")
	must(t, err)
	_, err = do.Exec(0)
	must(t, err)
	must(t, do.Close())
	for query, number := range map[string]uint16{
		"selec 1": 1064, "select 1; select 2": 1064, "select 1; selec": 1064, "load data infile '/x' into table test.t": 1295, "load data local infile '/x' into table test.t": 1295, "": 1065, "  ": 1065, "select * from test.nothing": 1146, "select b from test.t where id = ?": 1054,
	} {
		_, err := db.Prepare(query)
		if e := new(driverlib.MySQLError); !errors.As(err, &e) || e.Number != number {
			t.Errorf("%q: %v, want %d", query, err, number)
		}
	}
	kill, err := db.Prepare("kill 1073741824")
	if err == nil {
		_, err = kill.Exec()
	}
	if e := new(driverlib.MySQLError); !errors.As(err, &e) || e.Number != 1094 {
		t.Errorf("kill of nobody: %v", err)
	}
}

// The contents of a file that a client sends are not taken for requests, even if they look like them.
func TestFileLooksLikeRequests(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"SET GLOBAL local_infile = 1", "CREATE DATABASE test", "USE test", "CREATE TABLE t (a VARCHAR(100))"} {
		_, err := db.Exec(q)
		must(t, err)
	}
	const lines = 3 * 256 // each a packet, so that their numbers begin again with 0
	driverlib.RegisterReaderHandler("requests", func() io.Reader { return &lineReader{left: lines} })
	defer driverlib.DeregisterReaderHandler("requests")
	_, err = db.Exec("LOAD DATA LOCAL INFILE 'Reader::requests' INTO TABLE t")
	must(t, err)
	var got int
	must(t, db.QueryRow("SELECT COUNT(*) FROM t WHERE a = ?", "\x16SELEC").Scan(&got))
	if got != lines {
		t.Errorf("%d lines of %d", got, lines)
	}
}

// LOAD DATA runs the table's INSERT triggers: it ran none.
func TestTriggersOfLoadData(t *testing.T) {
	s := newFarmServer(t)
	db, err := stdsql.Open("mysql", "root@tcp("+s.addr.String()+")/")
	must(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{
		"SET GLOBAL local_infile = 1", "CREATE DATABASE test", "USE test", "CREATE TABLE t (a INT)", "CREATE TABLE log (a INT)",
		"CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW SET NEW.a = NEW.a * 10", "CREATE TRIGGER c AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (NEW.a + 1)",
	} {
		_, err := db.Exec(q)
		must(t, err)
	}
	driverlib.RegisterReaderHandler("numbers", func() io.Reader { return strings.NewReader("1\n2\n") })
	defer driverlib.DeregisterReaderHandler("numbers")
	_, err = db.Exec("LOAD DATA LOCAL INFILE 'Reader::numbers' INTO TABLE t")
	must(t, err)
	var rows, logged int
	must(t, db.QueryRow("SELECT (SELECT SUM(a) FROM t), (SELECT SUM(a) FROM log)").Scan(&rows, &logged))
	if rows != 30 || logged != 32 {
		t.Errorf("rows of %d, triggers saw %d", rows, logged)
	}
}

// A lineReader returns a line at a time.
type lineReader struct{ left int }

// Read implements io.Reader.
func (r *lineReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	return copy(p, "\x16SELEC\n"), nil
}

// A client that compresses though that is not offered is told so, and does not hang.
func TestCompressionIsRefused(t *testing.T) {
	s := startServer(t, Config{})
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	r := &rawClient{c}
	defer r.Close()
	r.read(t) // the greeting
	r.write(t, 1, append(binary.LittleEndian.AppendUint32(nil, protocol.CapabilityClientProtocol41|capabilityCompress), make([]byte, 40)...))
	if p := r.read(t); p[0] != 0xff || binary.LittleEndian.Uint16(p[1:]) != 1043 || !strings.Contains(string(p), "compression") {
		t.Errorf("%q", p)
	}
}
