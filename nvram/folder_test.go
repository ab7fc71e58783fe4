package nvram

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const size = 1 << 20

func open(t *testing.T, path string, o Options) *Folder {
	t.Helper()
	f, err := OpenFolder(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Abandon() })
	return f
}

func mapped1(t *testing.T, f *Folder, name string) *Memory {
	t.Helper()
	m, err := f.Map(name, size)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the sentinel and that the text says what it should.
func wantError(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v, want %v with %q", err, want, text)
	}
}

// contents returns all files below path but the lock.
func contents(t *testing.T, path string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockName {
			return err
		}
		b, err := os.ReadFile(p)
		files[p] = string(b)
		return err
	}))
	return files
}

func TestMemoryOutlivesItsProcess(t *testing.T) {
	for _, leave := range []struct {
		name string
		do   func(*Folder) error
		boot string // of the next start
	}{
		{"killed", (*Folder).Abandon, "boot-1"},
		{"closed", (*Folder).Close, "boot-1"},
		{"closed, then rebooted", (*Folder).Close, "boot-2"},
	} {
		t.Run(leave.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "deep", "folder")
			f := open(t, path, Options{BootID: "boot-1"})
			m := mapped1(t, f, "region-1")
			m.Store(8, 42)
			m.Store(size-8, 43)
			must(t, m.Reserve(4096, 8192))
			must(t, leave.do(f))
			mustPanic(t, "memory of a closed folder", func() { m.Load(8) })

			f = open(t, path, Options{BootID: leave.boot})
			m = mapped1(t, f, "region-1")
			if m.Load(8) != 42 || m.Load(size-8) != 43 || m.Load(4096) != 0 {
				t.Errorf("%d %d %d", m.Load(8), m.Load(size-8), m.Load(4096))
			}
			must(t, f.Close())
		})
	}
}

func TestLostAfterReboot(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, Options{BootID: "boot-1"})
	mapped1(t, f, "region-1").Store(8, 42)
	must(t, f.Abandon())
	before := contents(t, path)
	_, err := OpenFolder(path, Options{BootID: "boot-2"})
	wantError(t, err, ErrLost, "farmsql restore")
	if after := contents(t, path); !mapsEqual(before, after) {
		t.Error("the refused folder was changed")
	}
	// Not even the boot it belongs to is forgotten.
	must(t, open(t, path, Options{BootID: "boot-1"}).Abandon())

	f = open(t, path, Options{BootID: "boot-2", Trust: true})
	if mapped1(t, f, "region-1").Load(8) != 42 {
		t.Error("a trusted folder lost its memory")
	}
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

func TestFolderInUse(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, Options{})
	_, err := OpenFolder(path, Options{})
	wantError(t, err, ErrInUse, path)
	_, err = restore(path, t.TempDir(), true, Options{})
	wantError(t, err, ErrNoSave, "")
	must(t, f.Close())
	must(t, f.Close()) // again is harmless
	must(t, open(t, path, Options{}).Close())
}

func TestUnwritableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o666))
	_, err := OpenFolder(filepath.Join(file, "below"), Options{})
	wantError(t, err, ErrUnwritable, "not a directory")
	_, err = OpenFolder("/proc", Options{})
	wantError(t, err, ErrUnwritable, "/proc")
	path := t.TempDir()
	must(t, os.Mkdir(filepath.Join(path, manifestName+".next"), 0o777))
	_, err = OpenFolder(path, Options{})
	wantError(t, err, ErrUnwritable, manifestName)
	_, err = OpenFolder(t.TempDir(), Options{Saves: filepath.Join(file, "below")})
	if err == nil {
		t.Error("saves below a file")
	}
}

func TestUnknownFormats(t *testing.T) {
	for _, bad := range []struct{ manifest, text string }{
		{"farmsql nvram folder\nformat 2\nstate future\n", "newer farmsql"},
		{"farmsql nvram folder\nformat x\n", "without a format"},
		{"farmsql nvram folder\nformat 1\nstate odd\nboot b\n", "damaged"},
		{"something else", "not a farmsql folder"},
	} {
		path := t.TempDir()
		must(t, os.WriteFile(filepath.Join(path, manifestName), []byte(bad.manifest), 0o666))
		before := contents(t, path)
		_, err := OpenFolder(path, Options{})
		wantError(t, err, ErrFormat, bad.text)
		if !mapsEqual(before, contents(t, path)) {
			t.Errorf("%q: folder was changed", bad.manifest)
		}
	}
	path := t.TempDir()
	must(t, os.WriteFile(filepath.Join(path, "region-1.mem"), []byte("x"), 0o666))
	_, err := OpenFolder(path, Options{})
	wantError(t, err, ErrFormat, "holds memory files")
}

func TestMapErrors(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, Options{})
	for _, name := range []string{"", "../x", "A", "a.b", strings.Repeat("x", 200)} {
		_, err := f.Map(name, size)
		wantError(t, err, ErrName, "")
	}
	mapped1(t, f, "m")
	_, err := f.Map("m", size)
	wantError(t, err, ErrName, "mapped already")
	for _, n := range []int64{0, -8, 12} {
		_, err := f.Map("n", n)
		wantError(t, err, ErrSize, "multiple of 8")
	}
	must(t, f.Abandon())
	f = open(t, path, Options{})
	_, err = f.Map("m", 2*size)
	wantError(t, err, ErrSize, "1048576")
	if n, err := f.MemorySize("m"); n != size || err != nil {
		t.Error(n, err)
	}
	_, err = f.MemorySize("n")
	wantError(t, err, fs.ErrNotExist, "n.mem")
	must(t, os.Mkdir(filepath.Join(path, "dir.mem"), 0o777))
	_, err = f.Map("dir", size)
	wantError(t, err, ErrUnwritable, "dir.mem")
	must(t, os.Remove(filepath.Join(path, "dir.mem")))
	must(t, f.Close())
	_, err = f.Map("m", size)
	wantError(t, err, ErrClosed, "")
	wantError(t, f.Save(t.TempDir()), ErrClosed, "")
}

func TestNamesAndRemove(t *testing.T) {
	f := open(t, t.TempDir(), Options{})
	a := mapped1(t, f, "b")
	mapped1(t, f, "a")
	if names, err := f.Names(); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Error(names, err)
	}
	must(t, f.Remove("b"))
	mustPanic(t, "removed memory", func() { a.Load(0) })
	must(t, f.Remove("never was"))
	if names, _ := f.Names(); !slices.Equal(names, []string{"a"}) {
		t.Error(names)
	}
	if mapped1(t, f, "b").Load(0) != 0 {
		t.Error("removed memory came back")
	}
}

// TestUntouchedMemoryHasNoStorage: a large region is cheap until it is used.
func TestUntouchedMemoryHasNoStorage(t *testing.T) {
	f := open(t, t.TempDir(), Options{})
	m, err := f.Map("big", 64<<20)
	must(t, err)
	m.Store(32<<20, 1)
	var stored int64
	if memoryOnHeap {
		must(t, f.flushLocked())
	}
	must(t, eachExtent(m.file.file, 64<<20, func(_, n int64) error { stored += n; return nil }))
	if stored == 0 || stored > 2<<20 {
		t.Errorf("one word takes %d bytes", stored)
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add(manifest{state: stateClean, boot: "boot"}.encode())
	f.Add([]byte("farmsql nvram folder\nformat 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeManifest(b)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Error(err)
			}
			return
		}
		if again, err := decodeManifest(m.encode()); err != nil || again != m {
			t.Errorf("%v became %v, %v", m, again, err)
		}
	})
}

// TestReserveWithoutSpace asks a tmpfs, which knows its size, for too much.
func TestReserveWithoutSpace(t *testing.T) {
	if memoryOnHeap {
		t.Skip("race builds keep memory on the heap")
	}
	path, err := os.MkdirTemp("/dev/shm", "farmsql-test-")
	if err != nil {
		t.Skip("SKIPPED: there is no tmpfs: ", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	f := open(t, path, Options{})
	m, err := f.Map("huge", 1<<42)
	must(t, err)
	must(t, m.Reserve(0, 4096))
	wantError(t, m.Reserve(0, 1<<42), ErrNoSpace, "huge.mem")
	must(t, f.Close())
}

// BenchmarkSave saves and restores memory that is all in use.
func BenchmarkSave(b *testing.B) {
	const bytes = 256 << 20
	f, err := OpenFolder(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	m, err := f.Map("m", bytes)
	if err != nil {
		b.Fatal(err)
	}
	for off := uint64(0); off < bytes; off += LineBytes {
		m.Store(off, off+1)
	}
	saves := b.TempDir()
	b.Run("save", func(b *testing.B) {
		b.SetBytes(bytes)
		for b.Loop() {
			if err := f.Save(saves); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	to := b.TempDir()
	b.Run("restore", func(b *testing.B) {
		b.SetBytes(bytes)
		for b.Loop() {
			if _, err := restore(to, saves, true, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
