// Package clitest tests a program that uses internal/cli, either in the test's own process,
// or as processes in which the test binary runs as the program.
package clitest

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/farmsql/farmsql/internal/cli"
)

// AsProgram makes the test binary run as the program. It is an environment variable, so
// that a process which starts itself again passes it on.
const AsProgram = "FARMSQL_TEST_AS_PROGRAM"

// A Program runs a command line and returns the exit status.
type Program func(args []string, std cli.Streams) int

// Main is TestMain of the program's tests. If AsProgram is set, it runs the program instead of the
// tests. It does the same if the first argument is a command: commands have no leading hyphen, and
// flags of the tests do. Without this rule a process that a test starts runs all tests again, which
// start further processes.
func Main(m *testing.M, run Program) {
	isCommand := len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-")
	if os.Getenv(AsProgram) != "" || isCommand {
		os.Exit(run(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
	}
	os.Exit(m.Run())
}

// Execute runs the command line in this process.
func (run Program) Execute(in string, args ...string) (status int, stdout, stderr string) {
	var out, err strings.Builder
	status = run(args, cli.Streams{In: strings.NewReader(in), Out: &out, Err: &err})
	return status, out.String(), err.String()
}

// A Screen reads a process's output line by line.
type Screen struct {
	*testing.T
	Process *exec.Cmd
	lines   chan string
	seen    []string
}

// Start runs the program as a process that ends with the test.
func Start(t *testing.T, args ...string) *Screen {
	t.Helper()
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), AsProgram+"=1", "TMPDIR="+t.TempDir())
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = p.Stdout
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Screen{T: t, Process: p, lines: make(chan string, 1000)}
	go func() {
		defer close(s.lines)
		for r := bufio.NewScanner(out); r.Scan(); {
			s.lines <- r.Text()
		}
	}()
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return s
}

// Until reads lines up to one that matches, and returns its groups.
func (s *Screen) Until(pattern string) []string {
	s.Helper()
	re, limit := regexp.MustCompile(pattern), time.After(time.Minute)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.Fatalf("ended before %q:\n%s", pattern, strings.Join(s.seen, "\n"))
			}
			s.seen = append(s.seen, line)
			if found := re.FindStringSubmatch(line); found != nil {
				return found
			}
		case <-limit:
			s.Fatalf("%q did not come within a minute:\n%s", pattern, strings.Join(s.seen, "\n"))
		}
	}
}

// Rest waits until the process closes its output, and returns what is left of it.
func (s *Screen) Rest() string {
	for line := range s.lines {
		s.seen = append(s.seen, line)
	}
	return strings.Join(s.seen, "\n")
}
