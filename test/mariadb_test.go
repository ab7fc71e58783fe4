package test

import (
	stdsql "database/sql"
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// startMariaDB starts MariaDB in a folder of the test's, and returns a connection to it; nil
// if it is not installed.
func startMariaDB(t *testing.T) *stdsql.DB {
	t.Helper()
	for _, p := range []string{"mariadbd", "mariadb-install-db"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Logf("left out: %s is not installed, so nothing is compared with MariaDB", p)
			return nil
		}
	}
	dir := t.TempDir()
	data, socket := filepath.Join(dir, "data"), filepath.Join(dir, "s")
	install := exec.Command("mariadb-install-db", "--no-defaults", "--user=root", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	log := &lockedBuffer{}
	cmd := exec.Command("mariadbd", "--no-defaults", "--user=root", "--datadir="+data, "--skip-networking", "--socket="+socket,
		"--character-set-server=utf8mb4", "--sql-mode=STRICT_TRANS_TABLES,ONLY_FULL_GROUP_BY", "--innodb-buffer-pool-size=32M")
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@unix(%s)/", socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for end := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
		if err = db.Ping(); err == nil {
			return db
		}
		if time.Now().After(end) {
			t.Fatalf("mariadbd is not ready: %v\n%s", err, log)
		}
	}
}
