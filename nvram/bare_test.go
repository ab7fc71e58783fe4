package nvram

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// On a file system without a free page, memory without storage reads as zero, in this process and
// in another one. Memory that has been cut off does not.
func TestCopyOutBare(t *testing.T) {
	if memoryOnHeap {
		t.Skip("memory is not mapped in race builds")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may mount a file system")
	}
	folder := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	f, err := OpenFolder(filepath.Join(folder, "data"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := f.Map("memory", 512<<10)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reserve(0, 8<<10); err != nil {
		t.Fatal(err)
	}
	m.Store(0, 42)
	m.Store(4096, 43)
	l, _ := m.Location()
	other, err := Attach(l, 512<<10)
	if err != nil {
		t.Fatal(err)
	}
	m.Discard(4096, 4096)
	useUp(t, folder)
	for name, m := range map[string]*Memory{"own": m, "another's": other} {
		b := bytes.Repeat([]byte{0xff}, 64)
		m.CopyOutBare(b, 4096)
		if !bytes.Equal(b, make([]byte, 64)) {
			t.Errorf("%s memory: %x", name, b)
		}
		if m.CopyOutBare(b, 0); b[0] != 42 {
			t.Errorf("%s memory that has storage: %x", name, b)
		}
	}
	if err := os.Truncate(l.Path, 4096); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*Memory{"own": m, "another's": other} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s memory that is cut short reads as zero", name)
				}
			}()
			m.CopyOutBare(make([]byte, 8), 64<<10)
		}()
	}
}

// useUp takes all free pages of a file system.
func useUp(t *testing.T, folder string) {
	t.Helper()
	f, err := os.Create(filepath.Join(folder, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
}

// Volatile memory is given back, too.
func TestDiscardVolatile(t *testing.T) {
	m := NewMemory(64 << 10)
	for off := range m.Size() / 8 {
		m.Store(off*8, 7)
	}
	m.Discard(4096+8, 8192)
	if m.Load(4096) != 7 || m.Load(8192-8) != 7 || m.Load(8192) != 0 || m.Load(12288-8) != 0 || m.Load(12288) != 7 {
		t.Errorf("%d %d %d %d %d", m.Load(4096), m.Load(8192-8), m.Load(8192), m.Load(12288-8), m.Load(12288))
	}
}
