package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"

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
	} {
		status, out, errs := execute(t, "", "doctor", c.flag, c.value)
		if status != 2 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("%s %s: status %d, %q, %s", c.flag, c.value, status, out, errs)
		}
	}
}
