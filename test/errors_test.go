package test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refuse runs farmsql and expects it to fail with this status and a single line
// on stderr that contains every one of the texts.
func refuse(t *testing.T, status int, args []string, texts ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("%v: status %d, want %d", args, got, status)
	}
	message := stderr.String()
	if strings.Count(message, "\n") != 1 || !strings.HasPrefix(message, "farmsql: ") {
		t.Errorf("%v: not one line on stderr: %q", args, message)
	}
	for _, text := range texts {
		if !strings.Contains(message, text) {
			t.Errorf("%v: %q does not say %q", args, message, text)
		}
	}
	if stdout.Len() != 0 {
		t.Errorf("%v: stdout: %q", args, stdout.String())
	}
}

// serveArgs are the arguments of a serve that is expected to fail.
func serveArgs(folder string, more ...string) []string {
	return append([]string{"serve", "--data", folder, "--listen", "127.0.0.1:0", "--log-level", "error"}, more...)
}

func TestWrongFlags(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	for _, tc := range []struct {
		args []string
		text string
	}{
		{[]string{"serve", "--nope"}, "--nope"},
		{[]string{"nope"}, "nope"},
		{[]string{"serve", "extra"}, "extra"},
		{serveArgs(folder, "--machines", "x"), "machines"},
		{serveArgs(folder, "--machines", "-1"), "--machines"},
		{serveArgs(folder, "--machines", "0"), "--machines is 0"},
		{serveArgs(folder, "--region-size", "0"), "--region-size is 0"},
		{serveArgs(folder, "--max-connections", "0"), "--max-connections is 0"},
		{serveArgs(folder, "--replicas", "2"), "--replicas"},
		{serveArgs(folder, "--region-size", "3MiB"), "--region-size"},
		{serveArgs(folder, "--region-size", "big"), "region-size"},
		{serveArgs(folder, "--log-size", "1"), "--log-size"},
		{serveArgs(folder, "--result-buffer", "1"), "result buffer"},
		{serveArgs(folder, "--secure-file-priv", "/none"), "--secure-file-priv"},
		{serveArgs(folder, "--tls-cert", "x"), "--tls-key"},
		{serveArgs(folder, "--require-tls", "--no-tls"), "--no-tls"},
		{serveArgs(folder, "--listen", "3306"), "HOST:PORT"},
		{[]string{"check", "--machines", "3"}, "--machines"}, // the folder knows
		{[]string{"sql", "--data", folder, "--tls-ca", "x"}, "can't be used together"},
		{serveArgs(folder, "--log-level", "loud"), "log-level"},
		{[]string{"sql", "--data", folder, "--address", "127.0.0.1:1"}, "can't be used together"},
	} {
		refuse(t, 2, tc.args, tc.text)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("a wrong flag made a folder")
	}
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	folder := filepath.Join(t.TempDir(), "data")
	refuse(t, 1, []string{"serve", "--data", folder, "--listen", l.Addr().String()}, l.Addr().String(), "in use")
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was made all the same")
	}
	refuse(t, 1, []string{"serve", "--data", folder, "--listen", "256.1.1.1:1"}, "cannot listen")
}

func TestUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{file, filepath.Join(file, "below"), "/proc/farmsql"} {
		refuse(t, 1, serveArgs(folder), folder)
	}
	if got, _ := os.ReadFile(file); string(got) != "precious" {
		t.Errorf("the file was overwritten: %q", got)
	}
}

func TestFolderInUse(t *testing.T) {
	folder := t.TempDir()
	s := start(t, folder, layouts[0].flags()...)
	db := s.open(t, "used")
	exec1(t, db, "create table t (a int)", "insert into t values (1)")
	refuse(t, 1, serveArgs(folder), "in use by another process")
	refuse(t, 1, []string{"check", "--data", folder}, "in use by another process")
	var n int
	if err := db.QueryRow("select count(*) from t").Scan(&n); err != nil || n != 1 {
		t.Fatalf("the first server suffered: %d, %v", n, err)
	}
}

// prepared makes a folder with one row in it and returns it closed, or killed.
func prepared(t *testing.T, killed bool, flags ...string) string {
	t.Helper()
	folder := t.TempDir()
	s, err := launch(folder, append(layouts[0].flags(), flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	db := s.open(t, "kept")
	exec1(t, db, "create table t (a int)", "insert into t values (42)")
	if killed {
		s.kill()
	} else {
		s.stop(t)
	}
	return folder
}

// holds starts a server on the folder and expects the row there.
func holds(t *testing.T, folder string, flags ...string) {
	t.Helper()
	s := start(t, folder, flags...)
	var a int
	if err := s.connect(t, "kept").QueryRow("select a from t").Scan(&a); err != nil || a != 42 {
		t.Errorf("%d, %v", a, err)
	}
}

// edit changes each file of this name below the folder.
func edit(t *testing.T, folder, name string, change func(string) string) {
	t.Helper()
	edited := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != name {
			return err
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := change(string(old))
		if text == string(old) {
			return fmt.Errorf("nothing to change in %s", path)
		}
		edited++
		return os.WriteFile(path, []byte(text), 0o644)
	})
	if err != nil || edited == 0 {
		t.Fatalf("%d files edited, %v", edited, err)
	}
}

// contents are the bytes of the small files below the folder, and the sizes of
// all.
func contents(t *testing.T, folder string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %d", path, info.Size())
		if info.Mode().IsRegular() && info.Size() < 1<<16 { // a killed server leaves its socket
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += " " + string(text)
		}
		all = append(all, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestNewerFormat(t *testing.T) {
	folder := prepared(t, false)
	edit(t, folder, "FARMSQL", func(s string) string { return strings.Replace(s, "format 1", "format 99", 1) })
	before := contents(t, folder)
	refuse(t, 1, serveArgs(folder), "format")
	refuse(t, 1, []string{"check", "--data", folder}, "format")
	if contents(t, folder) != before {
		t.Error("the folder was changed")
	}
	edit(t, folder, "FARMSQL", func(s string) string { return strings.Replace(s, "format 99", "format 1", 1) })
	holds(t, folder)
}

// A folder that was in use when the computer went down may have lost any data.
func TestOtherBoot(t *testing.T) {
	reboot := func(s string) string {
		return strings.Replace(s, "boot ", "boot 0", 1)
	}
	killed := prepared(t, true)
	edit(t, killed, "FARMSQL", reboot)
	before := contents(t, killed)
	refuse(t, 1, serveArgs(killed), "lost", "not closed before the machine stopped")
	if contents(t, killed) != before {
		t.Error("the folder was changed")
	}
	holds(t, killed, "--trust")

	closed := prepared(t, false)
	edit(t, closed, "FARMSQL", reboot)
	holds(t, closed)
}

// A data folder that is gone, like a tmpfs after a reboot, comes back from the
// saves.
func TestSaves(t *testing.T) {
	saves := t.TempDir()
	folder := prepared(t, false, "--saves", saves)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	holds(t, folder, "--saves", saves)
}

func TestOtherLayout(t *testing.T) {
	folder := prepared(t, false)
	for flag, value := range map[string]string{"--machines": "3", "--workers": "7", "--region-size": "128MiB", "--log-size": "8MiB"} {
		refuse(t, 1, serveArgs(folder, flag, value), strings.Trim(strings.SplitN(flag[2:], "-", 2)[0], "-"))
	}
	holds(t, folder) // the folder knows its layout
}

func TestSignals(t *testing.T) {
	folder := t.TempDir()
	for i, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGPWR} {
		s, err := launch(folder, layouts[0].flags()...)
		if err != nil {
			t.Fatal(err)
		}
		db := s.open(t, "signals")
		exec1(t, db, "create table if not exists t (a int primary key)", fmt.Sprintf("insert into t values (%d)", i))
		open, err := db.Begin() // a transaction that must not be there afterwards
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open.Exec("insert into t values (?)", 100+i); err != nil {
			t.Fatal(err)
		}
		_ = s.cmd.Process.Signal(signal)
		select {
		case <-s.exited:
		case <-time.After(startTimeout):
			s.kill()
			t.Fatalf("%v did not end it", signal)
		}
		if s.err != nil {
			t.Errorf("%v: %v\n%s", signal, s.err, s.stderr)
		}
		_ = open.Rollback()
		if state, err := os.ReadFile(filepath.Join(folder, "machine-0", "FARMSQL")); err != nil || !strings.Contains(string(state), "clean") {
			t.Errorf("%v: %q, %v", signal, state, err)
		}
	}
	s := start(t, folder)
	var sum int
	if err := s.connect(t, "signals").QueryRow("select count(*) * 10 + sum(a) from t").Scan(&sum); err != nil || sum != 33 {
		t.Errorf("%d, %v", sum, err)
	}
}

func TestCheckFindsDamage(t *testing.T) {
	empty := t.TempDir()
	for _, folder := range []string{filepath.Join(empty, "none"), empty} {
		refuse(t, 1, []string{"check", "--data", folder}, "nothing to check")
	}
	if contents(t, empty) != "" {
		t.Error("check made a database")
	}
	folder := prepared(t, false)
	check(t, folder)
	damage(t, filepath.Join(folder, "machine-0"))
	out, err := exec.Command(binary, "check", "--data", folder).CombinedOutput()
	if err == nil {
		t.Errorf("check found nothing:\n%s", out)
	}
}

// damage overwrites payload bytes in the middle of the used part of a region.
func damage(t *testing.T, machine string) {
	t.Helper()
	regions, err := filepath.Glob(filepath.Join(machine, "region-*.mem"))
	if err != nil || len(regions) == 0 {
		t.Fatal("no regions", err)
	}
	for _, path := range regions {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		page := make([]byte, 4096)
		for off := int64(64 << 10); ; off += int64(len(page)) {
			if n, err := f.ReadAt(page, off); err != nil || n < len(page) {
				break
			}
			if slices.ContainsFunc(page, func(b byte) bool { return b != 0 }) {
				for i := range page {
					page[i] ^= 0x5a
				}
				if _, err := f.WriteAt(page, off); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
	}
	t.Fatal("nothing to damage")
}
