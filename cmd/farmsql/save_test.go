package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster"
)

// Save waits for a process that does not stop only as long as asked, and does not save it.
func TestStopThatIsIgnored(t *testing.T) {
	data := t.TempDir()
	deaf := exec.Command("sh", "-c", "trap '' TERM; echo; sleep 600")
	deaf.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := deaf.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := deaf.Start(); err != nil {
		t.Skipf("SKIPPED: no shell: %v", err)
	}
	defer deaf.Wait()
	defer deaf.Process.Kill()
	if _, err := out.Read(make([]byte, 1)); err != nil { // it is deaf now
		t.Fatal(err)
	}
	pid := deaf.Process.Pid
	defer mustServeStatus(t, machineFolder(data, 3), farmsql.Status{Source: farmsql.StatusOfMachine, Machine: 3, Process: pid}).Close()
	save := filepath.Join(t.TempDir(), "save")
	args := []string{"save", "--data", data, "--cluster", "file://" + data + "/configuration", "--to", save}
	status, _, errs := execute(t, "", args...)
	if status != 1 || !strings.Contains(errs, "machine-3 runs") {
		t.Errorf("status %d: %s", status, errs)
	}
	status, _, errs = execute(t, "", append(args, "--stop", "--patience", "50ms")...)
	if status != 1 || !strings.Contains(errs, "machine-3") || !strings.Contains(errs, "has not stopped within 50ms") {
		t.Errorf("status %d: %s", status, errs)
	}
	status, _, errs = execute(t, "", "restore", "--data", data, "--cluster", "file://"+data+"/configuration", "--from", save)
	if status != 1 || !strings.Contains(errs, "is in use by process") {
		t.Errorf("restore: status %d: %s", status, errs)
	}
	if !isProcess(pid) {
		t.Error("the process has ended")
	}
	_ = deaf.Process.Kill()
	for isProcess(pid) { // nobody has asked how it ended, and it is over all the same
	}
}

func TestOfflineFlags(t *testing.T) {
	saved := t.TempDir()
	store := cluster.NewFileStore(filepath.Join(saved, "configuration.json"))
	c := &cluster.Configuration{Cluster: 1, ID: 1, Revision: 1, Replicas: 1, NextRegion: 1}
	c.AddMember(cluster.Member{Machine: 0})
	if err := store.CompareAndSwap(0, c); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check"}, {"save", "--to", filepath.Join(saved, "none")}, {"restore", "--from", saved}} {
		status, _, errs := execute(t, "", append(args, "--data", "a", "--data", "b")...)
		if status == 0 || !strings.Contains(errs, "and no ") || !strings.Contains(errs, "--cluster") {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
		if args[0] == "restore" {
			continue // looks at the save first
		}
		if status, _, errs = execute(t, "", append(args, "--cluster", "nonsense://")...); status != 1 || !strings.Contains(errs, "--cluster") {
			t.Errorf("%v: status %d: %s", args, status, errs)
		}
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	silent := newProgress(&b, "saving")
	silent.report(1, 2)
	silent.end()
	if b.Len() > 0 {
		t.Errorf("%q where there is no terminal", b.String())
	}
	p := &progress{w: &b, what: "saving"}
	p.report(1<<20, 4<<20)
	p.report(2<<20, 4<<20) // at once: not worth a line
	p.report(4<<20, 4<<20)
	p.end()
	want := "\rsaving:  25 % of 4MiB\rsaving: 100 % of 4MiB\r" + strings.Repeat(" ", len("saving: 100 % of 4MiB")) + "\r"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	empty := &progress{w: &b, what: "saving"}
	empty.report(0, 0)
	empty.end()
	if !strings.Contains(b.String(), "0 % of 0") {
		t.Errorf("%q", b.String())
	}
}
