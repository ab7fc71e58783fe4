package test

import (
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	ddlRows      = 8_000
	ddlStatement = 100  // rows
	ddlRow       = 1000 // bytes
)

// TestClusterKilledInDDL: a machine is killed while it makes an index of a large table; then the CM
// is. Once the others have gone on, they can use the table without the index, and make the index
// themselves.
func TestClusterKilledInDDL(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f}
	db := l.connect(f.machines[0], "")
	exec1(t, db, "create database fleet", "create table fleet.wide (id bigint primary key, n bigint, pad varchar(1000))")
	fillWide(t, l, db)
	closeDB(t, db)
	for _, isCM := range []bool{false, true} {
		victim := f.cm()
		if !isCM {
			victim = f.machines[(victim.id+1)%3]
		}
		other := f.machines[(victim.id+1)%3]
		db := l.connect(other, "fleet")
		f.killInDDL(l, victim)
		f.wait("the table to be free", func() bool {
			_, err := db.Exec("update wide set n = n + 1 where id = 7")
			return err == nil
		})
		var rows int
		if err := db.QueryRow("select count(*) from wide").Scan(&rows); err != nil || rows != ddlRows {
			t.Errorf("%d rows, want %d: %v", rows, ddlRows, err)
		}
		err := l.again(func() error { _, err := db.Exec("create index by_n on wide (n)"); return err })
		const duplicateKeyName = 1061
		switch said := new(mysql.MySQLError); {
		case errors.As(err, &said) && said.Number == duplicateKeyName:
			t.Log("the machine was killed too late: its index is there")
		case err != nil:
			t.Error(err)
		}
		exec1(t, db, "drop index by_n on wide")
		closeDB(t, db)
		victim.start()
		f.awaitWhole()
	}
}

func closeDB(t *testing.T, db *stdsql.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestClusterFreesWhatIsDropped: a dropped table's memory is freed, even if the machine that drops
// the table is then killed. So an instance of few regions has room for many tables, one after the
// other.
func TestClusterFreesWhatIsDropped(t *testing.T) {
	f := newFleet(t, 3, 3, "")
	f.more = []string{"--region-size", "2MiB"}
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f}
	db := l.connect(f.machines[0], "")
	exec1(t, db, "create database fleet")
	closeDB(t, db)
	var regions []int // by how many tables there have been
	const rounds = 12
	for n := range rounds {
		m := f.machines[n%3]
		db := l.connect(m, "fleet")
		exec1(t, db, "create table fleet.wide (id bigint primary key, n bigint, pad varchar(1000))")
		fillWide(t, l, db)
		exec1(t, db, "drop table wide")
		closeDB(t, db)
		if n == 1 { // in the middle of it, maybe
			m.kill()
			m.start()
			f.awaitWhole()
			f.awaitServing()
		}
		regions = append(regions, len(f.configuration().Regions))
	}
	// A table fills four regions. Once each machine has had two tables, there is room for all later
	// ones.
	if more := regions[rounds-1] - regions[5]; more > rounds-6 {
		t.Errorf("%v regions after one table and each other: memory is not given back", regions)
	}
	t.Logf("%v regions", regions)
}

// fillWide fills the table.
func fillWide(t *testing.T, l *fleetLoad, db *stdsql.DB) {
	t.Helper()
	pad := strings.Repeat("x", ddlRow)
	for id := 0; id < ddlRows; id += ddlStatement {
		rows := make([]string, ddlStatement)
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d, %d, '%s')", id+i, i, pad)
		}
		if err := l.again(func() error {
			_, err := db.Exec("insert into fleet.wide values " + strings.Join(rows, ","))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// killInDDL kills a machine after half of the time that it takes to make an index. If the index is
// complete by then, killInDDL drops it and tries again.
func (f *fleet) killInDDL(l *fleetLoad, victim *machine) {
	f.t.Helper()
	db := l.connect(victim, "fleet")
	defer db.Close() // its machine is dead
	begin := time.Now()
	exec1(f.t, db, "create index by_n on wide (n)")
	took := time.Since(begin)
	for {
		exec1(f.t, db, "drop index by_n on wide")
		made := make(chan error, 1)
		go func() { _, err := db.Exec("create index by_n on wide (n)"); made <- err }()
		select {
		case err := <-made:
			if err != nil {
				f.t.Fatal(err)
			}
			took /= 2
		case <-time.After(took / 2):
			victim.kill()
			<-made
			return
		}
	}
}
