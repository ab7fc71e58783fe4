package test

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// hostileLimit is the server's GOMEMLIMIT. It is a soft limit: the server may exceed it by
// hostileSlack.
const (
	hostileLimit = 1 << 30
	hostileSlack = 256 << 20
)

// joinOf joins table h n times.
func joinOf(n int) string {
	tables := make([]string, n)
	for i := range tables {
		tables[i] = fmt.Sprintf("h h%d", i)
		if i > 0 {
			tables[i] += fmt.Sprintf(" on h%d.k = h%d.k", i, i-1)
		}
	}
	return strings.Join(tables, " join ")
}

// hostile are statements that want all the memory or all the time there is.
var hostile = []string{
	"select * from h a join h b on a.k = b.k order by concat(a.s, b.s)",
	"select a.id, b.id, count(*) from h a join h b on a.k = b.k group by a.id, b.id",
	"select distinct a.id, b.id, a.s from h a join h b on a.k = b.k",
	"select group_concat(a.s, b.s) from h a join h b on a.k = b.k",
	"select json_arrayagg(repeat(a.s, 100)) from h a join h b on a.k = b.k",
	"select json_objectagg(concat(a.id, '-', b.id), a.s) from h a join h b on a.k = b.k",
	"select count(distinct a.id, b.id) from h a join h b on a.k <> b.k",
	"select a.id, max(repeat(a.s, 100000)) from h a group by a.id",
	"select sum(a.id) over (order by b.id) from h a join h b on a.k = b.k",
	"select a.s, b.s from h a join h b on a.k = b.k union select b.s, a.s from h a join h b on a.k = b.k",
	"select count(*) from (select a.s, rand() r from h a join h b on a.k = b.k) x join (select a.s, rand() r from h a join h b on a.k = b.k) y on x.r = y.r",
	"select count(*) from h where s in (select concat(a.s, b.s) from h a join h b on a.k = b.k)",
	"with recursive r as (select 1 as n, repeat('x', 1000) as s union all select n + 1, concat(s, two.i) from r, (select 1 as i union select 2) two where n < 60) select count(*) from r",
	"select repeat(s, 10000) from h",
	"select count(*) from h a, h b, h c, h d where a.s = concat(b.s, c.s, d.s)",
	"select count(*) from " + joinOf(20) + " where h0.s <> h19.s",
	"call spin()",
	"call keep()",
	"update h set s = (select group_concat(a.s, b.s) from (select * from h) a join (select * from h) b on a.k = b.k)",
	"insert into h2 select a.id * 100000 + b.id, a.k, repeat(b.s, 100) from h a join h b on a.k = b.k",
	"select " + strings.Repeat("json_merge_preserve(concat('[', repeat('[],', 5000000), '1]'), '1'), ", 5) + "1",
	"select 1 in (" + strings.Repeat("1,", 8_000_000) + "1)",
	"select a.s into @a from h a, h b order by concat(a.s, b.s)",
	"select sleep(1000)",
}

// Many hostile statements at once do not end the server, and its memory stays within its limit.
// Statements that need too much memory end with an error. Those that take too long end when their
// clients go. An honest client beside them goes on.
func TestHostileStatements(t *testing.T) {
	t.Setenv("GOMEMLIMIT", strconv.Itoa(hostileLimit))
	s := start(t, t.TempDir(), "--region-size", "64MiB", "--log-size", "32MiB")
	db := s.open(t, "d")
	fillHostile(t, db)
	base := residentBytes(t, s, "RssAnon")
	if base > hostileLimit/2 {
		t.Fatalf("%d bytes are taken before anything hostile", base)
	}
	stop := make(chan struct{})
	var watchers sync.WaitGroup
	var most atomic.Int64
	watchers.Go(func() { watchMemory(t, s, stop, &most) })
	var slowest atomic.Int64
	watchers.Go(func() { beHonest(t, db, stop, &slowest) })

	const patience = 30 * time.Second
	var all sync.WaitGroup
	for _, query := range hostile {
		all.Go(func() { beHostile(t, s, query, patience) })
	}
	all.Wait()
	waitForIdle(t, db)
	close(stop)
	watchers.Wait()
	t.Logf("at most %d MB, the honest client waited %v at most", most.Load()>>20, time.Duration(slowest.Load()))
	if n := most.Load(); n > hostileLimit+hostileSlack {
		t.Errorf("the server took %d bytes, its limit is %d", n, hostileLimit)
	}
	var rows int
	if err := db.QueryRow("select count(*) from h").Scan(&rows); err != nil || rows != hostileRows {
		t.Errorf("%d rows, %v", rows, err)
	}
}

const hostileRows = 5000

// fillHostile makes table h, in which each row joins 500 others.
func fillHostile(t *testing.T, db *stdsql.DB) {
	exec1(t, db, "create table h (id int primary key, k int, s varchar(100), key (k))", "create table h2 like h", "create table honest (id int primary key, n int)", "insert into honest values (1, 0)",
		"create procedure spin() begin l: loop iterate l; end loop; end",
		"create procedure keep() begin declare i int default 0; while 1 = 1 do set @keep = repeat('x', 1000000); select * from h; set i = i + 1; end while; end")
	for at := 0; at < hostileRows; at += 1000 {
		rows := make([]string, 1000)
		for i := range rows {
			rows[i] = fmt.Sprintf("(%d,%d,'%s%d')", at+i, (at+i)%10, strings.Repeat("s", 80), at+i)
		}
		exec1(t, db, "insert into h values "+strings.Join(rows, ","))
	}
}

// beHostile runs a statement. It must end with an error, either by itself or when its client's
// patience ends.
func beHostile(t *testing.T, s *server, query string, patience time.Duration) {
	db, err := stdsql.Open("mysql", fmt.Sprintf("root@tcp(%s)/d?maxAllowedPacket=0", s.addr))
	if err != nil {
		t.Error(err)
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	begin := time.Now()
	err = drain(ctx, db, query)
	var known *mysql.MySQLError
	switch {
	case err == nil:
		t.Errorf("%.100s has ended well", query)
	case errors.As(err, &known):
		t.Logf("%5.1f s %.60s: %.100s", time.Since(begin).Seconds(), query, known.Error())
	case ctx.Err() == nil: // the connection is broken
		t.Errorf("%.100s: %v", query, err)
	default:
		t.Logf("%5.1f s %.60s: its client has gone", time.Since(begin).Seconds(), query)
	}
}

func drain(ctx context.Context, db *stdsql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		continue
	}
	return rows.Err()
}

// waitForIdle waits until no hostile statement is left. A statement whose client has gone ends
// within a second, if a processor is free.
func waitForIdle(t *testing.T, db *stdsql.DB) {
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var n int
		err := db.QueryRow("select count(*) from information_schema.processlist where command = 'Query' and info not like '%processlist%' and info not like '%honest%'").Scan(&n)
		if err == nil && n == 0 {
			return
		}
		if time.Since(begin) > 60*time.Second {
			t.Errorf("%d statements are left: %v", n, err)
			return
		}
	}
}

// beHonest runs small statements until stop is closed. They all must succeed.
func beHonest(t *testing.T, db *stdsql.DB, stop <-chan struct{}, slowest *atomic.Int64) {
	for n := 1; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		begin := time.Now()
		if _, err := db.Exec("update honest set n = ? where id = 1", n); err != nil {
			t.Errorf("an honest statement: %v", err)
			return
		}
		slowest.Store(max(slowest.Load(), int64(time.Since(begin))))
	}
}

// watchMemory records the most memory that the server has taken, without mapped files.
func watchMemory(t *testing.T, s *server, stop <-chan struct{}, most *atomic.Int64) {
	for {
		most.Store(max(most.Load(), residentBytes(t, s, "RssAnon")))
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// residentBytes is a field of the server's /proc/PID/status.
func residentBytes(t *testing.T, s *server, field string) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if name, rest, _ := strings.Cut(line, ":"); name == field {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Error(err)
			}
			return n << 10
		}
	}
	t.Errorf("no %s in /proc", field)
	return 0
}

// A statement ends within about a second once its client has closed the connection.
func TestClientGone(t *testing.T) {
	s := start(t, t.TempDir(), layouts[0].flags()...)
	db := s.open(t, "d")
	fillHostile(t, db)
	for _, query := range []string{"select sleep(1000)", "call spin()", "select count(*) from h a, h b, h c where a.s = concat(b.s, c.s)", "select count(*) from " + joinOf(20)} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		if err := drain(ctx, db, query); err == nil {
			t.Errorf("%.60s has ended well", query)
		}
		cancel()
		begin := time.Now()
		waitForIdle(t, db)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%.60s went on for %v", query, took)
		}
	}
}
