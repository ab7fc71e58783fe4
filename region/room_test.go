package region

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// TestFillWithoutRoom: a replica that is being filled leaves out writes for which it has no
// storage, until there is room.
func TestFillWithoutRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root may mount a file system")
	}
	folder := t.TempDir()
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("SKIPPED: a file system cannot be mounted here: %v", err)
	}
	f, err := nvram.OpenFolder(folder, nvram.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Abandon(), syscall.Unmount(folder, 0)); err != nil {
			t.Error(err)
		}
	})
	m, err := f.Map("backup", MinSize)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := Format(1, m)
	if err != nil {
		t.Fatal(err)
	}
	primary, err := Format(1, nvram.NewMemory(MinSize))
	if err != nil {
		t.Fatal(err)
	}
	a := NewAllocator(AllocatorConfig{Workers: 1})
	a.Add(primary)
	var ptrs []Ptr
	for range 40 {
		p, v, _, err := a.Alloc(Ordinary, 0, 10_000, 0)
		if err != nil {
			t.Fatal(err)
		}
		primary.Lock(p, v)
		primary.Write(p, bytes.Repeat([]byte{7}, 10_000), v+1, true, p.Incarnation())
		ptrs = append(ptrs, p)
	}
	table := make([]byte, tableEnd(MinSize)-tableOffset)
	primary.Memory().CopyOut(table, tableOffset)
	backup.Memory().CopyIn(tableOffset, table)

	backup.BeginFill()
	payload := make([]byte, ptrs[0].Capacity())
	missed := 0
	for _, p := range ptrs {
		h := primary.Header(p.Addr.Offset())
		if !backup.ApplyBackup(p, bytes.Repeat([]byte{7}, 10_000), h.Version(), true, p.Incarnation()) {
			t.Fatalf("%v is refused", p)
		}
		if backup.hasRoom(uint64(p.Addr.Offset()), uint64(p.Class().Size())) {
			if _, err := backup.ReadObject(p, payload); err != nil || payload[9_999] != 7 {
				t.Errorf("%v: %v", p, err)
			}
		} else {
			missed++
		}
	}
	if missed == 0 || missed == len(ptrs) {
		t.Errorf("%d of %d were left out", missed, len(ptrs))
	}
	full, incomplete := 0, 0
	for p := range backup.Pieces(8 << 10) {
		if backup.Missed(p) {
			incomplete++
		}
		if err := backup.MakeRoom(p); errors.Is(err, nvram.ErrNoSpace) {
			full++
		} else if err != nil {
			t.Error(err)
		}
	}
	if full == 0 || incomplete == 0 {
		t.Errorf("there is no room for %d pieces, and writes to %d were left out", full, incomplete)
	}
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	takeAll(t, primary, backup)
	for _, p := range ptrs {
		if _, err := backup.ReadObject(p, payload); err != nil || payload[9_999] != 7 {
			t.Errorf("%v: %v", p, err)
		}
	}
	backup.EndFill()
	for p := range backup.Pieces(8 << 10) {
		if backup.Missed(p) {
			t.Fatal("something is missed after the end")
		}
	}
}

// takeAll fills a backup.
func takeAll(t *testing.T, primary, backup *Region) {
	t.Helper()
	for p := range backup.Pieces(8 << 10) {
		raw := make([]byte, p.Bytes)
		if err := backup.MakeRoom(p); err != nil {
			t.Fatal(err)
		}
		primary.Memory().CopyOut(raw, p.Offset)
		p.IsSettled = true
		if !backup.Take(p, raw) {
			t.Errorf("%+v is not whole", p)
		}
	}
}

// The primary may still hold the lock of a write that was left out. The backup takes settled
// objects only after the lock is gone.
func TestTakeSettled(t *testing.T) {
	primary, err := Format(1, nvram.NewMemory(MinSize))
	if err != nil {
		t.Fatal(err)
	}
	backup, err := Format(1, nvram.NewMemory(MinSize))
	if err != nil {
		t.Fatal(err)
	}
	a := NewAllocator(AllocatorConfig{Workers: 1, Replicate: func(_ *Tenure, off uint64, b []byte, _ uint32) error {
		backup.Memory().CopyIn(off, b)
		return nil
	}})
	a.Add(primary)
	p, v, _, err := a.Alloc(Ordinary, 0, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	primary.Lock(p, v)
	for piece := range backup.Pieces(4 << 10) {
		raw := make([]byte, piece.Bytes)
		primary.Memory().CopyOut(raw, piece.Offset)
		holds := uint64(p.Addr.Offset()) >= piece.Offset && uint64(p.Addr.Offset()) < piece.Offset+uint64(piece.Bytes)
		if !backup.Take(piece, raw) {
			t.Errorf("%+v: a lock of a writer who writes here, too, is waited for", piece)
		}
		piece.IsSettled = true
		if backup.Take(piece, raw) == holds {
			t.Errorf("%+v is whole: %v", piece, holds)
		}
	}
}
