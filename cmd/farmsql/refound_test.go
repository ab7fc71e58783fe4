package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// A folder that is not of a machine that keeps the configuration is left alone.
func TestRefoundIsRefused(t *testing.T) {
	status, _, errs := execute(t, "", "refound", "--yes", "--data", t.TempDir(), "--newest", "1")
	if status != 1 || !strings.Contains(errs, "is not of a machine of a cluster that keeps its configuration itself") {
		t.Errorf("status %d: %s", status, errs)
	}
	for _, flag := range []string{"--newest=3", "--lost=1", "--older"} {
		if status, _, errs = execute(t, "", "refound", "--undo", flag, "--data", t.TempDir()); status != 2 || !strings.Contains(errs, "--undo takes back") {
			t.Errorf("%s: status %d: %s", flag, status, errs)
		}
	}
	if status, _, errs = execute(t, "", "refound", "--undo", "--data", t.TempDir()); status != 1 || !strings.Contains(errs, "there is no configuration store") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// The user is told what is lost, and has to say that the others are switched off.
func TestRefoundIsConfirmed(t *testing.T) {
	r := &farmsql.Refounding{Machine: 4, Revision: 70, Configuration: 6, Members: []int{1, 2, 4}, Others: []int{1, 2}, Next: new(5), Left: []int{4}, Unavailable: []int{9}, Newer: "region 11"}
	var out bytes.Buffer
	new(refoundCommand).explain(&out, r)
	for _, want := range []string{"machine 4 has revision 70 of the configuration: number 6, of machines 1 2 4\n", "has region 11, which is of A LATER", "machines 1 2, which never will", "Machine 5 was about to", "goes on with machines 4.", "gives them up: 9\n", "after revision 70"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s\nlacks %q", out.String(), want)
		}
	}
	for answer, want := range map[string]bool{"refound machine 4, 1 2 switched off\n": true, "refound machine 4\n": false, "yes\n": false, "": false} {
		if got := new(refoundCommand).confirmed(cli.Streams{In: strings.NewReader(answer), Out: &out}, r); got != want {
			t.Errorf("%q: %v", answer, got)
		}
	}
	r.Others = nil
	if !new(refoundCommand).confirmed(cli.Streams{In: strings.NewReader("refound machine 4\n"), Out: &out}, r) {
		t.Error("nobody else keeps the configuration")
	}
}
