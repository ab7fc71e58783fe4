package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// runVM runs the command with its output in out.
func runVM(t *testing.T, args ...string) (status int, out string, err error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = stdout }()
	status, err = run(args)
	b, _ := os.ReadFile(f.Name())
	return status, string(b), err
}

// needsMachines skips a test where virtual machines cannot run; with REQUIRE_VM it fails.
func needsMachines(t *testing.T) {
	t.Helper()
	if err := prepared(); err != nil {
		if os.Getenv("REQUIRE_VM") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// TestRun boots the virtual machine with the tests of this package, which succeed and which fail.
func TestRun(t *testing.T) {
	if os.Getenv("FARMSQL_IN_VM") != "" {
		t.Skip("this is the virtual machine")
	}
	needsMachines(t)
	status, out, err := runVM(t, "-hosts", "2", "-tags", "gms_pure_go", ".", "-test.v", "-test.run", "^TestGuest$")
	if status != 0 || err != nil || !strings.Contains(out, "--- PASS: TestGuest") {
		t.Errorf("tests that pass: status %d, %v, output %q", status, err, out)
	}
	status, out, err = runVM(t, "-hosts", "2", "-tags", "gms_pure_go", "-env", "FARMSQL_FAIL=1", ".", "-test.run", "^TestGuest$")
	if status != 1 || err != nil || !strings.Contains(out, "fails as told: it's so") {
		t.Errorf("tests that fail: status %d, %v, output %q", status, err, out)
	}
}

// prepared returns what is missing for a virtual machine, short of a kernel that can be downloaded.
func prepared() error {
	for name, in := range map[string]string{qemu: "qemu-system-x86", "busybox": "busybox-static", "rdma": "iproute2"} {
		if _, err := exec.LookPath(name); err != nil {
			return errors.New(name + " is missing: install " + in)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	if found, _ := filepath.Glob(cache + "/farmsql/vm/linux-image-*"); len(found) == 0 && os.Getenv("REQUIRE_VM") == "" {
		return errors.New("no kernel has been downloaded yet: go run ./test/vm ./test/vm, or REQUIRE_VM=1")
	}
	_, err = os.Stat(provider)
	return err
}

func TestRefused(t *testing.T) {
	empty := t.TempDir()
	bad := t.TempDir()
	for _, dir := range []string{"boot", "lib/modules"} {
		if err := os.MkdirAll(filepath.Join(bad, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(bad+"/boot/vmlinuz-1", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":     {nil, "which package?"},
		"hosts":       {[]string{"-hosts", "10", "."}, "from 1 to 9"},
		"unknown":     {[]string{"-fast", "."}, "not defined: -fast"},
		"no package":  {[]string{"./nowhere"}, "building the tests of ./nowhere"},
		"no kernel":   {[]string{"-kernel", empty, "-tags", "gms_pure_go", "."}, "has 0 files boot/vmlinuz-*"},
		"no modules":  {[]string{"-kernel", bad, "-tags", "gms_pure_go", "."}, "no modules"},
		"no tests":    {[]string{"-tags", "gms_pure_go", "../../internal/invariant"}, "has no tests"},
		"only a help": {[]string{"-h"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, _, err := runVM(t, c.args...)
			if c.want == "" {
				if status != 0 || err != nil {
					t.Errorf("status %d, %v", status, err)
				}
				return
			}
			if status != notRun || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("status %d, %v, want %q", status, err, c.want)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	killed := errors.New("signal: killed")
	for name, c := range map[string]struct {
		said   string
		err    error
		status int
		want   string
	}{
		"passed":       {"x\r\n@@ begin 3\r\n@@ status 0\r\n", nil, 0, ""},
		"failed":       {"@@ status 1\n", nil, 1, ""},
		"not prepared": {"@@ reason insmod x.ko\r\n@@ status 125\r\n", nil, notRun, "could not be prepared: insmod x.ko; it said"},
		"panic":        {"Kernel panic\n", nil, notRun, "without a status"},
		"cut off":      {"@@ begin 3\n", killed, notRun, "signal: killed"},
		"no number":    {"@@ status 99999999999999999999\n", nil, notRun, "out of range"},
	} {
		status, err := verdict([]byte(c.said), c.err)
		if status != c.status || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: status %d, %v", name, status, err)
		}
	}
}

// TestProcessors: QEMU leaves out fences if a machine can have one processor only.
func TestProcessors(t *testing.T) {
	for n, want := range map[int]string{1: "1,maxcpus=2", 2: "2,maxcpus=2", 4: "4,maxcpus=4"} {
		if got := processors(n); got != want {
			t.Errorf("%d processors: %q, want %q", n, got, want)
		}
	}
}

func TestNeedsOf(t *testing.T) {
	info := "license=GPL\x00depends=ib_core,udp-tunnel\x00softdep=pre: crc32c post: late\x00softdep=post: later\x00depends=\x00"
	if got, want := needsOf([]byte(info)), []string{"ib_core", "udp_tunnel", "crc32c"}; !slices.Equal(got, want) {
		t.Errorf("needs %v, want %v", got, want)
	}
}

// TestInOrder looks at files that are no modules, and modules that are not there.
func TestInOrder(t *testing.T) {
	file := t.TempDir() + "/a.ko"
	if err := os.WriteFile(file, []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{image: "k", modules: map[string]string{"a": file, "b": own}}
	for name, want := range map[string]string{"a": "EOF", "b": "no .modinfo", "c": "no module c"} {
		if _, err := k.inOrder(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestArchive checks that entries are where the format says, and each is there once, with its folders.
func TestArchive(t *testing.T) {
	var a archive
	a.add("/x/y/file", modeProgram, []byte("12345"))
	a.add("x/y/file", modeProgram, []byte("other"))
	a.add("x/link", modeLink, []byte("y/file"))
	b := a.bytes()
	var got []string
	for len(b) > 0 {
		if !bytes.HasPrefix(b, []byte("070701")) || len(b) < 110 {
			t.Fatalf("no header: %q", b)
		}
		size, length := hex(t, b[54:62]), hex(t, b[94:102])
		name := string(b[110 : 110+length-1])
		at := (110 + length + 3) &^ 3
		got = append(got, name+"="+string(b[at:at+size]))
		b = b[(at+size+3)&^3:]
	}
	if want := []string{"x=", "x/y=", "x/y/file=12345", "x/link=y/file", "TRAILER!!!="}; !slices.Equal(got, want) {
		t.Errorf("archive has %q, want %q", got, want)
	}
	if err := a.addProgram("p", t.TempDir()+"/none"); err == nil {
		t.Error("a program that is not there was added")
	}
	if err := a.addLibrary("libnone.so.7"); err == nil || !strings.Contains(err.Error(), "libnone.so.7 is in none of") {
		t.Errorf("a library that is not there: %v", err)
	}
}

func hex(t *testing.T, b []byte) (n int) {
	t.Helper()
	for _, c := range b {
		d := strings.IndexByte("0123456789abcdef", c)
		if d < 0 {
			t.Fatalf("%q is no number", b)
		}
		n = n<<4 | d
	}
	return n
}

func TestQuote(t *testing.T) {
	for _, s := range []string{"a b", "it's", `"$x"`, ""} {
		out, err := exec.Command("sh", "-c", "printf %s "+quote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q became %q (%v)", s, out, err)
		}
	}
}
