package nvram

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// sharers are the two kinds of memory that others can attach.
func sharers(t *testing.T) map[string]*Memory {
	if memoryOnHeap {
		t.Skip("race builds keep memory on the heap: TestNothingIsSharedInRaceBuilds")
	}
	volatile, err := NewShared(size)
	must(t, err)
	return map[string]*Memory{"folder": mapped1(t, open(t, t.TempDir(), Options{}), "m"), "volatile": volatile}
}

func TestAttach(t *testing.T) {
	for name, m := range sharers(t) {
		l, shared := m.Location()
		if !shared || !filepath.IsAbs(l.Path) {
			t.Fatalf("%s: location %+v", name, l)
		}
		m.Store(8, 42)
		again, err := Attach(l, size/2)
		must(t, err)
		if again.Load(8) != 42 || again.Size() != size/2 {
			t.Errorf("%s: attached %d bytes, loaded %d", name, again.Size(), again.Load(8))
		}
		again.Store(16, 43)
		if m.Load(16) != 43 {
			t.Errorf("%s: loaded %d", name, m.Load(16))
		}
		if _, shared := again.Location(); shared {
			t.Errorf("%s: attached memory has a location of its own", name)
		}
		runtime.KeepAlive(m)
	}
}

func TestAttachErrors(t *testing.T) {
	for name, m := range sharers(t) {
		l, _ := m.Location()
		_, err := Attach(l, size+8)
		wantError(t, err, ErrSize, "no file of")
		_, err = Attach(l, 12)
		wantError(t, err, ErrSize, "multiple of 8")
		other := l
		other.Inode++
		_, err = Attach(other, size)
		wantError(t, err, ErrGone, "another file")
		if err := syscall.Truncate(l.Path, 8); (err == nil) != (name == "folder") {
			t.Errorf("%s: cutting it short: %v", name, err)
		}
		runtime.KeepAlive(m)
	}
	path := filepath.Join(t.TempDir(), "pipe")
	_, err := Attach(Location{Path: path}, size)
	wantError(t, err, ErrGone, path)
	_, err = Attach(Location{Path: filepath.Dir(path)}, size)
	wantError(t, err, syscall.EISDIR, path[:len(path)-5])
	must(t, syscall.Mkfifo(path, 0o600))
	info, err := os.Stat(path)
	must(t, err)
	s := info.Sys().(*syscall.Stat_t)
	_, err = Attach(Location{path, s.Dev, s.Ino}, size)
	wantError(t, err, ErrSize, "no file of")
}

// Attached memory outlives its name and its folder.
func TestAttachedMemoryStays(t *testing.T) {
	for name, m := range sharers(t) {
		l, _ := m.Location()
		again, err := Attach(l, size)
		must(t, err)
		m.Store(8, 42)
		if name == "folder" {
			must(t, os.RemoveAll(filepath.Dir(l.Path)))
		}
		m = nil
		runtime.GC()
		if again.Load(8) != 42 {
			t.Errorf("%s: loaded %d", name, again.Load(8))
		}
	}
}

func TestSharedErrors(t *testing.T) {
	for _, n := range []int64{0, -8, 12} {
		_, err := NewShared(n)
		wantError(t, err, ErrSize, "multiple of 8")
	}
	if memoryOnHeap {
		return
	}
	if _, err := NewShared(1 << 62); err == nil {
		t.Error("more than there is")
	}
	if _, shared := NewMemory(8).Location(); shared {
		t.Error("private memory has a location")
	}
}

func TestNothingIsSharedInRaceBuilds(t *testing.T) {
	if !memoryOnHeap {
		return
	}
	m, err := NewShared(size)
	must(t, err)
	if _, shared := m.Location(); shared || m.Size() != size {
		t.Error("memory on the heap has a location")
	}
	_, err = Attach(Location{Path: "somewhere"}, size)
	wantError(t, err, ErrPrivate, "somewhere")
}
