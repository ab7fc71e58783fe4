package nvram

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mountSmall mounts a tmpfs of a size.
func mountSmall(t *testing.T, size string) string {
	t.Helper()
	path := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root may mount a file system")
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("SKIPPED: a file system cannot be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(path, 0); err != nil {
			t.Error(err)
		}
	})
	return path
}

// On a full file system an existing file can be replaced any number of times, and a new file cannot
// be made. A file stays as it was if there is no room for its replacement.
func TestReplaceFileWithoutSpace(t *testing.T) {
	dir := mountSmall(t, "1m")
	path := filepath.Join(dir, "file")
	must(t, ReplaceFile(path, ".next", []byte("0")))
	full, err := os.Create(filepath.Join(dir, "full"))
	must(t, err)
	for err == nil {
		_, err = full.Write(make([]byte, 4096))
	}
	wantError(t, err, syscall.ENOSPC, "full")
	must(t, full.Close())
	last := ""
	for i := range 100 {
		last = strings.Repeat("x", i*41+1) // longer than before, and at last than a page
		must(t, ReplaceFile(path, ".next", []byte(last)))
		if b, err := os.ReadFile(path); err != nil || string(b) != last {
			t.Fatalf("%d: %d bytes, %v", i, len(b), err)
		}
	}
	must(t, ReplaceFile(path, ".next", []byte("short")))
	wantError(t, ReplaceFile(path, ".next", make([]byte, 100_000)), syscall.ENOSPC, "file.next")
	wantError(t, ReplaceFile(filepath.Join(dir, "other"), ".next", []byte("x")), syscall.ENOSPC, "other.next")
	if b, err := os.ReadFile(path); err != nil || string(b) != "short" {
		t.Errorf("after it could not be replaced: %q, %v", b, err)
	}
	must(t, ReplaceFile(path, ".next", []byte("again")))
}
