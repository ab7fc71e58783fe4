package test

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopSignals: each signal that asks a server to stop makes it close in good order, and save.
func TestStopSignals(t *testing.T) {
	hearHangUp(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPWR} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			saves := filepath.Join(t.TempDir(), "saves")
			srv, err := launch(t.TempDir(), append(layouts[0].flags(), "--saves", saves, "--log-level", "info")...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(srv.kill)
			_ = srv.cmd.Process.Signal(syscall.SIGHUP) // there is no terminal
			exec1(t, srv.connect(t, ""), "create database d")
			for begin := time.Now(); !strings.Contains(srv.stderr.String(), "SIGHUP without a terminal"); time.Sleep(time.Millisecond) {
				// Two signals may reach the server in either order, and it handles none after the
				// second.
				if time.Since(begin) > startTimeout {
					t.Fatalf("SIGHUP is not mentioned:\n%s", srv.stderr)
				}
			}
			_ = srv.cmd.Process.Signal(s)
			_ = srv.cmd.Process.Signal(syscall.SIGHUP)
			closedWell(t, srv.exited, func() error { return srv.err }, saves)
		})
	}
}

// hearHangUp makes sure that the test's child processes do not ignore SIGHUP, even if the test's
// parent does. The test catches the signal, since children do not ignore a caught signal.
func hearHangUp(t *testing.T) {
	hangUps := make(chan os.Signal, 1)
	signal.Notify(hangUps, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangUps) })
}

func closedWell(t *testing.T, exited <-chan struct{}, err func() error, saves string) {
	t.Helper()
	select {
	case <-exited:
	case <-time.After(startTimeout):
		t.Fatal("it does not end")
	}
	if err() != nil {
		t.Errorf("it ended with %v", err())
	}
	if saved, err := os.ReadDir(saves); err != nil || len(saved) == 0 {
		t.Errorf("nothing was saved: %v", err)
	}
}

// TestTerminalGone: a server whose terminal is closed closes in good order, and saves.
func TestTerminalGone(t *testing.T) {
	hearHangUp(t)
	folder := t.TempDir()
	saves := filepath.Join(folder, "saves")
	x := newTerminal(t, folder, append([]string{"serve", "--data", filepath.Join(folder, "data"), "--listen", "127.0.0.1:0", "--saves", saves}, layouts[0].flags()...)...)
	x.expect("farmsql is ready on")
	for range 2 { // as a shell and the kernel do
		_ = x.cmd.Process.Signal(syscall.SIGHUP)
	}
	exited := make(chan struct{})
	var ended error
	go func() {
		ended = x.drain()
		close(exited)
	}()
	closedWell(t, exited, func() error { return ended }, saves)
}
