package nvram

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// areOthersIn returns the files and folders of a tree that other users may access.
func areOthersIn(t *testing.T, path string) (wide []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			wide = append(wide, info.Mode().String()+" "+p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return wide
}

// With any umask, no other user may read a folder, a save, a restored folder, or a replaced file.
// The same is true of files that an earlier version made readable for all.
func TestNobodyElseMayRead(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	folder, saves, file := filepath.Join(t.TempDir(), "a", "b"), filepath.Join(t.TempDir(), "saves"), filepath.Join(t.TempDir(), "c")
	use := func() {
		t.Helper()
		f, err := OpenFolder(folder, Options{Saves: saves})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Map("x", 4096); err != nil {
			t.Fatal(err)
		}
		if err := f.Save(saves); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if err := ReplaceFile(file, ".new", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string) {
		t.Helper()
		for _, path := range []string{folder, saves, file, file + ".new"} {
			for _, wide := range areOthersIn(t, path) {
				t.Errorf("%s: %s", when, wide)
			}
		}
	}
	use()
	check("new")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) < 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(folder, e.Name()), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + ".new"} {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	use()
	use() // the spare is the file that was before
	check("made by an earlier version")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(folder, Options{Saves: saves})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	check("restored")
}
