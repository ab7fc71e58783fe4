package test

import (
	endian "encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClusterCheckFindsTorn: check reports an object as torn, with its place, if its lines have
// different versions, or if it is locked and no transaction holds the lock.
func TestClusterCheckFindsTorn(t *testing.T) {
	f := filled(t, 3, 3)
	db := (&fleetLoad{t: t, fleet: f}).connect(f.machines[0], "kept")
	mark := "a row to be found"
	exec1(t, db, "create table marked (a int primary key, b varchar(200))", "insert into marked values (1, '"+mark+strings.Repeat(".", 150)+"')")
	_ = db.Close()
	f.killAll()
	f.check()
	for name, c := range map[string]struct {
		at   int64 // from the beginning of the object
		word func(was uint64) uint64
		want []string
	}{
		"line":   {64, func(was uint64) uint64 { return was ^ 0x5a5a }, []string{"torn", "machine 1", "line 1 at"}},
		"locked": {0, func(was uint64) uint64 { return was | 1<<63 }, []string{"torn", "locked, and no transaction has the lock", "region"}},
	} {
		machines := f.machines[1:2]
		if name == "locked" { // wherever the primary is
			machines = f.machines
		}
		undo := make(map[string]uint64)
		for _, m := range machines {
			where := f.findIn(m, mark)
			path, at := filepath.Join(m.folder(), where.file), where.at&^63+c.at
			undo[path] = storeWord(t, path, at, c.word)
		}
		refuse(t, 1, f.offline("check"), append(c.want, "region")...)
		for _, m := range machines {
			where := f.findIn(m, mark)
			path, at := filepath.Join(m.folder(), where.file), where.at&^63+c.at
			storeWord(t, path, at, func(uint64) uint64 { return undo[path] })
		}
		f.check()
	}
}

// storeWord changes a word of a file, and returns the former word.
func storeWord(t *testing.T, path string, at int64, change func(uint64) uint64) (was uint64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var b [8]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	was = endian.LittleEndian.Uint64(b[:])
	endian.LittleEndian.PutUint64(b[:], change(was))
	if _, err := file.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	return was
}
