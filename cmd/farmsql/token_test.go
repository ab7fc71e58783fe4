package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/cluster/join"
)

func TestToken(t *testing.T) {
	data := t.TempDir()
	s := join.Settings{Replicas: 3, Workers: 1, RegionBytes: 1 << 20, LogBytes: 1 << 16, Founders: 3}
	if _, _, err := join.Found(filepath.Join(data, farmsql.PeerFolder), "127.0.0.1:7070", s, time.Hour); err != nil {
		t.Fatal(err)
	}
	status, out, errs := execute(t, "", "token", "--data", data, "--uses", "2", "--for", "5m")
	_, token, ok := strings.Cut(strings.TrimSpace(out), " --join ")
	if status != 0 || errs != "" || !ok {
		t.Fatalf("status %d: %s%s", status, out, errs)
	}
	if got, err := join.ParseToken(token); err != nil || got.Address != "127.0.0.1:7070" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{1, "only the machine that made the cluster can admit others", []string{"--data", t.TempDir()}},
		{2, "--uses is less than 1", []string{"--data", data, "--uses", "0"}},
		{2, "--for is not a time", []string{"--data", data, "--for", "0s"}},
	} {
		if status, out, errs := execute(t, "", append([]string{"token"}, c.args...)...); status != c.status || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%v: status %d: %s%s", c.args, status, out, errs)
		}
	}
}

// The invitation names how many machines are missing, and is a command.
func TestInvitation(t *testing.T) {
	for machines, want := range map[int]string{1: "another machine has joined", 2: "2 other machines have joined"} {
		if got := invitation("farmsql-x", machines, time.Hour); !strings.Contains(got, want) || !strings.Contains(got, "serve --data FOLDER") || !strings.HasSuffix(got, "--join farmsql-x\n") {
			t.Errorf("%s", got)
		}
	}
}
