package test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A terminal is a pseudo-terminal with a process on it.
type terminal struct {
	t       *testing.T
	screen  *os.File // the side of the person
	output  chan string
	unread  string // shown and not yet expected
	cmd     *exec.Cmd
	exited  chan error
	running bool
}

// newTerminal runs farmsql on a terminal of its own, with home as the user's
// home folder.
func newTerminal(t *testing.T, home string, args ...string) *terminal {
	t.Helper()
	screen, tty := openTerminal(t)
	x := &terminal{t: t, screen: screen, output: make(chan string), exited: make(chan error, 1), running: true}
	x.cmd = exec.Command(binary, args...)
	x.cmd.Env = append(os.Environ(), "HOME="+home, "TERM=xterm")
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = tty, tty, tty
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // from here on only the process has it
	t.Cleanup(func() {
		if x.running {
			_ = x.cmd.Process.Kill()
			x.drain()
		}
		_ = screen.Close()
	})
	go x.copy()
	return x
}

// openTerminal makes a pseudo-terminal of unknown size and returns its two sides.
func openTerminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(screen.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return screen, tty
}

// copy passes on what the process shows, until it has ended.
func (x *terminal) copy() {
	buf := make([]byte, 4096)
	for {
		n, err := x.screen.Read(buf)
		if n > 0 {
			x.output <- string(buf[:n])
		}
		if err != nil { // EIO: no process has the terminal any more
			close(x.output)
			x.exited <- x.cmd.Wait()
			return
		}
	}
}

// drain waits for the end of the process.
func (x *terminal) drain() error {
	x.running = false
	for s := range x.output {
		x.unread += s
	}
	return <-x.exited
}

// press types keys.
func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.screen.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// escapes are what moves the cursor and sets colours.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]|\r`)

// expect waits until the text is shown, and drops everything up to it.
func (x *terminal) expect(text string) {
	x.t.Helper()
	timeout := time.After(startTimeout)
	for {
		shown := escapes.ReplaceAllString(x.unread, "")
		if _, rest, ok := strings.Cut(shown, text); ok {
			x.unread = rest
			return
		}
		select {
		case s, ok := <-x.output:
			if !ok {
				x.t.Fatalf("ended without showing %q, but:\n%s", text, shown)
			}
			x.unread += s
		case <-timeout:
			x.t.Fatalf("%q is not shown, but:\n%s", text, shown)
		}
	}
}

// pressUntil types keys, again and again, until the text is shown. It is for keys that have no
// effect before some invisible event.
func (x *terminal) pressUntil(keys, text string) {
	x.t.Helper()
	stop := make(chan struct{})
	var pressing sync.WaitGroup
	pressing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				_, _ = x.screen.WriteString(keys)
			}
		}
	})
	defer pressing.Wait()
	defer close(stop)
	x.expect(text)
}

// left expects that the process has ended without an error.
func (x *terminal) left() {
	x.t.Helper()
	if err := x.drain(); err != nil {
		x.t.Errorf("%v\n%s", err, x.unread)
	}
}

const (
	keyEnter = "\r"
	keyUp    = "\x1b[A"
	keyStop  = "\x03" // Ctrl-C
	keyEnd   = "\x04" // Ctrl-D

	prompt, promptMore = "farmsql> ", "      -> "
)

// TestShell works with farmsql sql as a person does.
func TestShell(t *testing.T) {
	s := start(t, t.TempDir(), layouts[0].flags()...)
	home := t.TempDir()
	x := newTerminal(t, home, "sql", "--address", s.addr)
	x.expect(prompt)
	x.press("select 6 *" + keyEnter)
	x.expect(promptMore)
	x.press("7 as n;" + keyEnter)
	x.expect("| 42 |")
	x.expect("1 row (")
	x.expect(prompt)
	x.press("create database d; use d; create table t (a int primary key);" + keyEnter)
	x.expect("OK, 0 rows affected")
	x.expect(prompt)
	x.press("insert into t values (1), (2);" + keyEnter)
	x.expect("OK, 2 rows affected")
	x.press("select 'it''s;' as a\\G" + keyEnter)
	x.expect("a: it's;")
	x.press("select nope;" + keyEnter) // an error ends nothing
	x.expect("ERROR 1054 (42S22): ")
	x.expect(prompt)
	x.press("\\h" + keyEnter)
	x.expect("Ctrl-D")
	x.expect(prompt)
	x.press("select 1" + keyEnter)
	x.expect(promptMore)
	x.press("\\c" + keyEnter)
	x.expect(prompt)
	x.press("exit" + keyEnter)
	x.left()

	x = newTerminal(t, home, "sql", "--address", s.addr, "-D", "d")
	x.expect(prompt)
	x.press(strings.Repeat(keyUp, 5)) // back over exit, \c, select 1, \h
	x.expect("select nope;")
	x.press(keyUp + keyUp + keyEnter)
	x.expect("ERROR 1062 (23000): ") // the rows of the first session
	x.expect(prompt)
	x.press(keyEnd)
	x.left()
}

// TestShellInterrupt: Ctrl-C drops the typed text, stops the running statement, and does not change
// the session.
func TestShellInterrupt(t *testing.T) {
	s := start(t, t.TempDir(), layouts[0].flags()...)
	for name, where := range map[string][]string{"server": {"--address", s.addr}, "folder": {"--data", t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			x := newTerminal(t, t.TempDir(), append([]string{"sql"}, where...)...)
			x.expect(prompt)
			x.press("set @x = 41;" + keyEnter)
			x.expect("OK")
			x.expect(prompt)
			x.press("select" + keyEnter)
			x.expect(promptMore)
			x.press("gone" + keyStop + "select 'typed' a, 'ahead' b;" + keyEnter)
			x.expect("^C")
			x.expect("| typed | ahead |")
			x.expect(prompt)
			x.press("select sleep(600);" + keyEnter)
			x.pressUntil(keyStop, "ERROR 1317 (70100): ")
			x.expect(prompt)
			x.press("select @x + 1;" + keyEnter)
			x.expect("| 42 ")
			x.press("quit;" + keyEnter)
			x.left()
		})
	}
}
