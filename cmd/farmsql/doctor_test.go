package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster/join"
	"github.com/farmsql/farmsql/cmd/farmsql/doctor"
)

// On whatever computer the test runs, doctor ends with a finding for each check, and with a status
// that agrees with them.
func TestDoctor(t *testing.T) {
	args := []string{"doctor", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--replicas", "3", "--cluster", "file://" + t.TempDir() + "/configuration"}
	status, out, errs := execute(t, "", append(args, "--json")...)
	problems := 0
	for line := range strings.Lines(out) {
		var f doctor.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f.Check == "" || f.Found == "" {
			t.Errorf("%v: %s", err, line)
		}
		if f.Result == doctor.Problem {
			problems++
		}
	}
	if (problems == 0) != (status == 0) || (problems == 0) != (errs == "") {
		t.Errorf("status %d for %d problems: %s", status, problems, errs)
	}
	_, out, _ = execute(t, "", args...)
	for _, check := range []string{"kernel", "open files", "listening", "real time", "shared folder"} {
		if !strings.Contains(out, " "+check+" ") {
			t.Errorf("%s is not in\n%s", check, out)
		}
	}
}

// A machine of several hosts listens for the others, and needs no shared memory. One that has joined is examined
// with what it knows of itself.
func TestDoctorOnSeveralHosts(t *testing.T) {
	data, saves := t.TempDir(), t.TempDir()
	joined := t.TempDir()
	s := join.Settings{Replicas: 3, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16, Founders: 3}
	if _, _, err := join.Found(filepath.Join(joined, farmsql.PeerFolder), "127.0.0.1:7170", s, time.Hour); err != nil {
		t.Fatal(err)
	}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	token := join.Token{Address: first.Addr().String()}.String()
	for _, c := range []struct {
		args        []string
		advertise   string
		identity    string
		first       string // what is said of the machine that admits others
		isElsewhere bool   // the address is of another computer
	}{
		{args: []string{"--data", data, "--cluster", "raft:", "--replicas", "3"}, advertise: ":7070", identity: filepath.Join(data, "peer")},
		{args: []string{"--data", data, "--saves", saves, "--join", token}, advertise: ":7070", identity: filepath.Join(saves, "peer"), first: "over TCP"},
		{args: []string{"--data", joined}, advertise: "127.0.0.1:7170", identity: filepath.Join(joined, "peer")},
		{args: []string{"--data", data, "--cluster", "zk://zoo1:2181/x", "--transport", "tcp", "--advertise", "192.0.2.1:7070"},
			advertise: "192.0.2.1:7070", identity: "flags say who the machine is", isElsewhere: true},
	} {
		status, out, errs := execute(t, "", append([]string{"doctor", "--listen", "127.0.0.1:0"}, c.args...)...)
		isElsewhere := strings.Contains(out, c.advertise+" is no address of this computer")
		if strings.Contains(out, "first machine") != (c.first != "") || !strings.Contains(out, c.first) {
			t.Errorf("%v: of the first machine, not %q\n%s", c.args, c.first, out)
		}
		if status == 2 || !strings.Contains(out, c.advertise) || !strings.Contains(out, c.identity) || strings.Contains(out, "shared folder") || isElsewhere != c.isElsewhere {
			t.Errorf("%v: status %d, %s\n%s", c.args, status, errs, out)
		}
	}
}

func TestDoctorFindsAProblem(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	status, out, errs := execute(t, "", "doctor", "--data", t.TempDir(), "--listen", l.Addr().String())
	if status != 1 || !strings.Contains(errs, "problem") || !strings.Contains(errs, "on this computer") || !strings.Contains(out, l.Addr().String()+" is in use by process") {
		t.Errorf("status %d, %s\n%s", status, errs, out)
	}
	if strings.Contains(out, "real time") {
		t.Errorf("what only machines of a cluster use is examined without --cluster:\n%s", out)
	}
}

func TestDoctorFlags(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"--listen", "3306", "must be HOST:PORT"},
		{"--max-connections", "0", "--max-connections is 0"},
		{"--workers", "0", "--workers is 0"},
		{"--workers", "500", "--workers"},
		{"--log-size", "1", "--log-size"},
		{"--join", "farmsql-x", "--join: join: not a token of a cluster"},
		{"--advertise", "db1:7070", "and no Cluster (--cluster)"},
	} {
		status, out, errs := execute(t, "", "doctor", c.flag, c.value)
		if status != 2 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s %s: status %d, %q, %s", c.flag, c.value, status, out, errs)
		}
	}
}
