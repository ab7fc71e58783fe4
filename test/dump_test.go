package test

import (
	"bytes"
	"context"
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A mysqlServer is a server that mariadb and mariadb-dump can reach.
type mysqlServer struct {
	name string
	args []string // how clients reach it
}

func (s *server) asMySQL() mysqlServer {
	host, port := s.hostPort()
	return mysqlServer{"farmsql", []string{"--host=" + host, "--port=" + port}}
}

// client runs one of MariaDB's programs against the server.
func (s mysqlServer) client(t *testing.T, stdin []byte, program string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	args = slices.Concat([]string{"--no-defaults"}, s.args, []string{"--user=root", "--default-character-set=utf8mb4"}, args)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		message := said.String()
		t.Fatalf("%s: %s %v: %v\n%s", s.name, program, args, err, message[max(0, len(message)-2000):])
	}
	return out.Bytes()
}

func (s mysqlServer) run(t *testing.T, sql string) {
	t.Helper()
	s.client(t, []byte(sql), "mariadb", "--binary-mode")
}

func (s mysqlServer) query(t *testing.T, sql string) string {
	t.Helper()
	return string(s.client(t, []byte(sql), "mariadb", "--skip-column-names", "--raw", "--batch"))
}

func (s mysqlServer) dump(t *testing.T, args ...string) []byte {
	t.Helper()
	return s.client(t, nil, "mariadb-dump", args...)
}

// everything are the flags for the parts of a dump other than tables and rows.
var everything = []string{"--routines", "--triggers", "--events", "--single-transaction"}

// checksums returns an MD5 of the rows of each table and view, in order.
func (s mysqlServer) checksums(t *testing.T, schema string) map[string]string {
	t.Helper()
	sums := make(map[string]string)
	for table := range strings.FieldsSeq(s.query(t, "SELECT table_name FROM information_schema.tables WHERE table_schema = '"+schema+"'")) {
		columns := s.query(t, fmt.Sprintf("USE %s; SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = '%s' ORDER BY ordinal_position", schema, table))
		var values []string
		for line := range strings.Lines(columns) {
			name, kind, _ := strings.Cut(strings.TrimSpace(line), "\t")
			values = append(values, readable(name, kind))
		}
		all := s.query(t, fmt.Sprintf("USE %s; SELECT %s FROM `%s`", schema, strings.Join(values, ", "), table))
		all = strings.ReplaceAll(all, ".000000", "") // a TIME of ours is one of six digits, all of which MariaDB writes
		rows := strings.Split(all, "\n")
		slices.Sort(rows)
		sums[table] = fmt.Sprintf("%d rows %x", len(rows)-1, md5.Sum([]byte(strings.Join(rows, "\n"))))
	}
	return sums
}

// readable returns an expression for a column that all servers print alike.
func readable(name, kind string) string {
	name = "`" + strings.ReplaceAll(name, "`", "``") + "`"
	switch kind {
	case "int": // which may be ZEROFILL
		return name + " + 0"
	case "bit", "blob", "longblob", "binary", "varbinary":
		return "HEX(" + name + ")"
	}
	return name
}

// definitions returns a database's definitions as in a dump, without parts that depend on the time.
func (s mysqlServer) definitions(t *testing.T, schema string) string {
	t.Helper()
	return string(s.dump(t, slices.Concat(everything, []string{"--no-data", "--skip-comments", schema})...))
}

// compareWith fails the test where two databases differ.
func (s mysqlServer) compareWith(t *testing.T, schema string, other mysqlServer, otherSchema string) {
	t.Helper()
	got, want := s.checksums(t, schema), other.checksums(t, otherSchema)
	if len(want) == 0 {
		t.Errorf("%s has no tables in %s", other.name, otherSchema)
	}
	for table, sum := range want {
		if got[table] != sum {
			t.Errorf("%s: %s has %s, %s has %s", table, s.name, got[table], other.name, sum)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d tables, %s has %d", s.name, len(got), other.name, len(want))
	}
}

// mariaDB starts a MariaDB server with a folder of its own, which ends with the test.
func mariaDB(t *testing.T) mysqlServer {
	t.Helper()
	needs(t, "mariadbd")
	needs(t, "mariadb-install-db")
	dir, err := os.MkdirTemp("", "mdb") // short, for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "socket")
	common := []string{"--no-defaults", "--datadir=" + data}
	if os.Geteuid() == 0 {
		common = append(common, "--user=root")
	}
	install := exec.CommandContext(t.Context(), "mariadb-install-db", append(common, "--auth-root-authentication-method=normal", "--skip-test-db")...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	log := &lockedBuffer{}
	cmd := exec.Command("mariadbd", append(common, "--socket="+socket, "--pid-file="+filepath.Join(dir, "pid"), "--skip-networking",
		"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=16M", "--max-allowed-packet=64M", "--character-set-server=utf8mb4")...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how a server of others ends is not what is tested
	})
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			return mysqlServer{"MariaDB", []string{"--socket=" + socket}}
		}
		if time.Now().After(deadline) {
			t.Fatalf("MariaDB is not ready after %v\n%s", startTimeout, log)
		}
	}
}

// sample reads a script that fills a database, and adds rows that have all bytes and all bits.
func sample(t *testing.T, name, schema string) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("testdata", "dump", name))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE DATABASE %s CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE %s;\n%s", schema, schema, script)
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	fmt.Fprintf(&b, "INSERT INTO bytes VALUES (1, 0x%x, 0x%x, 0x%x, b'1'), (2, '', '', '', b'0'), (3, NULL, NULL, NULL, NULL);\n", all, all, bytes.Repeat(all[:], 1000))
	for i := range 64 {
		fmt.Fprintf(&b, "INSERT INTO bytes (id, bits) VALUES (%d, %d);\n", 100+i, uint64(1)<<i)
	}
	return b.String()
}

// A dump of farmsql restores the same databases, on another server and, a second time, on the same
// one.
func TestDumpOfOurs(t *testing.T) {
	needs(t, "mariadb")
	needs(t, "mariadb-dump")
	from, to := start(t, t.TempDir()).asMySQL(), start(t, t.TempDir()).asMySQL()
	from.run(t, sample(t, "ours.sql", "sample"))
	dump := from.dump(t, append(everything, "--databases", "sample")...)
	for range 2 { // over what is there
		to.client(t, dump, "mariadb", "--binary-mode")
		to.compareWith(t, "sample", from, "sample")
		if got, want := to.definitions(t, "sample"), from.definitions(t, "sample"); got != want {
			t.Errorf("definitions: got\n%s\nwant\n%s", got, want)
		}
	}
	if !bytes.Contains(from.dump(t, "--hex-blob", "sample", "kinds"), []byte("0xFFFFFFFFFFFFFFFF")) {
		t.Error("--hex-blob does not know that a BIT is no text")
	}
	// The restored database must also work, and not only look the same.
	to.run(t, "USE sample; INSERT INTO kinds (parent) VALUES (1); CALL add_up(1, @b);")
	if got := to.query(t, "USE sample; SELECT e, s, b8 + 0, doubled, what FROM kinds JOIN log ON what LIKE 'insert%' ORDER BY kinds.id DESC, log.id DESC LIMIT 1"); got != "b'c\tr,x\t5\t6\tinsert; 3\n" {
		t.Errorf("defaults and trigger: %q", got)
	}
}

// MariaDB can restore a dump of farmsql, and farmsql a dump of MariaDB.
func TestDumpsOfMariaDB(t *testing.T) {
	needs(t, "mariadb")
	needs(t, "mariadb-dump")
	ours, theirs := start(t, t.TempDir()).asMySQL(), mariaDB(t)
	for _, direction := range []struct {
		name     string
		from, to mysqlServer
	}{{"ours", ours, theirs}, {"theirs", theirs, ours}} {
		t.Run(direction.name, func(t *testing.T) {
			from, to := direction.from, direction.to
			from.run(t, sample(t, "both.sql", direction.name))
			dump := from.dump(t, append(everything, "--databases", direction.name)...)
			// The default collation of MySQL 8 is one that MariaDB 10 does not have.
			dump = bytes.ReplaceAll(dump, []byte("utf8mb4_0900_ai_ci"), []byte("utf8mb4_general_ci"))
			to.client(t, dump, "mariadb", "--binary-mode")
			to.compareWith(t, direction.name, from, direction.name)
			to.run(t, "USE "+direction.name+"; INSERT INTO kinds (parent) VALUES (1);")
			if got := to.query(t, "USE "+direction.name+"; SELECT e, doubled, what FROM kinds JOIN log ON what LIKE 'insert%' ORDER BY kinds.id DESC, log.id DESC LIMIT 1"); got != "b'c\t6\tinsert; 3\n" {
				t.Errorf("defaults and trigger: %q", got)
			}
		})
	}
}
