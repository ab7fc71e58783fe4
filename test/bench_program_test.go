package test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBenchProgram: farmsql bench becomes the farmsql-bench beside it. Without one it prints how to
// make it.
func TestBenchProgram(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "farmsql")
	made, err := os.ReadFile(binary) // not a link: the folders may be on two file systems
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, made, 0o777); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "bench", "tatp", "--subscribers", "10").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "go build -tags gms_pure_go -o "+folder+" ./cmd/farmsql-bench") {
		t.Errorf("without it: %v\n%s", err, out)
	}
	script := "#!/bin/sh\necho \"$@\"\nexit 7\n"
	if err := os.WriteFile(filepath.Join(folder, "farmsql-bench"), []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	out, err = exec.Command(program, "bench", "tatp", "--rate", "5,6", "--help").CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || string(out) != "tatp --rate 5,6 --help\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
