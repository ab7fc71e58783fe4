package nvram

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPinnableFileSystems(t *testing.T) {
	for name, c := range map[string]struct {
		kind int64
		want bool
	}{
		"tmpfs": {unix.TMPFS_MAGIC, true}, "ramfs": {unix.RAMFS_MAGIC, true}, "ext4": {unix.EXT4_SUPER_MAGIC, false},
		"xfs": {unix.XFS_SUPER_MAGIC, false}, "overlayfs": {unix.OVERLAYFS_SUPER_MAGIC, false}, "hugetlbfs": {unix.HUGETLBFS_MAGIC, false},
	} {
		if got := isPinnable(c.kind); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A folder that has to be pinnable is refused, before anything of it is made, on every file system
// but those of memory.
func TestPinnableFolder(t *testing.T) {
	for _, parent := range []string{"/dev/shm", "."} {
		parent, err := os.MkdirTemp(parent, "pinnable-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { must(t, os.RemoveAll(parent)) })
		path := filepath.Join(parent, "new", "folder")
		var s unix.Statfs_t
		must(t, unix.Statfs(parent, &s))
		f, err := OpenFolder(path, Options{Pinnable: true})
		if isPinnable(int64(s.Type)) {
			must(t, err)
			m := mapped1(t, f, "m")
			m.Store(0, 7)
			must(t, f.Close())
			continue
		}
		wantError(t, err, ErrMedium, path)
		if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a refused folder has been made: %v", err)
		}
		open(t, path, Options{}) // which is no matter without the option
	}
	_, err := OpenFolder("no\x00name", Options{Pinnable: true})
	wantError(t, err, ErrUnwritable, "statfs")
}
