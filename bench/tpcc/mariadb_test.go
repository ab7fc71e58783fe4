package tpcc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/bench"
)

// The benchmark also runs on other servers, whose transactions wait for locks and can deadlock.
func TestMariaDB(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a MariaDB server")
	}
	tg, w := open(t, bench.TargetConfig{API: bench.SQL, DSN: mariaDB(t)}, small)
	run(t, tg, w, bench.Options{Threads: 3, Transactions: 100, Seed: 1})
}

// mariaDB starts a server that ends with the test, and returns its DSN. If none is installed, it
// skips the test.
func mariaDB(t *testing.T) (dsn string) {
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		t.Skip("SKIPPED: mariadb-install-db is not in the PATH")
	}
	folder, err := os.MkdirTemp("", "tpcc") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	data, socket := filepath.Join(folder, "data"), filepath.Join(folder, "s")
	out, err := exec.Command(install, "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--datadir="+data).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := exec.Command("mariadbd", "--no-defaults", "--user=root", "--datadir="+data, "--socket="+socket, "--skip-networking",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	})
	dsn = "root@unix(" + socket + ")/"
	for range 600 {
		tg, err := bench.Open(context.Background(), bench.TargetConfig{API: bench.SQL, DSN: dsn})
		if err == nil {
			if err := tg.Close(); err != nil {
				t.Fatal(err)
			}
			return dsn
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("MariaDB did not start")
	return ""
}
