package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/cluster"
)

// run runs farmsql, which must succeed, and returns what it prints.
func run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.String())
	}
	return string(out)
}

// offline returns the flags of a command for a stopped fleet. The fleet's shared folder is there,
// too, and not in /dev/shm.
func (f *fleet) offline(command string, more ...string) []string {
	args := []string{command, "--data", f.folder, "--cluster", f.url}
	if command == "restore" {
		args = append(args, "--shared-folder", filepath.Join(f.folder, "shared"))
	}
	return append(args, more...)
}

// check runs farmsql check on a stopped fleet, and returns the number of its objects.
func (f *fleet) check() string {
	f.t.Helper()
	out := run(f.t, f.offline("check")...)
	m := objectsPattern.FindStringSubmatch(out)
	if m == nil || m[1] == "0" {
		f.t.Fatalf("check: %s", out)
	}
	return m[1]
}

// move gives a fleet a new, empty place.
func (f *fleet) move() {
	f.t.Helper()
	folder, err := os.MkdirTemp("/dev/shm", "farmsql-test-")
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { os.RemoveAll(folder) })
	f.folder, f.url = folder, "file://"+filepath.Join(folder, "configuration")
	if f.store, err = cluster.Open(f.url); err != nil {
		f.t.Fatal(err)
	}
}

// stopped checks that all machines have ended in good order.
func (f *fleet) stopped() {
	f.t.Helper()
	for _, m := range f.machines {
		m.mu.Lock()
		m.killed, m.serving = true, false
		m.upset++
		m.mu.Unlock()
		<-m.exited
		if m.err != nil {
			f.t.Errorf("machine %d: %v\n%s", m.id, m.err, f.tails())
		}
	}
}

// TestClusterSaveAndRestore: a cluster under load is killed, saved, deleted and restored, twice: in
// its place, and elsewhere. Then the save stops the cluster, in good order. Everything acknowledged
// is there each time.
func TestClusterSaveAndRestore(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	l.prepare()
	l.begin(l.transfer, l.replace, l.read)
	save := filepath.Join(t.TempDir(), "save")
	for round := range 2 {
		before := l.transfers.Load()
		f.wait("some work", func() bool { return l.transfers.Load() > before+50 })
		f.killAll()
		to := fmt.Sprint(save, round)
		if out := run(t, f.offline("save", "--to", to)...); !strings.HasPrefix(out, "saved 3 machines of cluster ") {
			t.Errorf("save: %s", out)
		}
		if err := os.RemoveAll(f.folder); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			f.move()
		} else if err := os.Mkdir(f.folder, 0o700); err != nil {
			t.Fatal(err)
		}
		run(t, f.offline("restore", "--from", to)...)
		f.check()
		for _, m := range f.machines {
			m.start()
		}
		f.awaitWhole()
		if t.Failed() {
			return
		}
	}
	l.end()
	objects := f.stopBySave(save)
	run(t, f.offline("restore", "--from", save, "--overwrite")...)
	if again := f.check(); again != objects {
		t.Errorf("%s objects were saved, %s are restored", objects, again)
	}
	for _, m := range f.machines {
		m.start()
	}
	f.awaitWhole()
	for _, m := range f.machines {
		l.verify(m)
	}
	t.Log(l)
}

// stopBySave saves a running fleet, checks it, and returns the number of its objects.
func (f *fleet) stopBySave(to string) string {
	f.t.Helper()
	for _, m := range f.machines {
		m.mu.Lock()
		m.killed = true // its end is no surprise
		m.mu.Unlock()
	}
	run(f.t, f.offline("save", "--to", to, "--stop")...)
	f.stopped()
	return f.check()
}

// TestClusterSaves: machines with --saves are stopped, lose all their memory, and have it back
// after a start. A machine that is killed later does not return to that older state.
func TestClusterSaves(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	saves := t.TempDir()
	f.more = []string{"--saves", saves}
	f.start()
	f.awaitWhole()
	db := (&fleetLoad{t: t, fleet: f}).connect(f.machines[0], "")
	exec1(t, db, "create database kept", "create table kept.t (id int primary key, n int)", "insert into kept.t values (1, 42)")
	_ = db.Close()
	f.terminate()
	f.forgetMemory()
	for _, m := range f.machines {
		m.start()
	}
	f.awaitWhole()
	f.unharmed(f.machines[0])

	f.killAll() // and the power fails, without a save
	f.forgetMemory()
	f.machines[1].refuse(1, "memory was lost", "in use after the newest save", filepath.Join(saves, "machine-1"))
}

// terminate stops all machines in good order.
func (f *fleet) terminate() {
	f.t.Helper()
	for _, m := range f.machines {
		m.mu.Lock()
		m.killed = true
		m.mu.Unlock()
		m.signal(syscall.SIGTERM)
	}
	f.stopped()
}

// forgetMemory removes all memory, as a reboot does on a tmpfs. The configuration is elsewhere.
func (f *fleet) forgetMemory() {
	f.t.Helper()
	for _, m := range f.machines {
		if err := os.RemoveAll(m.folder()); err != nil {
			f.t.Fatal(err)
		}
	}
}

// folder returns the folder of the machine's memory.
func (m *machine) folder() string { return filepath.Join(m.data(), fmt.Sprint("machine-", m.id)) }

// data is the machine's data folder: its own, if it has a host of its own.
func (m *machine) data() string {
	if m.fleet.joining != nil {
		return filepath.Join(m.fleet.folder, fmt.Sprint("host-", m.id))
	}
	return m.fleet.folder
}

// TestBadSave: an error in a save, or in the place of a restore, is reported in one line, and
// changes nothing.
func TestBadSave(t *testing.T) {
	f := filled(t, 2, 2)
	save := filepath.Join(t.TempDir(), "save")
	refuse(t, 1, f.offline("save", "--to", save), "machine-0 runs", "--stop")
	f.stopBySave(save)
	refuse(t, 1, f.offline("save", "--to", save), save, "file already exists")
	refuse(t, 1, []string{"save", "--data", f.folder, "--to", save + "2"}, "there is no configuration")
	refuse(t, 1, []string{"save", "--data", t.TempDir(), "--cluster", f.url, "--to", save + "2"}, "machine 0 is in the configuration, and not in")
	refuse(t, 2, f.offline("save"), "--to")

	for name, c := range map[string]struct {
		damage func(save string) error
		texts  []string
	}{
		"no save":       {os.RemoveAll, []string{"not a complete save"}},
		"half a save":   {func(save string) error { return os.RemoveAll(filepath.Join(save, "machine-1")) }, []string{"not a complete save", "machine-1"}},
		"missing image": {func(save string) error { return os.Remove(filepath.Join(save, "machine-1", "region-1.img")) }, []string{"not a complete save", "region-1.img"}},
		"short image":   {func(save string) error { return os.Truncate(filepath.Join(save, "machine-1", "region-1.img"), 8) }, []string{"not a complete save", "region-1.img", "8 bytes"}},
		"damaged":       {func(save string) error { return flip(filepath.Join(save, "machine-1", "region-1.img"), 16) }, []string{"machine 1", "damaged", "region-1.img"}},
		"index":         {func(save string) error { return flip(filepath.Join(save, "machine-0", "index"), 40) }, []string{"machine 0", "checksum of the index"}},
		"newer": {func(save string) error {
			f.edit(filepath.Join(save, "configuration.json"), func(c map[string]any) { c["Format"] = 99 })
			return nil
		}, []string{"format 99", "newer farmsql"}},
		"machine swapped": {func(save string) error {
			swap(t, filepath.Join(save, "machine-0"), filepath.Join(save, "machine-1"))
			return nil
		}, []string{"is of machine 1, not 0"}},
		"of serve": {func(save string) error {
			m := filepath.Join(save, "machine-0")
			return errors.Join(os.RemoveAll(m), os.MkdirAll(filepath.Join(m, "save-00000001"), 0o700))
		}, []string{"not a complete save", "--saves"}},
	} {
		t.Run(name, func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "save")
			if err := os.CopyFS(copied, os.DirFS(save)); err != nil {
				t.Fatal(err)
			}
			if err := c.damage(copied); err != nil {
				t.Fatal(err)
			}
			to := newFleet(t, 2, 2, "") // nothing is there
			refuse(t, 1, to.offline("restore", "--from", copied), c.texts...)
			if entries, err := os.ReadDir(to.folder); err != nil || len(entries) > 0 {
				t.Errorf("left behind: %v %v", entries, err)
			}
			none := filepath.Join(to.folder, "none")
			refuse(t, 1, []string{"restore", "--data", none, "--cluster", to.url, "--from", copied})
			if _, err := os.Stat(none); err == nil {
				t.Errorf("left %s behind", none)
			}
			if name != "no save" { // nor does it harm what is there
				refuse(t, 1, f.offline("restore", "--from", copied, "--overwrite"), c.texts...)
			}
		})
	}
	t.Run("of another cluster", func(t *testing.T) {
		other := filled(t, 1, 1)
		refuse(t, 1, other.offline("restore", "--from", save), "in use by process")
		other.killAll()
		refuse(t, 1, other.offline("restore", "--from", save, "--overwrite"), "of another cluster")
		refuse(t, 1, []string{"restore", "--data", t.TempDir(), "--cluster", other.url, "--from", save, "--overwrite"}, "of another cluster")
		refuse(t, 1, []string{"save", "--data", other.folder, "--cluster", f.url, "--to", save + "2"}, "of another cluster")
		other.machines[0].start()
		other.awaitServing()
		other.unharmed(other.machines[0])
	})
	t.Run("of machines in one process", func(t *testing.T) {
		one := t.TempDir()
		start(t, one, layouts[0].flags()...).stop(t)
		refuse(t, 1, []string{"restore", "--data", one, "--from", save, "--overwrite"}, "of another cluster")
		refuse(t, 1, []string{"restore", "--data", one, "--cluster", f.url, "--from", save, "--overwrite"}, "of another instance")
		oneSave := filepath.Join(t.TempDir(), "one")
		run(t, "save", "--data", one, "--to", oneSave)
		refuse(t, 1, f.offline("restore", "--from", oneSave, "--overwrite"), "of another cluster")
		to := t.TempDir()
		run(t, "restore", "--data", to, "--from", oneSave)
		check(t, to)
		together := t.TempDir() // all machines of the cluster in one process
		run(t, "restore", "--data", together, "--from", save)
		check(t, together)
	})
	t.Run("no folder for the configuration", func(t *testing.T) {
		data := filepath.Join(t.TempDir(), "data")
		refuse(t, 1, []string{"restore", "--data", data, "--cluster", "file:///nowhere/configuration", "--from", save}, "/nowhere", "--cluster")
		if _, err := os.Stat(data); err == nil {
			t.Errorf("left %s behind", data)
		}
	})
	t.Run("gone on", func(t *testing.T) {
		for _, m := range f.machines {
			m.start()
		}
		f.awaitServing()
		refuse(t, 1, f.offline("restore", "--from", save, "--overwrite"), "in use by process")
		// Nor is it restored into another folder while the machines run.
		refuse(t, 1, []string{"restore", "--data", t.TempDir(), "--cluster", f.url, "--shared-folder", filepath.Join(f.folder, "shared"), "--from", save, "--overwrite"}, "machine 0", "is process")
		f.killAll()
		refuse(t, 1, f.offline("restore", "--from", save), "has gone on", "--overwrite")
		refuse(t, 1, []string{"restore", "--data", f.folder, "--data", t.TempDir(), "--data", t.TempDir(), "--cluster", f.url, "--from", save}, "3 data folders", "2 machines")
	})
	for _, m := range f.machines {
		m.start()
	}
	f.awaitServing()
	f.unharmed(f.machines[0])
	f.unharmed(f.machines[1])
}

// flip changes one byte of a file.
func flip(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 0x10
	_, err2 := f.WriteAt(b[:], at)
	return errors.Join(err, err2, f.Close())
}

// TestSaveWithoutRoom: without room for a save, or for the memory in a save, the command does
// nothing.
func TestSaveWithoutRoom(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can mount a small tmpfs")
	}
	f := filled(t, 2, 2)
	f.terminate()
	small := t.TempDir()
	if err := unix.Mount("tmpfs", small, "tmpfs", 0, "size=32k"); err != nil {
		t.Skipf("SKIPPED: no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	refuse(t, 1, f.offline("save", "--to", filepath.Join(small, "save")), "no space left", "are needed")
	save := filepath.Join(t.TempDir(), "save")
	run(t, f.offline("save", "--to", save)...)
	refuse(t, 1, []string{"restore", "--data", filepath.Join(small, "data"), "--cluster", "file://" + small + "/configuration", "--from", save}, "no space left", "are needed")
	if entries, err := os.ReadDir(small); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// TestClusterCheck: check finds damage in the memory of one machine of a cluster. It refuses to
// examine only a part of a cluster.
func TestClusterCheck(t *testing.T) {
	f := filled(t, 3, 3)
	refuse(t, 1, f.offline("check"), "in use by another process")
	// A row that is easy to find.
	db := (&fleetLoad{t: t, fleet: f}).connect(f.machines[0], "kept")
	mark := "a row to be found"
	exec1(t, db, "create table marked (a int primary key, b varchar(100))", "insert into marked values (1, '"+mark+"')")
	_ = db.Close()
	f.killAll() // one that stops a lease time before the others would be evicted
	f.check()
	refuse(t, 1, []string{"check", "--data", f.folder}, "of a machine whose configuration is not here", "--cluster")

	where := f.findIn(f.machines[1], mark)
	for machine, m := range f.machines {
		path, at := filepath.Join(m.folder(), where.file), where.at
		if err := flip(path, at); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(binary, f.offline("check")...).Output()
		if err == nil || !strings.Contains(string(out), "differs from the primary") || !strings.Contains(string(out), "problem") {
			t.Errorf("machine %d: %v: %s", machine, err, out)
		}
		if err := flip(path, at); err != nil {
			t.Fatal(err)
		}
	}
	// Check refuses a region that cannot be used at all.
	header := filepath.Join(f.machines[2].folder(), where.file)
	if err := flip(header, 16); err != nil {
		t.Fatal(err)
	}
	refuse(t, 1, f.offline("check"), "machine 2", "header is damaged")
	if err := flip(header, 16); err != nil {
		t.Fatal(err)
	}
	gone := f.machines[2].folder()
	if err := os.Rename(gone, gone+".away"); err != nil {
		t.Fatal(err)
	}
	refuse(t, 1, f.offline("check"), "machine 2 is in the configuration, and not in")
	if err := os.Rename(gone+".away", gone); err != nil {
		t.Fatal(err)
	}
	f.check()
	for _, m := range f.machines {
		m.start()
	}
	f.awaitServing()
	f.unharmed(f.machines[2])
}

// A finding is the place of an object in a machine's memory.
type finding struct {
	file string
	at   int64
}

// findIn finds the object in a machine's regions that contains a text.
func (f *fleet) findIn(m *machine, text string) finding {
	f.t.Helper()
	regions, err := filepath.Glob(filepath.Join(m.folder(), "region-*.mem"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, r := range regions {
		b, err := os.ReadFile(r)
		if err != nil {
			f.t.Fatal(err)
		}
		// Search only for the first bytes: the version of the object's next line may be within the
		// text.
		if at := bytes.Index(b, []byte(text[:6])); at >= 0 {
			return finding{filepath.Base(r), int64(at)}
		}
	}
	f.t.Fatalf("%q is in no region of machine %d", text, m.id)
	return finding{}
}
