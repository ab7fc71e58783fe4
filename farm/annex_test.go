package farm

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/farmsql/farmsql/nvram"
)

// openShelf opens a folder for memory, as one life of a machine does.
func openShelf(t *testing.T, path string) *nvram.Folder {
	t.Helper()
	folder, err := nvram.OpenFolder(path, nvram.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// The next life finds the annexes that exist, with their sizes. It removes an annex that has no
// size because of a crash, and ignores files with other names.
func TestAnnexesOfAnEarlierLife(t *testing.T) {
	path := t.TempDir()
	before := openShelf(t, path)
	sizes := map[uint64]int64{1: 4096, 1<<56 - 1: 3 * 4096}
	for number, size := range sizes {
		mem, err := makeAnnex(before, number, size)
		if err != nil {
			t.Fatal(err)
		}
		mem.Store(uint64(size)-8, number)
	}
	for _, name := range []string{"annex-zz", "annex-100000000000000", "other-1"} {
		if _, err := before.Map(name, 4096); err != nil {
			t.Fatal(err)
		}
	}
	before.Close()
	names := filesNamed(t, path, annexName(1))
	if err := os.WriteFile(filepath.Join(filepath.Dir(names[0]), annexName(2)), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	folder := openShelf(t, path)
	defer folder.Close()
	all, err := openAnnexes(folder)
	if err != nil || len(all) != len(sizes) {
		t.Fatalf("%d annexes, %v", len(all), err)
	}
	for number, size := range sizes {
		if mem := all[number]; mem == nil || mem.Size() != uint64(size) || mem.Load(uint64(size)-8) != number {
			t.Errorf("annex %#x is not what it was", number)
		}
	}
	if names, err := folder.Names(); err != nil || slices.Contains(names, annexName(2)) || !slices.Contains(names, "annex-zz") {
		t.Errorf("%v, %v", names, err)
	}
}

// Dropping an annex frees its storage, in the life that has made it and in the next, even while a
// peer still has it mapped.
func TestGivenBackAnnexesTakeNoRoom(t *testing.T) {
	const bytes = 1 << 20
	for _, again := range []bool{false, true} {
		path := t.TempDir()
		folder := openShelf(t, path)
		mem, err := makeAnnex(folder, 7, bytes)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := os.Open(filesNamed(t, path, annexName(7))[0])
		if err != nil {
			t.Fatal(err)
		}
		if n := blocksOf(t, peer); n < bytes/512 {
			t.Errorf("an annex has storage for %d of %d bytes", n*512, bytes)
		}
		if again {
			folder.Close()
			folder = openShelf(t, path)
			all, err := openAnnexes(folder)
			if err != nil {
				t.Fatal(err)
			}
			err = dropAnnexes(folder, all)
			if err != nil {
				t.Fatal(err)
			}
		} else if err := dropAnnex(folder, 7, mem); err != nil {
			t.Fatal(err)
		}
		if n := blocksOf(t, peer); n != 0 {
			t.Errorf("next life=%v: %d bytes are still taken", again, n*512)
		}
		if names, err := folder.Names(); err != nil || len(names) != 0 {
			t.Errorf("%v, %v", names, err)
		}
		peer.Close()
		folder.Close()
	}
}

// filesNamed returns the files below a folder that have the name of a memory.
func filesNamed(t *testing.T, path, name string) (files []string) {
	t.Helper()
	for _, pattern := range []string{name, "*/" + name, name + ".*"} {
		found, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) != 1 {
		t.Fatalf("memory %s is in %v", name, files)
	}
	return files
}

// blocksOf returns how many blocks of 512 bytes an open file takes.
func blocksOf(t *testing.T, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks
}
