package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestFirstCommand runs the README's first command as on a computer that has never built a Go
// program: it downloads and compiles everything, and serves. The test prints the time.
func TestFirstCommand(t *testing.T) {
	if !nightly {
		t.Skip("minutes, and downloads everything (FARMSQL_NIGHTLY=1)")
	}
	caches := t.TempDir()
	env := append(os.Environ(), "GOFLAGS=-modcacherw",
		"GOMODCACHE="+filepath.Join(caches, "modules"), "GOCACHE="+filepath.Join(caches, "build"))
	program := filepath.Join(caches, "farmsql")
	begun := time.Now()
	for _, args := range [][]string{{"mod", "download"}, {"build", "-tags", "gms_pure_go", "-o", program, "../cmd/farmsql"}} {
		step := time.Now()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
		t.Logf("go %s: %v", args[0], time.Since(step).Round(time.Second/10))
	}
	step := time.Now()
	s, err := launchProgram(program, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
	var one int
	if err := s.connect(t, "").QueryRow("select 1").Scan(&one); err != nil || one != 1 {
		t.Fatalf("%d, %v", one, err)
	}
	t.Logf("farmsql serve, to the first answer: %v", time.Since(step).Round(time.Millisecond))
	t.Logf("altogether: %v", time.Since(begun).Round(time.Second/10))
}
