package nvram

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// fill makes a folder with two memories. One of them is not mapped any more.
func fill(t *testing.T, path string, o Options, v uint64) *Folder {
	t.Helper()
	f := open(t, path, o)
	mapped1(t, f, "log-1-2").Store(8, v)
	must(t, f.Abandon())
	f = open(t, path, o)
	m, err := f.Map("region-1", 8<<20+8)
	must(t, err)
	m.Store(0, v)
	m.Store(5<<20, v)
	m.Store(8<<20, v)
	return f
}

func expect(t *testing.T, f *Folder, v uint64) {
	t.Helper()
	log := mapped1(t, f, "log-1-2")
	m, err := f.Map("region-1", 8<<20+8)
	must(t, err)
	got := []uint64{log.Load(8), m.Load(0), m.Load(5 << 20), m.Load(8 << 20), m.Load(8), log.Load(16)}
	if fmt.Sprint(got) != fmt.Sprint([]uint64{v, v, v, v, 0, 0}) {
		t.Errorf("%v, want %d", got, v)
	}
}

// restore restores the newest save in dir into the folder at path, and returns the save.
func restore(path, dir string, overwrite bool, o Options) (string, error) {
	n, err := newestSave(dir)
	if err != nil {
		return "", err
	}
	save := filepath.Join(dir, saveName(n))
	s, err := OpenSave(save)
	if err != nil {
		return save, err
	}
	r, err := BeginRestore(path, s, overwrite, o)
	if err != nil {
		return save, err
	}
	if err := r.Stage(nil); err != nil {
		return save, errors.Join(err, r.Cancel())
	}
	return save, errors.Join(r.Replace(), r.Finish())
}

func TestSaveAndRestore(t *testing.T) {
	saves := t.TempDir()
	f := fill(t, t.TempDir(), Options{}, 1)
	must(t, f.Save(saves))
	must(t, f.Close())

	f = fill(t, t.TempDir(), Options{}, 2)
	must(t, f.Save(saves))
	must(t, f.Save(saves))
	must(t, f.Close())
	if numbers, _ := saveNumbers(saves); fmt.Sprint(numbers) != "[2 3]" {
		t.Errorf("saves %v", numbers)
	}

	path := filepath.Join(t.TempDir(), "new")
	save, err := restore(path, saves, false, Options{})
	if err != nil || filepath.Base(save) != "save-00000003" {
		t.Fatal(save, err)
	}
	f = open(t, path, Options{BootID: "any"})
	expect(t, f, 2)
	must(t, f.Abandon())
}

func TestSavesAreSparse(t *testing.T) {
	saves := t.TempDir()
	f := open(t, t.TempDir(), Options{})
	m, err := f.Map("big", 64<<20)
	must(t, err)
	m.Store(32<<20, 1)
	m.Store(50<<20, 1)
	m.Store(50<<20, 0) // touched, but zero
	must(t, f.Save(saves))
	index, err := os.ReadFile(filepath.Join(saves, saveName(1), indexName))
	must(t, err)
	images, err := decodeIndex(index)
	if err != nil || len(images) != 1 || len(images[0].chunks) != 1 {
		t.Fatalf("%v %v", images, err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	saves, path := t.TempDir(), t.TempDir()
	_, err := restore(path, saves, false, Options{})
	wantError(t, err, ErrNoSave, saveName(0))
	f := fill(t, path, Options{BootID: "1"}, 1)
	must(t, f.Save(saves))
	_, err = restore(path, saves, false, Options{})
	wantError(t, err, ErrInUse, path)
	must(t, f.Abandon())
	_, err = restore(path, saves, false, Options{BootID: "1"})
	wantError(t, err, ErrNotEmpty, path)
	_, err = restore(path, saves, false, Options{BootID: "2"}) // lost anyway
	must(t, err)
	f = open(t, path, Options{BootID: "1"})
	expect(t, f, 1)
	must(t, f.Close())
	_, err = restore(path, saves, true, Options{})
	must(t, err)
}

func TestUnfinishedSaveDoesNotCount(t *testing.T) {
	saves, path := t.TempDir(), t.TempDir()
	f := fill(t, path, Options{}, 1)
	must(t, f.Save(saves))
	must(t, os.Mkdir(filepath.Join(saves, saveName(2)+unfinishedSuffix), 0o777))
	must(t, f.Close())
	save, err := restore(path, saves, true, Options{})
	if err != nil || filepath.Base(save) != saveName(1) {
		t.Fatal(save, err)
	}
	f = open(t, path, Options{})
	must(t, f.Save(saves)) // clears it away
	if _, err := os.Stat(filepath.Join(saves, saveName(2)+unfinishedSuffix)); err == nil {
		t.Error("unfinished save stayed")
	}
}

func TestFailedSaveLeavesNothing(t *testing.T) {
	saves, path := t.TempDir(), t.TempDir()
	f := fill(t, path, Options{}, 1)
	must(t, os.WriteFile(filepath.Join(path, "odd.mem"), []byte("not a multiple of 8"), 0o666))
	wantError(t, f.Save(saves), ErrSize, "odd.mem")
	if entries, _ := os.ReadDir(saves); len(entries) != 0 {
		t.Errorf("left %v", entries)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o666))
	wantError(t, f.Save(filepath.Join(file, "below")), ErrUnwritable, "not a directory")
}

func TestDamagedSaves(t *testing.T) {
	damage := func(name string, at int64) func(string) error {
		return func(save string) error {
			f, err := os.OpenFile(filepath.Join(save, name), os.O_RDWR, 0)
			if err != nil {
				return err
			}
			var b [1]byte
			_, err = f.ReadAt(b[:], at)
			b[0] ^= 4
			_, err2 := f.WriteAt(b[:], at)
			return errors.Join(err, err2, f.Close())
		}
	}
	for what, do := range map[string]func(string) error{
		"image":         damage("region-1.img", 5<<20),
		"tail":          damage("region-1.img", 8<<20),
		"index":         damage(indexName, 40),
		"missing index": func(save string) error { return os.Remove(filepath.Join(save, indexName)) },
		"missing image": func(save string) error { return os.Remove(filepath.Join(save, "log-1-2.img")) },
		"short image":   func(save string) error { return os.Truncate(filepath.Join(save, "region-1.img"), 4<<20) },
	} {
		saves, path := t.TempDir(), t.TempDir()
		f := fill(t, path, Options{BootID: "1"}, 1)
		must(t, f.Save(saves))
		must(t, f.Close())
		must(t, do(filepath.Join(saves, saveName(1))))
		if _, err := restore(path, saves, true, Options{BootID: "1"}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		// The folder has not changed, and no new one was made.
		f = open(t, path, Options{BootID: "1"})
		expect(t, f, 1)
		must(t, f.Close())
		none := filepath.Join(t.TempDir(), "none")
		if _, err := restore(none, saves, false, Options{BootID: "1"}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(none); err == nil {
			t.Errorf("%s: a folder was left behind", what)
		}
		_, err := OpenFolder(none, Options{BootID: "1", Saves: saves})
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: opened: %v", what, err)
		}
	}
}

// A restore that is killed leaves the folder as it was, or as one that is refused
// until it is restored.
func TestKilledRestore(t *testing.T) {
	saves, path := t.TempDir(), t.TempDir()
	must(t, open1AndSave(t, saves))
	s, err := OpenSave(filepath.Join(saves, saveName(1)))
	must(t, err)
	must(t, fill(t, path, Options{}, 2).Close())

	r, err := BeginRestore(path, s, true, Options{})
	must(t, err)
	must(t, r.Stage(nil))
	must(t, r.lock.Close())
	f := open(t, path, Options{})
	expect(t, f, 2)
	if _, err := os.Stat(r.staging()); err == nil {
		t.Error("what was prepared is still there")
	}
	must(t, f.Close())

	r, err = BeginRestore(path, s, true, Options{})
	must(t, err)
	must(t, r.Stage(nil))
	must(t, r.Replace())
	must(t, r.lock.Close())
	_, err = OpenFolder(path, Options{})
	wantError(t, err, ErrLost, "interrupted")
	_, err = HoldFolder(path, Options{})
	wantError(t, err, ErrLost, "interrupted")
	_, err = restore(path, saves, false, Options{})
	must(t, err)
	f = open(t, path, Options{})
	if got := mapped1(t, f, "m").Load(0); got != 1 {
		t.Errorf("%d", got)
	}
}

// A held folder can be examined and saved, and does not change.
func TestHoldFolder(t *testing.T) {
	parent := t.TempDir()
	path, save := filepath.Join(parent, "folder"), filepath.Join(parent, "save")
	_, err := HoldFolder(path, Options{})
	wantError(t, err, fs.ErrNotExist, path)
	must(t, os.Mkdir(path, 0o777))
	_, err = HoldFolder(path, Options{})
	wantError(t, err, fs.ErrNotExist, path)
	if entries, _ := os.ReadDir(path); len(entries) != 0 {
		t.Errorf("made %v", entries)
	}
	f := fill(t, path, Options{BootID: "1"}, 7)
	_, err = HoldFolder(path, Options{BootID: "1"})
	wantError(t, err, ErrInUse, path)
	must(t, f.Abandon()) // killed
	was := contents(t, path)
	_, err = HoldFolder(path, Options{BootID: "2"})
	wantError(t, err, ErrLost, "was not closed")

	h, err := HoldFolder(path, Options{BootID: "1"})
	must(t, err)
	_, err = OpenFolder(path, Options{BootID: "1"})
	wantError(t, err, ErrInUse, path)
	n, err := h.DataBytes()
	must(t, err)
	var moved atomic.Int64
	must(t, h.SaveAs(save, func(n int64) { moved.Add(n) }))
	if moved.Load() != n || n == 0 {
		t.Errorf("%d bytes of %d", moved.Load(), n)
	}
	expect(t, h, 7)
	must(t, h.Close())
	if !maps.Equal(contents(t, path), was) {
		t.Error("the folder has changed")
	}
	wantError(t, h.SaveAs(save, nil), ErrClosed, "closed")

	s, err := OpenSave(save)
	must(t, err)
	to := filepath.Join(parent, "new")
	r, err := BeginRestore(to, s, false, Options{BootID: "1"})
	must(t, err)
	moved.Store(0)
	must(t, r.Stage(func(n int64) { moved.Add(n) }))
	if moved.Load() != s.DataBytes() || moved.Load() == 0 || moved.Load() > n {
		t.Errorf("%d bytes of %d of %d", moved.Load(), s.DataBytes(), n)
	}
	must(t, errors.Join(r.Replace(), r.Finish()))
	expect(t, open(t, to, Options{BootID: "1"}), 7)
}

func TestFreeBytes(t *testing.T) {
	dir := t.TempDir()
	free, err := FreeBytes(filepath.Join(dir, "not", "there"))
	must(t, err)
	device, err := Device(filepath.Join(dir, "not", "there"))
	must(t, err)
	if proc, err := Device("/proc/self"); err != nil || free <= 0 || device == proc {
		t.Errorf("%d bytes free on %d, not %d: %v", free, device, proc, err)
	}
	_, err = FreeBytes(dir + "\x00")
	wantError(t, err, unix.EINVAL, "statfs")
	_, err = Device(dir + "\x00")
	wantError(t, err, unix.EINVAL, "stat")
}

func TestNewerSave(t *testing.T) {
	saves := t.TempDir()
	must(t, open1AndSave(t, saves))
	index := filepath.Join(saves, saveName(1), indexName)
	b, err := os.ReadFile(index)
	must(t, err)
	b[len(imageMagic)] = FormatVersion + 1
	must(t, os.WriteFile(index, sealed(b[:len(b)-4]), 0o666))
	_, err = restore(t.TempDir(), saves, false, Options{})
	wantError(t, err, ErrFormat, "newer farmsql")
}

func open1AndSave(t *testing.T, saves string) error {
	f := open(t, t.TempDir(), Options{})
	mapped1(t, f, "m").Store(0, 1)
	return errors.Join(f.Save(saves), f.Close())
}

// TestVolatileFolder follows a folder on a tmpfs, which every reboot empties.
func TestVolatileFolder(t *testing.T) {
	saves := filepath.Join(t.TempDir(), "saves")
	path := filepath.Join(t.TempDir(), "tmpfs")
	boot := 1
	options := func() Options { return Options{Saves: saves, BootID: fmt.Sprint("boot-", boot)} }
	reboot := func() {
		boot++
		must(t, os.RemoveAll(path))
	}

	f := fill(t, path, options(), 1)
	must(t, f.Save(saves)) // the machine says that power will fail
	must(t, f.Abandon())
	reboot()

	f = open(t, path, options())
	expect(t, f, 1)
	must(t, f.Abandon()) // killed, with the machine up
	f = open(t, path, options())
	expect(t, f, 1)
	must(t, f.Close()) // closed, but not saved
	reboot()

	_, err := OpenFolder(path, options())
	wantError(t, err, ErrLost, "in use after the newest save")
	wantError(t, err, ErrLost, saveName(1)) // and how to go back to it
	other := options()
	other.Remedy = "ask somebody"
	_, err = OpenFolder(path, other)
	wantError(t, err, ErrLost, "newest save; ask somebody")
	_, err = OpenFolder(path, options())
	wantError(t, err, ErrLost, "in use after the newest save")
	_, err = restore(path, saves, false, options())
	must(t, err)
	f = open(t, path, options())
	expect(t, f, 1)
	must(t, f.Abandon())

	must(t, os.RemoveAll(saves)) // without any save
	must(t, open(t, path, options()).Abandon())
	reboot()
	_, err = OpenFolder(path, options())
	wantError(t, err, ErrLost, "there is no save")
	must(t, os.RemoveAll(saves))
	must(t, open(t, path, options()).Close()) // begun anew
}

func TestDamagedUsedMarker(t *testing.T) {
	saves := t.TempDir()
	must(t, os.WriteFile(filepath.Join(saves, usedName), []byte("x"), 0o666))
	_, err := OpenFolder(t.TempDir(), Options{Saves: saves})
	wantError(t, err, ErrFormat, usedName)
}

// sealed appends the checksum that makes body an index.
func sealed(body []byte) []byte {
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), crc32.Checksum(body, castagnoli))
}

func FuzzDecodeIndex(f *testing.F) {
	images := []image{{"a", 1 << 20, []chunk{{0, 4096, 7}, {8192, 8, 9}}}, {"b", 8, nil}}
	whole := encodeIndex(images)
	if got, err := decodeIndex(whole); err != nil || !reflect.DeepEqual(got, images) {
		f.Fatal(got, err)
	}
	f.Add(whole[:len(whole)-4])
	f.Add([]byte(imageMagic))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := decodeIndex(body); err == nil && len(body) < 20 {
			t.Error("accepted")
		}
		images, err := decodeIndex(sealed(body)) // past the checksum, to what lies behind
		if err != nil {
			return
		}
		for _, m := range images {
			for _, c := range m.chunks {
				if c.off < 0 || c.off+int64(c.n) > m.size || c.n > chunkBytes {
					t.Errorf("%+v in %d bytes", c, m.size)
				}
			}
		}
	})
}
