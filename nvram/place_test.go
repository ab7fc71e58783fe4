package nvram

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// copyFolder copies a folder as cp -r does.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(to), 0o777))
	must(t, os.CopyFS(to, os.DirFS(from)))
}

// places returns folders on two file systems: a disk's, and a tmpfs.
func places(t *testing.T) map[string]string {
	all := map[string]string{"disk": t.TempDir()}
	if path, err := os.MkdirTemp("/dev/shm", "farmsql-test-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(path) })
		all["tmpfs"] = path
	}
	return all
}

// A copy of a folder is refused and not changed if it was made while the folder was in use, or
// after its process was killed. This does not depend on where the copy is, or on what happens to
// the original.
func TestCopyIsRefused(t *testing.T) {
	for name, dir := range places(t) {
		t.Run(name, func(t *testing.T) {
			path, running, killed := filepath.Join(dir, "folder"), filepath.Join(dir, "running"), filepath.Join(dir, "killed")
			f := open(t, path, Options{BootID: "boot"})
			mapped1(t, f, "region-1").Store(8, 42)
			copyFolder(t, path, running)
			must(t, f.Abandon())
			copyFolder(t, path, killed)
			// The copy is refused even under the name of the original.
			must(t, os.RemoveAll(path))
			copyFolder(t, killed, path)
			for _, p := range []string{running, killed, path} {
				before := contents(t, p)
				_, err := OpenFolder(p, Options{BootID: "boot"})
				wantError(t, err, ErrCopy, p)
				wantError(t, err, ErrCopy, "farmsql save")
				_, err = HoldFolder(p, Options{BootID: "boot"})
				wantError(t, err, ErrCopy, p)
				if !mapsEqual(before, contents(t, p)) {
					t.Errorf("%s was changed", p)
				}
			}
		})
	}
}

// A folder that keeps its place, or was not in use, does not count as a copy.
func TestNoCopy(t *testing.T) {
	for name, dir := range places(t) {
		t.Run(name, func(t *testing.T) {
			path, moved, copied := filepath.Join(dir, "folder"), filepath.Join(dir, "deep", "moved"), filepath.Join(dir, "copied")
			f := open(t, path, Options{})
			mapped1(t, f, "region-1").Store(8, 42)
			must(t, f.Abandon())
			for range 3 { // killed and started again in the same place
				must(t, open(t, path, Options{}).Abandon())
			}
			must(t, os.MkdirAll(filepath.Dir(moved), 0o777))
			must(t, os.Rename(path, moved))
			link := filepath.Join(dir, "link")
			must(t, os.Symlink(moved, link))
			must(t, open(t, link, Options{}).Abandon())
			f = open(t, moved, Options{})
			must(t, f.Close())
			copyFolder(t, moved, copied) // stopped
			for _, p := range []string{copied, moved} {
				f := open(t, p, Options{})
				if mapped1(t, f, "region-1").Load(8) != 42 {
					t.Errorf("%s lost its memory", p)
				}
				must(t, f.Abandon())
				must(t, open(t, p, Options{}).Close())
			}
		})
	}
}

// A folder in use by the version before has no place in its manifest. It is accepted, as it was
// then.
func TestFolderOfTheVersionBefore(t *testing.T) {
	path, copied := filepath.Join(t.TempDir(), "folder"), filepath.Join(t.TempDir(), "copied")
	f := open(t, path, Options{BootID: "boot"})
	mapped1(t, f, "region-1").Store(8, 42)
	must(t, f.Abandon())
	must(t, os.WriteFile(filepath.Join(path, manifestName), []byte("farmsql nvram folder\nformat 1\nstate open\nboot boot\n"), 0o666))
	copyFolder(t, path, copied)
	f = open(t, copied, Options{BootID: "boot"})
	if mapped1(t, f, "region-1").Load(8) != 42 {
		t.Error("memory is lost")
	}
	must(t, f.Abandon())
	m, _, err := readManifest(copied)
	if err != nil || m.place == "" {
		t.Errorf("in use by this version: %+v, %v", m, err)
	}
	must(t, open(t, copied, Options{BootID: "boot"}).Close())
}

// A trusted folder is refused again and is not saved until MarkChecked, no matter how it is left.
func TestTrustIsNotBelief(t *testing.T) {
	for name, leave := range map[string]func(*Folder) error{"closed": (*Folder).Close, "killed": (*Folder).Abandon} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, copied := filepath.Join(dir, "folder"), filepath.Join(dir, "copied")
			must(t, open(t, path, Options{BootID: "boot-1"}).Abandon())
			copyFolder(t, path, copied)
			for p, want := range map[string]error{path: ErrLost, copied: ErrCopy} {
				f := open(t, p, Options{BootID: "boot-2", Trust: true})
				wantError(t, f.UncheckedError(), want, "--trust")
				wantError(t, f.Save(t.TempDir()), want, "--trust")
				must(t, leave(f))
				_, err := OpenFolder(p, Options{BootID: "boot-2"})
				wantError(t, err, want, p)
				f = open(t, p, Options{BootID: "boot-2", Trust: true})
				must(t, f.MarkChecked())
				if f.UncheckedError() != nil {
					t.Error(f.UncheckedError())
				}
				must(t, leave(f))
				must(t, open(t, p, Options{BootID: "boot-2"}).Close())
			}
		})
	}
}

// Without a time of birth, another device means another place, until the computer is restarted.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		was, is             place
		sameBoot, isAnother bool
	}{
		{"", "5 1.000000001", true, false},
		{"5 1.000000001", "5 1.000000001", true, false},
		{"5 1.000000001", "5 1.000000002", true, true},
		{"5 1.000000001", "5 1.000000002", false, true},
		{"5 on 1", "5 on 1", true, false},
		{"5 on 1", "5 on 2", true, true},
		{"5 on 1", "5 on 2", false, false},
	} {
		if got := c.was.isAnother(c.is, c.sameBoot); got != c.isAnother {
			t.Errorf("%q, now %q, same boot %v: %v", c.was, c.is, c.sameBoot, got)
		}
	}
	closed, err := os.Open(t.TempDir())
	must(t, err)
	must(t, closed.Close())
	if _, err := placeOf(closed); !errors.Is(err, ErrUnwritable) || !strings.Contains(err.Error(), closed.Name()) {
		t.Error(err)
	}
}
