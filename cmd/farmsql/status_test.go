package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/farm"
)

// deep is a folder whose name is too long for the address of a socket.
func deep(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

func mustServeStatus(t *testing.T, folder string, s farmsql.Status) *socketServer {
	t.Helper()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	server, err := serveStatus(folder, func() farmsql.Status { return s })
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func TestStatusShowsTheNewestView(t *testing.T) {
	data := deep(t)
	granted := 80.5
	machines := []farmsql.MachineStatus{{Machine: 0, IsCM: true}, {Machine: 1, GrantedMS: &granted, HeldMS: &granted, FailureDomain: 3}}
	for i, configuration := range []int{5, 5, 4} {
		s := farmsql.Status{
			Source: farmsql.StatusOfMachine, Machine: i, Configuration: configuration, Revision: uint64(9 - i), Machines: machines,
			Regions: []farmsql.RegionStatus{{Region: 1, Primary: 0, Backups: []int{1, 2}, Filling: []int{2}}}, Lost: []int{7}, Joining: []int{9},
			Recovery: farmsql.RecoveryStatus{IsGoing: true, FillingReplicas: 1}, Lease: &farmsql.LeaseStatus{IsValid: true, LengthMS: 100, KeptBy: "thread"},
			MovesAwait: "region 3, which is away", BalanceInMS: 61e3,
		}
		if i == 1 {
			s.Recovery.FillingReplicas = 3 // it was told of another revision
		}
		defer mustServeStatus(t, machineFolder(data, i), s).Close()
	}
	status, out, errs := execute(t, "", "status", "--data", data)
	for _, want := range []string{
		"configuration 5", "as machine 0", "0 CM     own", "3                    80.5ms left", "1       0        1 2      2", "LOST, with all their replicas: 7",
		"regions are being activated, 1 replicas are being filled", "100ms, kept by a thread; the one of machine 0 is valid", "joining:  9", "further moves wait for region 3, which is away", "regions move, or get another primary, in 1m1s", "machine-1", "machine-2", "configuration 4",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if status != 0 || errs != "" || strings.Contains(out, "3 replicas") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	_, out, _ = execute(t, "", "status", "--data", data, "--json", "--machine-id", "2")
	var s farmsql.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil || s.Machine != 2 {
		t.Errorf("%v: %s", err, out)
	}
	if _, out, _ = execute(t, "", "status", "--data", data, "--json"); strings.Count(out, "\n") != 3 {
		t.Errorf("of three machines:\n%s", out)
	}
}

func TestStatusWithoutAnybody(t *testing.T) {
	data := t.TempDir()
	server := mustServeStatus(t, machineFolder(data, 1), farmsql.Status{})
	server.listener.Close() // as a killed process does; the socket stays
	server.running.Wait()
	status, _, errs := execute(t, "", "status", "--data", data)
	if status != 1 || !strings.Contains(errs, "no process answers in "+data) || !strings.Contains(errs, "machine-1: not running") {
		t.Errorf("status %d: %s", status, errs)
	}
	status, _, errs = execute(t, "", "status", "--data", data, "--machine-id", "4", "--cluster", "file://"+data+"/configuration")
	if status != 1 || !strings.Contains(errs, "there is no configuration at") {
		t.Errorf("status %d: %s", status, errs)
	}
	// The next process takes the socket over.
	defer mustServeStatus(t, machineFolder(data, 1), farmsql.Status{Source: farmsql.StatusOfMachine, Machine: 1}).Close()
	if status, _, errs = execute(t, "", "status", "--data", data); status != 0 {
		t.Errorf("status %d: %s", status, errs)
	}
}

// The exit status tells whether any machine serves.
func TestStatusOfWhoServesNobody(t *testing.T) {
	data := t.TempDir()
	for i, s := range []farmsql.Status{{Unavailable: "no majority"}, {Ended: "evicted"}, {Starting: "waits for machine 3"}} {
		s.Source, s.Machine, s.Configuration = farmsql.StatusOfMachine, i, 5
		defer mustServeStatus(t, machineFolder(data, i), s).Close()
	}
	for _, format := range []string{"--data=" + data, "--json"} {
		if status, out, errs := execute(t, "", "status", "--data", data, format); status != 1 || out == "" || !strings.Contains(errs, "nobody serves clients") {
			t.Errorf("%s: status %d, %q, %s", format, status, errs, out)
		}
	}
	defer mustServeStatus(t, machineFolder(data, 3), farmsql.Status{Source: farmsql.StatusOfMachine, Machine: 3, Configuration: 6}).Close()
	if status, _, errs := execute(t, "", "status", "--data", data); status != 0 || errs != "" {
		t.Errorf("machine 3 serves: status %d, %q", status, errs)
	}
}

func TestStatusThatIsNone(t *testing.T) {
	data := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(data, statusSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	status, _, errs := execute(t, "", "status", "--data", data)
	if status != 1 || !strings.Contains(errs, "answers what is no status") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// Check does not treat the folder of a cluster as an empty one.
func TestCheckOfACluster(t *testing.T) {
	data := t.TempDir()
	folder := machineFolder(data, 0)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	identity := make([]byte, 4096)
	identity[0] = 1 // the cluster
	if err := os.WriteFile(filepath.Join(folder, farm.IdentityFile), identity, 0o644); err != nil {
		t.Fatal(err)
	}
	status, _, errs := execute(t, "", "check", "--data", data)
	if status != 1 || !strings.Contains(errs, "if it is one of a cluster, --cluster must say where") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// Machines of several hosts are shown with their addresses.
func TestStatusShowsAddresses(t *testing.T) {
	data := deep(t)
	s := farmsql.Status{
		Source: farmsql.StatusOfMachine, Configuration: 3,
		Machines: []farmsql.MachineStatus{{Machine: 0, Address: "tcp:db1:7070"}, {Machine: 1, Address: "shm:/dev/shm/x/1"}},
	}
	defer mustServeStatus(t, machineFolder(data, 0), s).Close()
	_, out, _ := execute(t, "", "status", "--data", data)
	if !strings.Contains(out, "address\n") || !strings.Contains(out, "  db1:7070\n") || strings.Contains(out, "/dev/shm") {
		t.Error(out)
	}
}

func TestFoundersText(t *testing.T) {
	founders := []farmsql.FounderStatus{{Machine: 0, IsGone: true, Successor: new(3)}, {Machine: 1, IsGone: true}, {Machine: 2}}
	want := "machines 0 1 2 keep the configuration; machine 3 is about to take the place of machine 0, which is gone; machine 1 is gone, and a member that is none of them will take its place"
	if got := foundersText(founders, 0); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	want = "machine 2 alone keeps the configuration; there should be 3: other members will be given votes; if too few, add machines"
	if got := foundersText(founders[2:], 3); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// That another machine keeps a configuration of this cluster, too, cannot be overlooked.
func TestStatusShowsRival(t *testing.T) {
	var out strings.Builder
	printStatus(&out, farmsql.Status{FoundersRival: "two machines were refounded"})
	if !strings.Contains(out.String(), "PROBLEM:  two machines were refounded\n") {
		t.Error(out.String())
	}
}
