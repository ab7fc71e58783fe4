package test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// applicationsPath returns where .ci/run unpacks Debian's packages of applications.
func applicationsPath() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "applications"
	}
	return filepath.Join(cache, "farmsql", "applications")
}

// application returns the path of a file of an application's package, and skips the test if it is not there.
func application(t *testing.T, path string) string {
	t.Helper()
	path = filepath.Join(applicationsPath(), path)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("Debian's packages of applications are not here, which .ci/run fetches: %v", err)
	}
	return path
}

// The schemas of applications are made without an error, and have the rows that they have in MariaDB.
func TestApplicationSchemas(t *testing.T) {
	schemas := map[string][]string{
		"bacula":    {"bacula-director-mysql/usr/share/dbconfig-common/data/bacula-director-mysql/install/mysql"},
		"powerdns":  {"pdns-backend-mysql/usr/share/pdns-backend-mysql/schema/schema.mysql.sql", "pdns-backend-mysql/usr/share/pdns-backend-mysql/schema/enable-foreign-keys.mysql.sql"},
		"roundcube": {"roundcube-core/usr/share/roundcube/SQL/mysql.initial.sql"},
	}
	if os.Getenv("FARMSQL_NIGHTLY") != "" {
		schemas["icinga"] = []string{"icinga2-ido-mysql/usr/share/icinga2-ido-mysql/schema/mysql.sql"}
		const zabbix = "zabbix-server-mysql/usr/share/zabbix-server-mysql/"
		schemas["zabbix"] = []string{zabbix + "schema.sql.gz", zabbix + "images.sql.gz", zabbix + "data.sql.gz"} // 130,000 INSERTs in one transaction
	}
	hasTimes := map[string]bool{"icinga_dbversion": true} // of when it was made
	ours, theirs := start(t, t.TempDir()).asMySQL(), mariaDB(t)
	for name, files := range schemas {
		t.Run(name, func(t *testing.T) {
			var script bytes.Buffer
			script.WriteString("CREATE DATABASE " + name + " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin; USE " + name + ";\n")
			for _, file := range files {
				script.Write(readPlain(t, application(t, file)))
			}
			for _, s := range []mysqlServer{ours, theirs} {
				s.run(t, script.String())
			}
			got, want := ours.checksums(t, name), theirs.checksums(t, name)
			if len(want) == 0 || len(got) != len(want) {
				t.Fatalf("there are %d tables, %d in MariaDB", len(got), len(want))
			}
			for table, sum := range want {
				if got[table] != sum && !hasTimes[table] {
					t.Errorf("table %s has other rows than in MariaDB", table)
				}
			}
		})
	}
}

// readPlain reads a file, and decompresses it if need be.
func readPlain(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // only read
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// WordPress is installed, and finds what it finds with MariaDB.
func TestWordPress(t *testing.T) {
	needs(t, "php")
	source := application(t, "wordpress/usr/share/wordpress")
	ours, theirs := start(t, t.TempDir()), mariaDB(t)
	host, port := ours.hostPort()
	socket := strings.TrimPrefix(theirs.args[0], "--socket=")
	ours.asMySQL().run(t, "CREATE DATABASE wordpress")
	theirs.run(t, "CREATE DATABASE wordpress")
	got := wordPress(t, source, host+":"+port)
	if want := wordPress(t, source, "localhost:"+socket); got != want || !strings.HasSuffix(got, "last error: \n") {
		t.Errorf("got\n%s\nwith MariaDB\n%s", got, want)
	}
}

// wordPress runs the script on a database, and returns what it prints.
func wordPress(t *testing.T, source, db string) string {
	t.Helper()
	script, err := filepath.Abs("testdata/applications/wordpress.php")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "php", "-d", "html_errors=0", script)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "FARMSQL_DB_HOST="+db)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("php: %v\n%s\n%s", err, out, &said)
	}
	return string(out)
}
