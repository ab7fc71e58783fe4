package doctor

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file")

// The report of a host on which some things are not as they should be.
func TestReport(t *testing.T) {
	f := healthy()
	f.Data, f.Saves = "/srv/farmsql", ""
	f.files["/proc/meminfo"] = "MemTotal: 33554432 kB\nSwapTotal: 2097152 kB\nSwapFree: 2097152 kB\nHugetlb: 0 kB\n"
	f.limit[unix.RLIMIT_RTPRIO] = 0
	f.err["realtime"], f.err["listen"] = syscall.EPERM, syscall.EADDRINUSE
	r := f.examine(t)
	var b bytes.Buffer
	r.Print(&b)
	golden := filepath.Join("testdata", "report.txt")
	if *rewrite {
		if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
	if r.Count(Problem) != 1 || r.Count(Warning) != 2 || r.Count(NotExamined) != 1 {
		t.Errorf("%d problems, %d warnings, %d not examined", r.Count(Problem), r.Count(Warning), r.Count(NotExamined))
	}

	b.Reset()
	if err := r.PrintJSON(&b); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		var f Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil || f != r[i] {
			t.Errorf("line %d: %v: %s", i, err, line)
		}
	}
}

// A writer that fails ends PrintJSON.
func TestPrintJSONFails(t *testing.T) {
	if err := (Report{{Check: "x"}}).PrintJSON(full{}); err == nil {
		t.Error("no error")
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
