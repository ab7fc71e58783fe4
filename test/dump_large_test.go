package test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// dumpTables is the number of tables of a large dump, and dumpRowBytes the approximate length of a
// row.
const (
	dumpTables   = 8
	dumpRowBytes = 2048
)

// dumpTimeout bounds one copy of a dump.
const dumpTimeout = 30 * time.Minute

func dumpMegabytes(t *testing.T) int {
	if text := os.Getenv("FARMSQL_DUMP_MB"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if nightly {
		return 1024
	}
	return 16
}

// TestLargeDumps passes the output of mariadb-dump directly to mariadb: from farmsql to farmsql, to
// MariaDB, and back. The dump has FARMSQL_DUMP_MB (16; 1,024 in the nightly mode). A checksum of
// each table shows whether the rows are the same. farmsql needs room for the rows of one table,
// since it sends them only once all of them are known to be right.
func TestLargeDumps(t *testing.T) {
	needs(t, "mariadb")
	needs(t, "mariadb-dump")
	megabytes := dumpMegabytes(t)
	room := fmt.Sprintf("%dMiB", 64+2*megabytes/dumpTables)
	begin := func() (*server, mysqlServer) {
		s := start(t, t.TempDir(), "--region-size", "256MiB", "--log-size", "32MiB", "--result-buffer", room, "--statement-memory", fmt.Sprintf("%dMiB", 256+4*megabytes))
		return s, s.asMySQL()
	}
	one, ours := begin()
	two, ours2 := begin()
	theirs := mariaDB(t)
	ours.fill(t, megabytes)
	want := ours.largeSums(t)
	for _, way := range []struct {
		name     string
		from, to mysqlServer
	}{{"ours to ours", ours, ours2}, {"ours to MariaDB", ours, theirs}, {"MariaDB to ours", theirs, ours2}} {
		t.Run(way.name, func(t *testing.T) {
			way.to.run(t, "DROP DATABASE IF EXISTS large")
			begun := time.Now()
			copyDump(t, way.from, way.to, "large")
			t.Logf("%d MB in %v", megabytes, time.Since(begun).Round(time.Millisecond))
			if got := way.to.largeSums(t); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			way.to.run(t, "USE large; INSERT INTO big0 (id, parent) VALUES (-1, 1);")
			if got := way.to.query(t, "USE large; SELECT e, b + 0, twice, thrice FROM big0 WHERE id = -1; SELECT COUNT(*) FROM log WHERE what = 'big -1'"); got != "b'c\t5\t-2\t-3\n1\n" {
				t.Errorf("defaults, generated columns and trigger: %q", got)
			}
			way.to.run(t, "USE large; DELETE FROM big0 WHERE id = -1; DELETE FROM log WHERE what = 'big -1';")
		})
	}
	t.Logf("at most %d and %d MB resident, of which the rows in memory are a part", residentBytes(t, one, "VmHWM")>>20, residentBytes(t, two, "VmHWM")>>20)
}

// fill makes the database whose dump is large.
func (s mysqlServer) fill(t *testing.T, megabytes int) {
	t.Helper()
	s.run(t, sample(t, "both.sql", "large"))
	read, write := io.Pipe()
	go func() {
		w := bufio.NewWriter(write)
		writeLarge(w, megabytes)
		_ = w.Flush() // of a pipe, whose other end says what fails
		_ = write.Close()
	}()
	s.pipe(t, read, nil, "mariadb", "large")
}

// writeLarge writes the statements that fill the tables.
func writeLarge(w io.Writer, megabytes int) {
	random := rand.New(rand.NewPCG(1, 2))
	const rowsAtOnce = 256
	for table := range dumpTables {
		fmt.Fprintf(w, `CREATE TABLE big%d (id BIGINT PRIMARY KEY, parent INT UNSIGNED, e ENUM('a', 'b''c', 'd,e') NOT NULL DEFAULT 'b''c', b BIT(20) DEFAULT b'101', body MEDIUMTEXT,
			twice BIGINT AS (id * 2) STORED, thrice BIGINT AS (id * 3) VIRTUAL, KEY (e), KEY (twice), FOREIGN KEY (parent) REFERENCES parents (id));
		CREATE VIEW seen%d AS SELECT p.name, COUNT(*) n FROM big%d JOIN parents p ON parent = p.id GROUP BY p.name;
		CREATE TRIGGER big%d_ai AFTER INSERT ON big%d FOR EACH ROW INSERT INTO log (what) SELECT CONCAT('big ', NEW.id) FROM DUAL WHERE NEW.id < 0;
		`, table, table, table, table, table)
		for id := 0; id < megabytes<<20/dumpTables/dumpRowBytes; id += rowsAtOnce {
			var rows []string
			for i := range rowsAtOnce {
				text := strings.Repeat(strconv.FormatUint(random.Uint64(), 36)+`\\'é`, dumpRowBytes/17)
				rows = append(rows, fmt.Sprintf("(%d, %d, %d, %d, '%s')", id+i, 1+random.IntN(3), 1+random.IntN(3), random.IntN(1<<20), strings.ReplaceAll(text, "'", "''")))
			}
			fmt.Fprintf(w, "INSERT INTO big%d (id, parent, e, b, body) VALUES %s;\n", table, strings.Join(rows, ","))
		}
	}
}

// copyDump copies one server's dump to another. MariaDB 10 does not have the default collation of
// MySQL 8.
func copyDump(t *testing.T, from, to mysqlServer, schema string) {
	t.Helper()
	dump, other := io.Pipe()
	sed := exec.CommandContext(t.Context(), "sed", "s/utf8mb4_0900_ai_ci/utf8mb4_general_ci/g")
	sed.Env = append(os.Environ(), "LC_ALL=C")
	sed.Stdin = dump
	restored, err := sed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := sed.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		from.pipe(t, nil, other, "mariadb-dump", append(everything, "--databases", schema)...)
		_ = other.Close()
	}()
	to.pipe(t, restored, nil, "mariadb", "--binary-mode")
	<-done
	if err := sed.Wait(); err != nil {
		t.Error(err)
	}
}

// pipe runs one of MariaDB's programs, whose input and output are never whole in memory.
func (s mysqlServer) pipe(t *testing.T, stdin io.Reader, stdout io.Writer, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), dumpTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, slices.Concat([]string{"--no-defaults"}, s.args, []string{"--user=root", "--default-character-set=utf8mb4"}, args)...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &said
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %s: %v\n%s", s.name, program, err, lastBytes(said.String()))
	}
}

// largeSums returns a checksum of each large table's rows, which the server computes.
func (s mysqlServer) largeSums(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("USE large;\n")
	for table := range dumpTables {
		fmt.Fprintf(&b, "SELECT 'big%d', COUNT(*), SUM(CRC32(CONCAT_WS('|', id, parent, e, b + 0, body, twice, thrice))), SUM(LENGTH(body)) FROM big%d WHERE id >= 0;\nSELECT * FROM seen%d ORDER BY name;\n", table, table, table)
	}
	b.WriteString("SELECT COUNT(*) FROM kinds; SELECT COUNT(*) FROM parents;\n")
	return s.query(t, b.String())
}
