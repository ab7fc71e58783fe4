package test

import (
	stdsql "database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// largeRowBytes is the length of the rows that large transactions write.
const largeRowBytes = 8000

// largeRows returns the number of rows in one transaction: 64 MB of rows, or nightly 1 GB. A log
// holds 4 MB.
func largeRows() int {
	if nightly {
		return 1 << 17
	}
	return 1 << 13
}

func (l layout) largeFlags() []string {
	return append(largeServer(), "--machines", fmt.Sprint(l.machines), "--replicas", fmt.Sprint(l.replicas), "--log-size", "4MiB")
}

// largeServer returns flags with which a server can run the transactions on any computer. A
// transaction keeps its reads and writes in memory.
func largeServer() []string { return []string{"--region-size", "2GiB", "--statement-memory", "4GiB"} }

// largeFolder returns a folder on a tmpfs.
func largeFolder(t *testing.T) string {
	folder, err := os.MkdirTemp("/dev/shm", "farmsql-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// fillLarge makes the table, and all its rows in one transaction.
func fillLarge(t *testing.T, db *stdsql.DB) {
	t.Helper()
	exec1(t, db, "create table big (id int primary key, k int not null, v varbinary(8000) not null)")
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("insert into big values (0, 0, ?)", strings.Repeat("a", largeRowBytes)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < largeRows(); n *= 2 {
		if _, err := tx.Exec("insert into big select id + ?, k, v from big", n); err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// wantLarge checks that the same transaction has written all rows, and returns its number.
func wantLarge(t *testing.T, db *stdsql.DB) (k int) {
	t.Helper()
	var rows, low, high, bytes int
	if err := db.QueryRow("select count(*), min(k), max(k), sum(length(v)) from big").Scan(&rows, &low, &high, &bytes); err != nil {
		t.Fatal(err)
	}
	if rows != largeRows() || low != high || bytes != rows*largeRowBytes {
		t.Fatalf("%d of %d rows, of transactions %d to %d, %d bytes", rows, largeRows(), low, high, bytes)
	}
	return low
}

// wantNoAnnexes checks that the memory of large transactions was given back.
func wantNoAnnexes(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(filepath.Base(path), "annex-") {
			t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLarge: a transaction that writes much more than a log holds can commit, roll back and
// conflict like any other. Small ones go on meanwhile. Afterwards its memory has been given back.
func TestLarge(t *testing.T) {
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			folder := largeFolder(t)
			s, err := launch(folder, l.largeFlags()...)
			if err != nil {
				t.Fatal(err)
			}
			db := s.open(t, "large")
			fillLarge(t, db)
			begin := time.Now()
			exec1(t, db, "update big set k = k + 1, v = repeat('b', 8000)")
			t.Logf("%d MB in %v", largeRows()*largeRowBytes>>20, time.Since(begin))
			if k := wantLarge(t, db); k != 1 {
				t.Errorf("transaction %d is there", k)
			}
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			for _, statement := range []string{"update big set k = 7, v = repeat('c', 8000)", "delete from big where id % 2 = 0"} {
				if _, err := tx.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			wantLarge(t, db)
			loseLarge(t, db)
			wantLarge(t, db)
			_ = db.Close()
			s.stop(t)
			wantNoAnnexes(t, folder)
			check(t, folder)
		})
	}
}

// loseLarge makes a large transaction conflict with a small one.
func loseLarge(t *testing.T, db *stdsql.DB) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.Exec("update big set k = 9"); err != nil {
		t.Fatal(err)
	}
	exec1(t, db, "update big set v = repeat('d', 8000) where id = 1000")
	if err := tx.Commit(); !isConflict(err) {
		t.Errorf("committed over a change: %v", err)
	}
}

// TestLargeKilled kills a server at any moment of a large transaction's commit. After a restart all
// of the transaction is there, or nothing. If it was acknowledged, all of it must be there.
func TestLargeKilled(t *testing.T) {
	kills := 6
	if nightly {
		kills = 20
	}
	for i, l := range layouts {
		t.Run(l.String(), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seedOf(t), uint64(i)))
			folder := largeFolder(t)
			s, err := launch(folder, l.largeFlags()...)
			if err != nil {
				t.Fatal(err)
			}
			db := s.open(t, "large")
			fillLarge(t, db)
			took := time.Duration(0)
			survived := 0
			for kill := range kills {
				before := wantLarge(t, db)
				done, ready := make(chan error, 1), make(chan struct{})
				go func() { done <- updateLarge(db, ready) }()
				<-ready
				begun := time.Now()
				if kill == 0 { // how long does it take?
					if err := <-done; err != nil {
						t.Fatal(err)
					}
					took = time.Since(begun)
					continue
				}
				time.Sleep(time.Duration(rnd.Int64N(int64(took))))
				s.kill()
				acknowledged := <-done == nil
				_ = db.Close()
				if s, err = launch(folder, l.largeFlags()...); err != nil {
					t.Fatal(err)
				}
				db = s.connect(t, "large")
				after := wantLarge(t, db)
				if after < before || after > before+1 || acknowledged && after == before {
					t.Fatalf("acknowledged: %v; transaction %d is there, it was %d before", acknowledged, after, before)
				}
				survived += after - before
				wantNoAnnexes(t, folder)
			}
			_ = db.Close()
			s.stop(t)
			check(t, folder)
			t.Logf("%d kills within %v, of which the transaction survived %d", kills-1, took, survived)
		})
	}
}

// updateLarge runs a large transaction. It closes ready when the commit begins.
func updateLarge(db *stdsql.DB, ready chan<- struct{}) error {
	tx, err := db.Begin()
	if err == nil {
		_, err = tx.Exec("update big set k = k + 1, v = repeat('b', 8000)")
	}
	close(ready)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// TestClusterLarge kills a machine of a cluster at any moment of a large transaction's commit: its
// coordinator or another machine. The others go on, with all of the transaction or nothing.
func TestClusterLarge(t *testing.T) {
	rounds := 4
	if nightly {
		rounds = 20
	}
	rnd := rand.New(rand.NewPCG(seedOf(t), 0))
	f := newFleet(t, 3, 3, "")
	f.more = append(largeServer(), "--recovery-pace", "aggressive") // or who comes back is filled for minutes
	f.patience = 3 * time.Minute
	f.start()
	f.awaitWhole()
	connect := func(m *machine) *stdsql.DB { return (&server{addr: m.address()}).connect(t, "large") }
	fillLarge(t, (&server{addr: f.machines[0].address()}).open(t, "large"))
	took := 500 * time.Millisecond
	survived := 0
	for round := range rounds {
		coordinator, victim := f.machines[rnd.IntN(3)], f.machines[rnd.IntN(3)]
		db := connect(coordinator)
		before := wantLarge(t, db)
		ready, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- updateLarge(db, ready) }()
		<-ready
		if round > 0 {
			time.Sleep(time.Duration(rnd.Int64N(int64(took))))
			victim.kill()
		}
		begun := time.Now()
		err := <-done
		if round == 0 {
			took = time.Since(begun)
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		victim.start()
		f.awaitServing()
		f.awaitWhole()
		after := wantLarge(t, connect(f.machines[rnd.IntN(3)]))
		if after < before || after > before+1 || err == nil && after == before {
			t.Fatalf("commit: %v; transaction %d is there, it was %d before", err, after, before)
		}
		survived += after - before
	}
	for _, m := range f.machines {
		wantLarge(t, connect(m))
	}
	f.wait("annexes to be given back", func() bool { return !hasAnnexes(f.folder) })
	t.Logf("%d kills within %v, of which the transaction survived %d", rounds-1, took, survived)
}

func hasAnnexes(folder string) (found bool) {
	_ = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		found = found || strings.HasPrefix(filepath.Base(path), "annex-")
		return nil
	})
	return found
}

// TestLargeWithoutSpace: without room on the file system, a large transaction fails with 1114 and
// has no effect, and the server goes on. With room it commits.
func TestLargeWithoutSpace(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "small")
	mount(t, folder, "180m")
	s := start(t, folder, "--region-size", "64MiB", "--log-size", "4MiB")
	db := s.open(t, "large")
	fillLarge(t, db)
	exec1(t, db, "create database kept", "create table kept.big (id int primary key, v varchar(30000) not null)")
	crowd(t, db, 0)
	const update = "update big set k = 1, v = repeat('b', 8000)"
	if _, err := db.Exec(update); !isFull(err) {
		t.Errorf("without room: %v", err)
	}
	if k := wantLarge(t, db); k != 0 {
		t.Errorf("transaction %d is there", k)
	}
	exec1(t, db, "update big set k = 0 where id = 5", "drop database kept")
	for end := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
		_, err := db.Exec(update)
		if err == nil {
			break
		}
		if !isFull(err) || time.Now().After(end) {
			t.Fatalf("with room: %v", err)
		}
	}
	if k := wantLarge(t, db); k != 1 {
		t.Errorf("transaction %d is there", k)
	}
}
