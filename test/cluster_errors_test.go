package test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// refuse runs a machine that must not start. It must exit with the status, and print one line of
// error that contains the texts.
func (m *machine) refuse(status int, texts ...string) {
	t := m.fleet.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.executable(), append(m.flags(), "--log-level", "error")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	said := strings.TrimSuffix(stderr.String(), "\n")
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		t.Errorf("%v, want exit status %d: %s%s", err, status, out, said)
	}
	if !strings.HasPrefix(said, "farmsql: ") || strings.Contains(said, "\n") {
		t.Errorf("not one line of error: %s", said)
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			t.Errorf("%q does not say %q", said, text)
		}
	}
}

// unharmed checks that a machine of a fleet still has the one row that filled has inserted.
func (f *fleet) unharmed(m *machine) {
	f.t.Helper()
	l := &fleetLoad{t: f.t, fleet: f}
	db := l.connect(m, "kept")
	defer db.Close()
	var n int
	if err := db.QueryRow("select n from t where id = 1").Scan(&n); err != nil || n != 42 {
		f.t.Errorf("the row is %d: %v", n, err)
	}
}

// filled starts a fleet and inserts a row.
func filled(t *testing.T, machines, replicas int) *fleet {
	t.Helper()
	f := newFleet(t, machines, replicas, "")
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f}
	db := l.connect(f.machines[0], "")
	exec1(t, db, "create database kept", "create table kept.t (id int primary key, n int)", "insert into kept.t values (1, 42)")
	_ = db.Close()
	return f
}

// TestBadCluster: an error in a cluster's flags, its store or a machine's folder is reported in one
// line, and no data are lost.
func TestBadCluster(t *testing.T) {
	nobody := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}()
	t.Run("bad URL", func(t *testing.T) {
		for _, url := range []string{"etcd://h:1/p", "zk://h:1", "file://", "configuration"} {
			f := newFleet(t, 1, 1, "")
			f.url = url
			f.machines[0].refuse(1, "--cluster", url)
		}
	})
	t.Run("wrong ZooKeeper address", func(t *testing.T) {
		t.Parallel()
		f := newFleet(t, 1, 1, "")
		f.url = "zk://" + nobody + "/farmsql"
		f.machines[0].refuse(1, "--cluster "+f.url, "is ZooKeeper running?")
	})
	t.Run("newer configuration", func(t *testing.T) {
		f := filled(t, 1, 1)
		f.killAll()
		path := strings.TrimPrefix(f.url, "file://")
		was := f.edit(path, func(c map[string]any) { c["Format"] = 99 })
		f.machines[0].refuse(1, path, "format 99", "use a newer farmsql")
		if err := os.WriteFile(path, was, 0o600); err != nil {
			t.Fatal(err)
		}
		f.machines[0].start()
		f.awaitServing()
		f.unharmed(f.machines[0])
	})
	t.Run("two machines with one id", func(t *testing.T) {
		f := filled(t, 2, 2)
		twin := &machine{fleet: f, id: 1}
		twin.refuse(1, "in use by another process", "machine-1")
		elsewhere := *f // its memory is not locked; where machines meet its name is
		elsewhere.folder = t.TempDir()
		twin = &machine{fleet: &elsewhere, id: 1}
		if err := os.Symlink(filepath.Join(f.folder, "shared"), filepath.Join(elsewhere.folder, "shared")); err != nil {
			t.Fatal(err)
		}
		if f.peers != nil {
			twin.refuse(1, "--advertise", "address already in use")
		} else {
			twin.refuse(1, "machine 1", "process")
		}
		f.unharmed(f.machines[1])
	})
	t.Run("folder of another cluster", func(t *testing.T) {
		f, other := filled(t, 1, 1), filled(t, 1, 1)
		f.killAll()
		was := f.url
		f.url = other.url
		f.machines[0].refuse(1, "belongs to another cluster") // and not that one runs already
		other.killAll()
		f.machines[0].refuse(1, "belongs to another cluster")
		f.url = was
		for _, f := range []*fleet{f, other} {
			f.machines[0].start()
			f.awaitServing()
			f.unharmed(f.machines[0])
		}
	})
	t.Run("folder of another machine", func(t *testing.T) {
		f := filled(t, 2, 2)
		f.killAll()
		one, two := filepath.Join(f.folder, "machine-0"), filepath.Join(f.folder, "machine-1")
		swap(t, one, two)
		f.machines[0].refuse(1, "machine 1")
		f.machines[1].refuse(1, "machine 0")
		swap(t, one, two)
		for _, m := range f.machines {
			m.start()
		}
		f.awaitServing()
		f.unharmed(f.machines[1])
	})
	t.Run("full folder", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("SKIPPED: only root can mount a small tmpfs")
		}
		f := filled(t, 3, 3)
		victim := f.machines[2]
		victim.kill()
		// The machine's memory is now on a file system without enough room for it.
		folder := filepath.Join(f.folder, "machine-2")
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=256k"); err != nil {
			t.Skipf("SKIPPED: no tmpfs can be mounted here: %v", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
		victim.refuse(1, "no space left")
		f.unharmed(f.machines[0])
		f.unharmed(f.machines[1])
	})
}

// edit changes a file of JSON, and returns its former content.
func (f *fleet) edit(path string, change func(map[string]any)) []byte {
	f.t.Helper()
	was, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	var c map[string]any
	if err := json.Unmarshal(was, &c); err != nil {
		f.t.Fatal(err)
	}
	change(c)
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return was
}

func swap(t *testing.T, a, b string) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
}
