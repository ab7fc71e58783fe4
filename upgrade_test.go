package farmsql

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/internal/protocol"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// testdata/bank.tar.gz is the folder of a database with two machines and two replicas, made by
// commit c403f8d, and killed while four sessions transferred between twenty accounts of 1000
// each. Its machines have no identity.
func bankFolder(t *testing.T) string { return unpacked(t, "testdata/bank.tar.gz", 2) }

// testdata/cluster.tar.gz is the folder of a cluster of three machines with two replicas. The
// machines were processes of commit af0a729, and were killed while three sessions transferred
// between the same accounts. The configuration has format 3. testdata/save.tar.gz is a save of that
// folder, made by farmsql save of that commit.
func clusterFolder(t *testing.T) string { return unpacked(t, "testdata/cluster.tar.gz", 3) }

// unpacked returns a copy of the folder in an archive, as if it had never been elsewhere.
func unpacked(t *testing.T, archive string, machines int) string {
	t.Helper()
	folder := t.TempDir()
	if out, err := exec.Command("tar", "-xzf", archive, "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for machine := range machines {
		path := filepath.Join(machineFolder(folder, rdma.MachineID(machine)), "FARMSQL")
		b, err := os.ReadFile(path)
		if err == nil {
			b = regexp.MustCompile(`(?m)^boot .*$`).ReplaceAll(b, []byte("boot "+strings.TrimSpace(string(boot))))
			b = regexp.MustCompile(`(?m)^lock .*\n`).ReplaceAll(b, nil)
			err = os.WriteFile(path, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func checkBank(t *testing.T, db *DB) {
	t.Helper()
	var n, total int
	if err := db.SQL().QueryRow("SELECT COUNT(*), SUM(balance) FROM bank.account WHERE name LIKE 'account %'").Scan(&n, &total); err != nil || n != 20 || total != 20_000 {
		t.Errorf("%d accounts with %d, %v", n, total, err)
	}
}

func checkAll(t *testing.T, db *DB) {
	t.Helper()
	if r, err := db.Check(t.Context()); err != nil || !r.OK() {
		t.Errorf("%v, %v", r, err)
	}
}

// A folder of an earlier version opens, and has everything that was committed. From then on it is a
// folder of this version. It can be saved before it is opened, too.
func TestFolderOfAnEarlierVersion(t *testing.T) {
	folder := bankFolder(t)
	save, restored := filepath.Join(t.TempDir(), "save"), t.TempDir()
	if _, err := Save(Offline{Data: []string{folder}}, save); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(Offline{Data: []string{restored}}, save, false); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{folder, restored} {
		for range 2 {
			db := mustOpen(t, Config{Folder: folder})
			if db.Machines() != 2 {
				t.Errorf("%d machines", db.Machines())
			}
			checkBank(t, db)
			if _, err := db.SQL().Exec("UPDATE bank.account SET balance = balance + 1 - 1, name = CONCAT(name, '')"); err != nil {
				t.Error(err)
			}
			checkAll(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The folder that a cluster of the previous version has left, and a save of it, open in one process
// with everything in them. From then on the configuration is one of this version.
func TestClusterOfTheVersionBefore(t *testing.T) {
	save, restored, again := t.TempDir(), t.TempDir(), t.TempDir()
	if out, err := exec.Command("tar", "-xzf", "testdata/save.tar.gz", "-C", save).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := Restore(Offline{Data: []string{restored}}, save, false); err != nil {
		t.Fatal(err)
	}
	folder := clusterFolder(t)
	ours := filepath.Join(t.TempDir(), "save")
	if _, err := Save(Offline{Data: []string{folder}}, ours); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(Offline{Data: []string{again}}, ours, false); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"as it was left": folder, "its save": restored, "a save of it": again} {
		for life, format := range []string{`"Format": 3`, `"Format": 6`} {
			if b, err := os.ReadFile(filepath.Join(folder, configurationName)); err != nil || !bytes.Contains(b, []byte(format)) {
				t.Errorf("%s, life %d: %v, %s", name, life, err, b)
			}
			db := mustOpen(t, Config{Folder: folder})
			if s := db.Status(); db.Machines() != 3 || s.Protocol != int(protocol.Own.Max) {
				t.Errorf("%s: %d machines, protocol %d", name, db.Machines(), s.Protocol)
			}
			checkBank(t, db)
			if _, err := db.SQL().Exec("UPDATE bank.account SET balance = balance + 1 - 1, name = CONCAT(name, '')"); err != nil {
				t.Error(err)
			}
			checkAll(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The way back: restoring the save over the folder that has gone on brings back the former
	// format.
	if _, err := Restore(Offline{Data: []string{restored}}, save, true); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(restored, configurationName)); err != nil || !bytes.Contains(b, []byte(`"Format": 3`)) {
		t.Errorf("restored over a later version: %v, %s", err, b)
	}
}

// An instance of one process goes on with machines that are processes of their own, and another
// machine joins them. Then all go back into one process, which refuses to begin without one of
// them.
func TestOneProcessBecomesACluster(t *testing.T) {
	skipOnHeap(t)
	one := t.TempDir()
	db := mustOpen(t, small(one))
	for _, q := range []string{"CREATE DATABASE bank", "CREATE TABLE bank.account (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), balance INT)"} {
		if _, err := db.SQL().Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if _, err := db.SQL().Exec("INSERT INTO bank.account (name, balance) VALUES ('account x', 1000)"); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"a machine": one, "two of an earlier version": bankFolder(t), "three processes of the version before": clusterFolder(t)} {
		t.Run(name, func(t *testing.T) { becomesACluster(t, folder) })
	}
}

func becomesACluster(t *testing.T, folder string) {
	before, _, err := farm.Stored(folder)
	if err != nil {
		t.Fatal(err)
	}
	shared, elsewhere := t.TempDir(), t.TempDir()
	machine := func(id int, data string) Config {
		return Config{Folder: data, Cluster: "file://" + filepath.Join(folder, configurationName), MachineID: id, SharedFolder: shared}
	}
	opened := make(chan *DB)
	for id := range before.Machines {
		go func() {
			db, err := Open(machine(id, folder))
			if err != nil {
				t.Error(err)
			}
			opened <- db
		}()
	}
	var dbs []*DB
	for range before.Machines {
		dbs = append(dbs, <-opened)
	}
	if t.Failed() {
		t.FailNow()
	}
	joined := rdma.MachineID(before.Machines)
	dbs = append(dbs, mustOpen(t, machine(int(joined), elsewhere)))
	for _, db := range dbs {
		if _, err := db.SQL().Exec("UPDATE bank.account SET balance = balance + 1 - 1, name = CONCAT(name, '!')"); err != nil {
			t.Error(err)
		}
		checkBank(t, db)
	}
	for _, db := range dbs {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	if db, err := Open(Config{Folder: folder}); !errors.Is(err, nvram.ErrLost) {
		t.Errorf("opened without a machine: %v, %v", db, err)
	}
	if err := os.Rename(machineFolder(elsewhere, joined), machineFolder(folder, joined)); err != nil {
		t.Fatal(err)
	}
	db := mustOpen(t, Config{Folder: folder})
	if db.Machines() != before.Machines+1 {
		t.Errorf("%d machines", db.Machines())
	}
	checkBank(t, db)
	checkAll(t, db)
}

// If the configuration is gone, no new instance begins in the folder of the former one.
func TestConfigurationIsGone(t *testing.T) {
	ours := t.TempDir()
	if err := mustOpen(t, small(ours)).Close(); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"of an earlier version": bankFolder(t), "of this one": ours} {
		path := filepath.Join(folder, configurationName)
		if err := os.Rename(path, path+".kept"); err != nil {
			t.Fatal(err)
		}
		if db, err := Open(Config{Folder: folder}); !errors.Is(err, ErrOtherFolder) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, %v", name, db, err)
		}
		if err := os.Rename(path+".kept", path); err != nil {
			t.Fatal(err)
		}
		db := mustOpen(t, Config{Folder: folder})
		checkAll(t, db)
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
