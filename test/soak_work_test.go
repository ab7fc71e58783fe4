package test

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A soak is the work of TestSoak.
type soak struct {
	t  *testing.T
	s  *server
	db *stdsql.DB

	mu     sync.Mutex
	ran    map[string]int // statements, by kind of work
	errors map[uint16]int // by MySQL's number
}

// soakRows bounds the rows of the common table, and soakLong the length of their values.
const (
	soakRows = 500
	soakLong = 60_000
)

// soakAllowed are errors that concurrent work may cause.
var soakAllowed = []uint16{1213, 1062, 1050, 1051, 1146, 1412, 1054, 1060, 1064, 1205, 1305, 1359, 1360, 1007, 1008, 1049, 1452, 1451, 1304, 1317, 1091, 1243, 1701, 3730}

func newSoak(t *testing.T, s *server) *soak {
	db := s.open(t, "soak")
	db.SetMaxOpenConns(16)
	exec1(t, db,
		"create table rows_ (id int primary key, k int, s varchar(200), b longtext, e enum('a','b'), at timestamp(6) default now(6), unique (s), key (k))",
		"create table sums (k int primary key, n bigint not null default 0)",
		"create trigger counts after insert on rows_ for each row insert into sums values (new.k, 1) on duplicate key update n = n + 1",
		"create view joined as select r.id, r.k, n from rows_ r join sums using (k)",
		"create procedure loops(n int) begin declare i int default 0; while i < n do set i = i + 1; end while; select i; end")
	return &soak{t: t, s: s, db: db, ran: make(map[string]int), errors: make(map[uint16]int)}
}

// work is one round of something that clients do.
type work struct {
	name string
	run  func(*soak, *rand.Rand) error
}

func (w *soak) workers() []work {
	return []work{
		{"rows", (*soak).rows}, {"rows", (*soak).rows}, {"transactions", (*soak).transactions},
		{"tables", (*soak).tables}, {"tables", (*soak).tables}, {"comings", (*soak).comings}, {"comings", (*soak).comings}, {"kinds", (*soak).kinds},
	}
}

func (w *soak) repeat(what work, stop <-chan struct{}) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for {
		select {
		case <-stop:
			return
		default:
		}
		err := what.run(w, random)
		w.mu.Lock()
		w.ran[what.name]++
		if e := new(mysql.MySQLError); errors.As(err, &e) {
			w.errors[e.Number]++
			if !slices.Contains(soakAllowed, e.Number) && w.errors[e.Number] < 3 {
				w.t.Errorf("%s: %v", what.name, err)
			}
		} else if err != nil && w.ran["lost"] < 3 {
			w.ran["lost"]++
			w.t.Errorf("%s: %v", what.name, err)
		}
		w.mu.Unlock()
	}
}

func (w *soak) report() {
	w.t.Logf("rounds: %v; errors: %v", w.ran, w.errors)
	for _, name := range []string{"rows", "transactions", "tables", "comings", "kinds"} {
		if w.ran[name] == 0 {
			w.t.Errorf("no round of %s", name)
		}
	}
}

func (w *soak) close() { _ = w.db.Close() }

func (w *soak) exec(queries ...string) error {
	for _, q := range queries {
		if _, err := w.db.Exec(q); err != nil {
			return fmt.Errorf("%.80s: %w", q, err)
		}
	}
	return nil
}

// long is a text, which is seldom very long.
func long(random *rand.Rand) string {
	return strings.Repeat(string(rune('a'+random.IntN(26))), random.IntN(1+soakLong>>random.IntN(12)))
}

func (w *soak) rows(random *rand.Rand) error {
	id := random.IntN(soakRows)
	switch random.IntN(6) {
	case 0:
		_, err := w.db.Exec("delete from rows_ where id between ? and ?", id, id+random.IntN(20))
		return err
	case 1:
		_, err := w.db.Exec("update rows_ set b = ?, k = k + 1 where id = ?", long(random), id)
		return err
	case 2:
		_, err := w.db.Exec("update rows_ set e = 'b', s = null where k = ?", random.IntN(50))
		return err
	case 3:
		return w.read("select k, count(*), max(length(b)) from rows_ group by k having count(*) > ? order by 2 desc", random.IntN(3))
	}
	_, err := w.db.Exec("replace into rows_ (id, k, s, b, e) values (?, ?, ?, ?, 'a')", id, random.IntN(50), fmt.Sprint(random.IntN(10*soakRows)), long(random))
	return err
}

func (w *soak) read(query string, args ...any) error {
	rows, err := w.db.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}

func (w *soak) transactions(random *rand.Rand) error {
	tx, err := w.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no-op after Commit
	for range 1 + random.IntN(5) {
		id := random.IntN(soakRows)
		for _, q := range []string{
			"savepoint a", fmt.Sprintf("insert into rows_ (id, k, b) values (%d, 7, repeat('t', %d)) on duplicate key update k = k + 1", id, random.IntN(5000)),
			fmt.Sprintf("update sums set n = n + 1 where k = %d", random.IntN(50)), []string{"rollback to a", "release savepoint a"}[random.IntN(2)],
		} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
	}
	if random.IntN(3) == 0 {
		return tx.Rollback()
	}
	return tx.Commit()
}

// tables creates, alters, truncates and drops a table of its own, with everything that depends on
// it.
func (w *soak) tables(random *rand.Rand) error {
	name := fmt.Sprintf("t%d", random.IntN(6))
	_ = w.exec("drop table if exists "+name+"c", "drop table if exists "+name) // whatever somebody else is doing with it
	queries := []string{
		"create table " + name + " (id int primary key auto_increment, a int, s text, key (a))",
		"insert into " + name + " (a, s) select k, b from rows_ limit 50",
		"create table " + name + "c (id int primary key, p int, foreign key (p) references " + name + " (id) on delete cascade)",
		"insert into " + name + "c select id, id from " + name,
		"alter table " + name + " add column z varchar(50) default 'z', add index (z)",
		"create or replace view v" + name + " as select * from " + name,
		"delete from " + name + " where a % 2 = 0",
		"alter table " + name + " modify a bigint, drop column z",
		"drop table " + name + "c",
		"create trigger g" + name + " before update on " + name + " for each row set new.a = new.a + 1",
		"update " + name + " set a = 1",
		"truncate " + name,
		"insert into " + name + " (a) values (1), (2)",
		"drop view v" + name,
		"rename table " + name + " to " + name + "r",
		"drop table " + name + "r",
	}
	if random.IntN(4) == 0 {
		queries = queries[:random.IntN(len(queries))]
	}
	err := w.exec(queries...)
	_ = w.exec("drop table if exists " + name + "r")
	if err == nil && random.IntN(10) == 0 {
		err = w.exec("create database if not exists x"+name, "create table x"+name+".t select * from rows_ limit 10", "drop database x"+name)
	}
	return err
}

// comings makes a client come, do something, and leave, perhaps in the middle of it and without
// closing the connection properly.
func (w *soak) comings(random *rand.Rand) error {
	var wire net.Conn
	config, err := mysql.ParseDSN("root@tcp(" + w.s.addr + ")/soak?timeout=20s")
	if err != nil {
		return err
	}
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		wire = c
		return c, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	c, err := connector.Connect(context.Background())
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for _, q := range []string{
		"set @v = repeat('v', 20000)", "do get_lock('soak', 0)", "begin", fmt.Sprintf("update sums set n = n + 1 where k = %d", random.IntN(50)),
		fmt.Sprintf("select * from rows_ where id = %d for update", random.IntN(soakRows)), fmt.Sprintf("replace into rows_ (id, k, b) values (%d, 9, repeat('c', %d))", random.IntN(soakRows), random.IntN(soakLong)),
	} {
		if _, err := c.(driver.ExecerContext).ExecContext(context.Background(), q, nil); err != nil {
			return err
		}
	}
	for range random.IntN(4) { // which nobody closes
		if _, err := c.(driver.ConnPrepareContext).PrepareContext(context.Background(), "select * from joined where k = ?"); err != nil {
			return err
		}
	}
	time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
	switch random.IntN(3) {
	case 0:
		_, err = c.(driver.ExecerContext).ExecContext(context.Background(), "commit", nil)
	case 1:
		_ = wire.Close() // the transaction is open
	}
	return err
}

var soakStatements = []string{
	"show tables", "show create table rows_", "show table status", "show index from rows_", "show processlist", "show variables like 'a%'", "show status",
	"explain select * from joined where k = 1", "explain analyze select count(*) from rows_ where k > 3", "select * from information_schema.tables where table_schema = 'soak'",
	"with recursive n as (select 1 as i union all select i + 1 from n where i < 50) select sum(i) from n", "select id, rank() over (partition by k order by id) from rows_ limit 20",
	"select * from joined where n > (select avg(n) from sums) order by id limit 5", "select 1 union select k from rows_", "select json_object('a', id) from rows_ limit 3",
	"call loops(50)", "set @x = 1, @y = 'text'", "select @x, connection_id(), now(6), uuid()", "select count(*) from rows_ a join rows_ b using (k)",
	"prepare p from 'select ? + 1'", "deallocate prepare p", "select * from nowhere", "select syntax error", "analyze table rows_", "flush tables", "select sleep(0.01)", "create user if not exists 'u'@'%'", "drop user if exists 'u'@'%'",
}

func (w *soak) kinds(random *rand.Rand) error {
	return w.read(soakStatements[random.IntN(len(soakStatements))])
}
