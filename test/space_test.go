package test

import (
	stdsql "database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/nvram"
)

// mountAt puts a tmpfs of a size at a machine's folder, before its first life.
func (m *machine) mountAt(size string) {
	m.fleet.t.Helper()
	mount(m.fleet.t, m.folder(), size)
}

// mount puts a tmpfs of a size at a folder, which it makes.
func mount(t *testing.T, folder, size string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: only root can mount a small tmpfs")
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("SKIPPED: no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
}

// remount gives a machine's tmpfs another size.
func (m *machine) remount(size string) {
	if err := unix.Mount("", m.folder(), "", unix.MS_REMOUNT, "size="+size); err != nil {
		m.fleet.t.Fatal(err)
	}
}

// isFull reports whether err is MySQL's 1114, with the reason.
func isFull(err error) bool {
	var e *mysql.MySQLError
	return errors.As(err, &e) && e.Number == 1114 && strings.Contains(e.Message, "no space left")
}

// crowd inserts rows, from one number on, until there is no room for more. It returns the number of
// the first row without room.
func crowd(t *testing.T, db *stdsql.DB, from int) int {
	t.Helper()
	for id := from; id < from+1<<14; id++ {
		_, err := db.Exec("insert into kept.big values (?, ?)", id, strings.Repeat(fmt.Sprint(id%10), 30_000))
		if isFull(err) {
			return id
		}
		if err != nil && !isConflict(err) {
			t.Fatalf("row %d: %v", id, err)
		}
		if err != nil {
			id--
		}
	}
	t.Fatal("there is room for everything")
	return 0
}

// TestFullMemory: the memory folder of one machine of a cluster has no room for rows that clients
// insert. It is the machine that the clients are connected to, or another. Clients get an error,
// nothing is lost, and nobody is evicted. Statements that need no room go on, and the others do
// when there is room.
func TestFullMemory(t *testing.T) {
	for _, full := range []int{0, 2} {
		t.Run(fmt.Sprintf("of machine %d", full), func(t *testing.T) {
			f := newFleet(t, 3, 3, "")
			f.more = []string{"--workers", "2"}
			f.machines[full].mountAt("24m") // of which the logs take 6
			f.start()
			f.awaitWhole()
			db := (&fleetLoad{t: t, fleet: f}).connect(f.machines[0], "")
			defer db.Close()
			exec1(t, db, "create database kept", "create table kept.t (id int primary key, n int)", "insert into kept.t values (1, 42)",
				"create table kept.big (id int primary key, pad text)")
			lives := f.configuration().Incarnation
			n := crowd(t, db, 0)
			if n < 10 {
				t.Errorf("only %d rows", n)
			}
			for _, m := range f.machines {
				f.unharmed(m)
				f.holds(m, n)
			}
			exec1(t, db, "update kept.t set n = 43", "update kept.t set n = 42", "delete from kept.big where id = 0")
			exec1(t, db, fmt.Sprintf("insert into kept.big values (0, '%s')", strings.Repeat("0", 30_000)))

			nobodyLeft := func() {
				if c := f.configuration(); fmt.Sprint(c.Incarnation) != fmt.Sprint(lives) {
					t.Errorf("machines have been evicted: %+v", c)
				}
			}
			nobodyLeft()

			// A machine that comes back has no problem with that, either.
			other := f.machines[1]
			other.kill()
			f.wait("the killed machine to be evicted", func() bool { return !f.isMember(other) })
			other.start()
			f.awaitWhole()
			lives = f.configuration().Incarnation

			f.machines[full].remount("64m")
			n = crowd(t, db, n)
			for _, m := range f.machines {
				f.unharmed(m)
				f.holds(m, n)
			}
			nobodyLeft()
			_ = db.Close()
			f.killAll()
			f.machines[full].remount("128m")
			f.check()
		})
	}
}

// holds checks that a machine shows rows 0 to n-1, all of them as they were inserted.
func (f *fleet) holds(m *machine, n int) {
	f.t.Helper()
	db := (&fleetLoad{t: f.t, fleet: f}).connect(m, "kept")
	defer db.Close()
	var rows, good int
	err := db.QueryRow("select count(*), sum(length(pad) = 30000 and left(pad, 1) = id % 10 and right(pad, 1) = id % 10) from big").Scan(&rows, &good)
	if err != nil || rows != n || good != n {
		f.t.Errorf("machine %d: %d rows, %d of them good, want %d: %v", m.id, rows, good, n, err)
	}
}

// TestFillingFullMemory: a machine comes back whose memory folder has no room for its replicas. It
// takes part, and commits meanwhile do no harm. Once there is room, its replicas are filled and
// equal to the others.
func TestFillingFullMemory(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	f.more = []string{"--workers", "2"}
	f.start()
	f.awaitWhole()
	db := (&fleetLoad{t: t, fleet: f}).connect(f.machines[0], "")
	defer db.Close()
	exec1(t, db, "create database kept", "create table kept.t (id int primary key, n int)", "insert into kept.t values (1, 42)",
		"create table kept.big (id int primary key, pad text)")
	// An update takes memory for the new value before it frees that of the old one. A worker that
	// finds no memory in the existing blocks takes another block, for which the small folder has no
	// room. That would not be an update in existing storage. One row in eleven is deleted, so that
	// there is memory in many blocks, and none of them is empty.
	const rows = 360
	insert := func(id int) {
		exec1(t, db, fmt.Sprintf("insert into kept.big values (%d, '%s')", id, strings.Repeat("x", 30_000)))
	}
	for id := range rows {
		insert(id)
		if id%10 == 0 {
			insert(rows + id)
		}
	}
	exec1(t, db, fmt.Sprintf("delete from kept.big where id >= %d", rows))
	small := f.machines[2]
	small.kill()
	f.wait("the killed machine to be evicted", func() bool { return !f.isMember(small) })
	if err := os.RemoveAll(small.folder()); err != nil {
		t.Fatal(err)
	}
	small.mountAt("12m") // of which the logs take 6
	small.start()
	f.wait("no room for a replica", func() bool {
		_, found := small.find(time.Time{}, func(e *event) bool { return e.Message == "replica is not filled yet" })
		return found
	})
	// Every block is written to.
	for id := range rows {
		exec1(t, db, fmt.Sprintf("update kept.big set pad = '%s' where id = %d", strings.Repeat(fmt.Sprint(id%10), 30_000), id))
	}
	for _, m := range f.machines {
		f.unharmed(m)
		f.holds(m, rows)
	}
	if f.isWhole() {
		t.Error("there was room for everything")
	}
	small.remount("128m")
	f.awaitWhole()
	_ = db.Close()
	f.killAll()
	f.check()
}

// TestFreedMemory: memory that DROP TABLE, TRUNCATE and DELETE free goes back to the file system,
// and rows of another size have room at once. A warning comes in time, and only once.
func TestFreedMemory(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	mount(t, folder, "128m")
	s := start(t, folder, "--region-size", "128MiB", "--log-size", "4MiB")
	db := s.open(t, "kept")
	free := func() int64 {
		t.Helper()
		n, err := nvram.FreeBytes(folder)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	exec1(t, db, "create table big (id int primary key, pad text)", "create table small (id int primary key, pad varchar(500))")
	before := free()
	for i, frees := range []string{"truncate table big", "delete from big", "drop table big"} {
		n := crowd(t, db, 0)
		if n < 2000 {
			t.Errorf("only %d rows before %s", n, frees)
		}
		// TRUNCATE and such a DELETE first make new structures. There is no room for these now,
		// except in held-back blocks.
		for k := 0; ; k++ {
			if _, err := db.Exec(fmt.Sprintf("create table t%d_%d (id int primary key)", i, k)); isFull(err) {
				break
			} else if err != nil || k == 1<<14 {
				t.Fatalf("table %d: %v", k, err)
			}
		}
		exec1(t, db, frees)
		for id := range 100 {
			exec1(t, db, fmt.Sprintf("insert into small values (%d, '%s')", i*100+id, strings.Repeat("y", 450)))
		}
		for deadline := time.Now().Add(10 * time.Second); free() < before-24<<20; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d MB are free after %s, %d before", free()>>20, frees, before>>20)
			}
		}
	}
	if told := strings.Count(s.stderr.String(), "memory is filling up"); told < 2 || told > 6 {
		t.Errorf("%d warnings:\n%s", told, s.stderr)
	}
}
