package sql

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// TestLikeOfPrefix: go-mysql-server made LIKE 'a%' a range that ends before most of the strings that
// begin with a.
func TestLikeOfPrefix(t *testing.T) {
	for collation, begin := range map[string]int{"utf8mb4_0900_ai_ci": 11, "utf8mb4_general_ci": 11, "utf8mb4_bin": 9, "utf8mb4_unicode_ci": 11} {
		setup := fmt.Sprintf("create table t (id int primary key, s varchar(20) collate %s, key (s));", collation) +
			"insert into t values (1,'a'),(2,'az'),(3,'azz'),(4,'b'),(5,'Az'),(6,'aÿ'),(7,'a\U0001F600'),(8,'äz'),(9,null),(10,'a_'),(11,'a%'),(12,''),(13,'a\U0010FFFFz'),(14,'abcdefghijklmnopqrst')"
		for _, s := range []shows{
			{setup, "select count(*) from t where s like 'a%'", fmt.Sprintf("%d\n", begin)},
			{setup, "select count(*) from t where not s like 'a%'", fmt.Sprintf("%d\n", 13-begin)},
			{setup, `select id from t where s like 'a\\_%'`, "10\n"},
			{setup, `select id from t where s like 'a\\_'`, "10\n"},
			{setup, "select id from t where s like 'a|%' escape '|'", "11\n"},
			{setup, "select id from t where s like 'abcdefghijklmnopqrst%'", "14\n"},
			{setup, "select id from t where s like 'abcdefghijklmnopqrstu%'", ""},
			{setup, "select id from t where s like 'b'", "4\n"},
			{setup, "select count(*) from t a where exists (select 1 from t b where b.s like 'az%' and b.id = a.id + 1)", "4\n"},
		} {
			if collation == "utf8mb4_bin" && strings.Contains(s.query, "exists") {
				s.want = "2\n"
			}
			s.test(t)
		}
	}
}

// TestEscapedWildcards: the parser took the backslash of \\_ and \\% away, which made wildcards
// of them.
func TestEscapedWildcards(t *testing.T) {
	const setup = "create table t (id int primary key, s varchar(20), key (s)); insert into t values (1,'ab'),(2,'a_'),(3,'a%'),(4,'a_b');" +
		`create view v as select id from t where s like 'a\_%'; create procedure p() select id from t where s like 'a\%' -- '\_'`
	for _, s := range []shows{
		{setup, `select id from t where s like 'a\_'`, "2\n"},
		{setup, `select id from t where s like "a\%"`, "3\n"},
		{setup, `select id from t where s like 'a\\_%' order by id`, "2\n4\n"},
		{setup, `select /* ' */ id, '\%' from t where s like 'a\_b' -- '`, "4 | \\%\n"},
		{setup, `select length('a\_'), 'it''s \'\_'`, "3 | it's '\\_\n"},
		{setup, "select * from v order by id", "2\n4\n"},
		{setup, "call p()", "3\n"},
	} {
		s.test(t)
	}
	_, text, rest, err := parser{}.ParseWithOptions(context.Background(), `select '\_'; select 2`, ';', true, sqlparser.ParserOptions{})
	if err != nil || text != `select '\_'` || strings.TrimSpace(rest) != "select 2" {
		t.Errorf("%q, %q, %v", text, rest, err)
	}
}

// TestEscapes: ESCAPE ” panicked, and a pattern that ends with an escape failed.
func TestEscapes(t *testing.T) {
	const setup = "create table t (id int primary key, s varchar(20), p varchar(20), key (s)); insert into t values (1,'x','y'),(2,'a%','a|%'),(3,'a|','a|'),(4,null,'%'),(5,'ab','a%'),(6,'a\\\\','a\\\\')"
	for _, s := range []shows{
		{setup, `select 'x' like 'y' escape '', 'a%' like 'a\\%' escape '', 'a\\b' like 'a\\%' escape '', 'ab' like 'a%' escape ''`, "0 | 1 | 0 | 1\n"},
		{setup, `select 'a\\' like 'a\\', 'x' like 'a|' escape '|', '|' like '|' escape '|', 'a|' like 'a|' escape '|', 'a' like 'a|' escape '|'`, "1 | 0 | 1 | 1 | 0\n"},
		{setup, `select 'a' like 'a' escape null, 'é%' like 'é€%' escape '€', 'éx' like 'é€%' escape '€', 'a%' like 'a%%' escape '%', 'a_' like 'a__' escape '_', 'ab' like 'a__' escape '_'`, "1 | 1 | 0 | 1 | 1 | 0\n"},
		{setup, `select 'a\\b' like 'a\\b' escape '|', 'a\\b' like 'a|\\b' escape '|'`, "1 | 1\n"},
		{setup, "select 'a' like 'b' escape 'xx'", "error 1210"},
		{setup, "select null like 'a' escape '', 'a' like null escape ''", "NULL | NULL\n"},
		{setup, "select id from t where s like 'a|' escape '|'", "3\n"},
		{setup, `select id from t where s like 'a\\'`, "6\n"},
		{setup, "select id from t where s like 'a%' escape '' order by id", "2\n3\n5\n6\n"},
		{setup, "select id from t where s like p escape '|' order by id", "2\n3\n5\n6\n"},
		{setup, "select id from t where s not like p escape '' order by id", "1\n2\n"},
		{setup, "select id from t order by s like 'a|' escape '|' desc, id limit 1", "3\n"},
		{setup, "select sum(s like 'a|' escape '|') from t having sum(s like 'b' escape '') = 0", "1\n"},
		{setup + ";create table c (s varchar(9), check (s not like 'q|' escape '|')); insert into c values ('a')", "insert into c values ('q|')", "error 3819"},
		{setup + ";create table c (s varchar(9), check (s not like 'q|' escape '|')); insert into c values ('a')", "update c set s = 'q|'", "error 3819"},
		{setup, `select x'61ff5c' like x'61ff5c', x'61ff' like x'61ff5c'`, "1 | 0\n"},
	} {
		s.test(t)
	}
}

// TestExistsOverOuterJoin: EXISTS was evaluated before the outer join had added rows of NULL.
func TestExistsOverOuterJoin(t *testing.T) {
	const setup = "create table n (id int primary key, a int); create table p (id int primary key, x int); insert into n values (1,1),(2,null); insert into p values (1,1),(2,5)"
	for _, s := range []shows{
		{setup, "select n.id from n left join p on n.a = p.x where not exists (select 1 from n i where p.id >= n.id)", "2\n"},
		{setup, "select n.id from n left join p on n.a = p.x where exists (select 1 from n i where p.id is null)", "2\n"},
		{setup, "select n.id from n where not exists (select 1 from p where n.a = 1 and p.id = n.id)", "2\n"},
		{setup, "select n.id from n join p on n.id = p.id where not exists (select 1 from p q where n.a > 0 and q.x = p.x)", "2\n"},
		{setup, "select p.id, n.id from n right join p on n.a = p.x where n.id is null", "2 | NULL\n"},
		{setup, "select p.id from n cross join n m right join p on n.a = p.x where not (m.a = 1 and p.id < 5) order by p.id", ""},
		{setup, "select p.id from n cross join n m right join p on n.a = p.x where (m.a = 1 and p.id < 5) is null order by p.id", "1\n2\n"},
		{setup, "select * from n right join p on n.a = p.x order by p.id", "1 | 1 | 1 | 1\nNULL | NULL | 2 | 5\n"},
		{setup + "; update n right join p on n.a = p.x set p.x = 9 where n.id is null", "select x from p order by id", "1\n9\n"},
		{setup + "; delete p from n right join p on n.a = p.x where n.id is null", "select id from p", "1\n"},
		{setup, "select n.id from n left join p on n.a = p.x where n.id not in (select i.id from n i where p.id >= n.id)", "2\n"},
		{setup, "select n.id from n left join p on n.a = p.x where exists (select 1 from n i where p.id = i.id)", "1\n"},
	} {
		s.test(t)
	}
}

// TestNullSafeEqualityOfText: <=> compared bytes, whatever the collation.
func TestNullSafeEqualityOfText(t *testing.T) {
	const setup = "create table t (id int primary key, s varchar(9), b varchar(9) collate utf8mb4_bin, key (s)); insert into t values (1,'a','a'),(2,'A','A'),(3,'b',null),(4,null,null)"
	for _, s := range []shows{
		{setup, "select id from t where s <=> 'a' order by id", "1\n2\n"},
		{setup, "select id from t where not s <=> 'a' order by id", "3\n4\n"},
		{setup, "select id from t where b <=> 'a'", "1\n"},
		{setup, "select id from t where s <=> null", "4\n"},
		{setup, "select x.id, y.id from t x join t y on x.s <=> y.s order by x.id, y.id", "1 | 1\n1 | 2\n2 | 1\n2 | 2\n3 | 3\n4 | 4\n"},
		{setup, "select 'a' <=> 'A', 'a' <=> null, null <=> null, 'a' <=> binary 'A'", "1 | 0 | 1 | 0\n"},
		{setup, "select id, s <=> 'A' from t order by id", "1 | 1\n2 | 1\n3 | 0\n4 | 0\n"},
	} {
		s.test(t)
	}
}

// TestInOfTimes: go-mysql-server's hash table for IN found no TIME, and no value that is equal only
// after a conversion.
func TestInOfTimes(t *testing.T) {
	const setup = "create table t (id int primary key, t time, d date, dt datetime, key (t), key (d), key (dt));" +
		"insert into t values (1,'10:00:00','2026-01-01','2026-01-01 10:00:00'),(2,'11:00:00','2026-01-02','2026-01-02 11:00:00'),(3,null,null,null),(4,'-10:00:00','1999-12-31','1999-12-31')"
	for _, s := range []shows{
		{setup, "select id from t where t in ('10:00:00', '11:00:00') order by id", "1\n2\n"},
		{setup, "select id from t where t in ('10:00:00')", "1\n"},
		{setup, "select id from t where t in (100000, 110000) order by id", "1\n2\n"},
		{setup, "select id from t where t not in ('10:00:00', '11:00:00')", "4\n"},
		{setup, "select id from t where t not in ('10:00:00', null)", ""},
		{setup, "select id from t where d in ('2026-01-01 00:00:00', '20260102') order by id", "1\n2\n"},
		{setup, "select id from t where dt in ('2026-01-01 10:00:00', null)", "1\n"},
		{setup, "select id from t where dt in ('1999-12-31', '2026-01-02 11:00:00') order by id", "2\n4\n"},
		{setup + ";delete from t where t in ('10:00:00', '11:00:00')", "select id from t order by id", "3\n4\n"},
		{setup + ";update t set d = null where t in ('10:00:00', '11:00:00')", "select count(d) from t", "1\n"},
	} {
		s.test(t)
	}
}

// TestWhereAboveOuterJoin: a condition that is true for a missing row was evaluated before the outer
// join had added rows of NULL, and not after.
func TestWhereAboveOuterJoin(t *testing.T) {
	const setup = "create table n (id int primary key, a int, b int, key (a)); create table p (id int primary key, x int, key (x));" +
		"insert into n values (1,1,1),(2,2,2),(3,null,3),(4,4,null); insert into p values (1,1),(2,2),(3,3),(4,9)"
	const from = "select n.id, p.id, q.id from n left join p on n.a = p.x inner join p q on q.id = n.id "
	for _, s := range []shows{
		{setup, from + "where p.x is null order by n.id", "3 | NULL | 3\n4 | NULL | 4\n"},
		{setup, from + "and p.x is null order by n.id", "3 | NULL | 3\n4 | NULL | 4\n"},
		{setup, from + "where coalesce(p.x, 0) = 0 order by n.id", "3 | NULL | 3\n4 | NULL | 4\n"},
		{setup, from + "where p.x <=> null order by n.id", "3 | NULL | 3\n4 | NULL | 4\n"},
		{setup, from + "where p.x is null or p.x = 1 order by n.id", "1 | 1 | 1\n3 | NULL | 3\n4 | NULL | 4\n"},
		{setup, from + "where p.x > 1 order by n.id", "2 | 2 | 2\n"},
		{setup, from + "where p.x = q.x order by n.id", "1 | 1 | 1\n2 | 2 | 2\n"},
		{setup, "select n.id, p.id, q.id from n left join p on n.a = p.x inner join p q on q.id = p.id + 1 where p.x < 9 order by n.id", "1 | 1 | 2\n2 | 2 | 3\n"},
		{setup, "select n.id, p.id, q.id from n left join p on n.a = p.x left join p q on q.id = p.id + 1 inner join p r on r.id = q.id and r.x > 2 order by n.id", "2 | 2 | 3\n"},
		{setup, "select n.id, q.id from n left join p on n.a = p.x join p q on q.id = n.id and p.x is null join p r on r.id = q.id order by n.id", "3 | 3\n4 | 4\n"},
		{setup, "select n.id, s.id from n left join (p r left join p q on q.id = r.id + 10 join p s on s.id = r.id and q.id is null) on n.id = r.id order by n.id", "1 | 1\n2 | 2\n3 | 3\n4 | 4\n"},
		{setup, "select n.id, q.id from n left join p on n.a = p.x join p q on q.id = n.id and q.id < 4 and q.x < 3 where q.x > 1", "2 | 2\n"},
		{setup, "select n.id from n left join p on n.a = p.x cross join p q where p.x is null and q.id = n.id order by n.id", "3\n4\n"},
		{setup, "select n.id from p right join n on n.a = p.x join p q on q.id = n.id where p.x is null order by n.id", "3\n4\n"},
		{setup, "select n.id from n left join p on n.a = p.x join p q on q.id = n.id left join p r on r.x = p.x where p.x is null and r.id is null order by n.id", "3\n4\n"},
	} {
		s.test(t)
	}
}

// TestLeftJoinLateral: rows without a match were lost, and WHERE became a part of ON.
func TestLeftJoinLateral(t *testing.T) {
	const setup = "create table n (id int primary key, a int); create table m (id int primary key, x int); insert into n values (1,1),(2,2),(3,3),(4,null); insert into m values (1,1),(2,1),(3,5)"
	const l = "left join lateral (select * from m where m.x = n.a) l "
	const k = "m left join lateral (select * from m k where k.x = m.x + n.a) l on true "
	for _, s := range []shows{
		{setup, "select n.id, l.id from n " + l + "on true order by n.id, l.id", "1 | 1\n1 | 2\n2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on true where n.id > 1 order by n.id", "2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on true where l.id is null order by n.id", "2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on true where l.id > 1", "1 | 2\n"},
		{setup, "select n.id, l.id from n " + l + "on l.id > 1 order by n.id", "1 | 2\n2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on n.id > 1 order by n.id", "1 | NULL\n2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on false order by n.id", "1 | NULL\n2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on true join m on m.id = n.id order by n.id, l.id", "1 | 1\n1 | 2\n2 | NULL\n3 | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on true join m on m.id = n.id and l.id is null order by n.id", "2 | NULL\n3 | NULL\n"},
		{setup, "select n.id, l.id, k.id from n " + l + "on true left join lateral (select * from m where m.id = l.id + 1) k on true where k.id > 2 or k.id is null order by n.id", "1 | 2 | 3\n2 | NULL | NULL\n3 | NULL | NULL\n4 | NULL | NULL\n"},
		{setup, "select n.id, l.id from n " + l + "on true left join m on m.id = l.id + 2 where m.id is null order by n.id, l.id", "1 | 2\n2 | NULL\n3 | NULL\n4 | NULL\n"},
		{setup, "select n.id, l.id from m r join n on n.id = r.id " + l + "on true where l.id is null order by n.id", "2 | NULL\n3 | NULL\n"},
		{setup, "select n.id from n where exists (select 1 from " + k + "where l.id is null and m.id = n.id) order by n.id", "1\n2\n3\n"},
		{setup, "select n.id from n where not exists (select 1 from " + k + "where l.id is null and m.id = n.id) order by n.id", "4\n"},
		{setup, "select n.id, (select count(*) from " + k + "where l.id is null) from n order by n.id", "1 | 3\n2 | 3\n3 | 3\n4 | 3\n"},
		{setup, "select n.id, d.id from n left join (select m.id, l.x from m left join lateral (select * from m k where k.x = m.x + 4) l on true where l.id is null) d on d.id = n.id where d.x is null order by n.id", "1 | NULL\n2 | NULL\n3 | 3\n4 | NULL\n"},
		{setup, "select n.id from n where n.id in (select m.id from m left join lateral (select * from m k where k.x = m.x + 4) l on true where l.id is null)", "3\n"},
		{setup, "select n.id, l.id from n join lateral (select * from m where m.x = n.a) l on l.id > 1 where n.id < 3", "1 | 2\n"},
		{setup + "; delete n from n " + l + "on true where l.id is null", "select * from n", "1 | 1\n"},
	} {
		s.test(t)
	}
}

// TestNotInOfNull: NOT IN became a join, which takes NULL for a value that is not contained.
func TestNotInOfNull(t *testing.T) {
	const setup = "create table n (id int primary key, a int, b int not null, key (a), key (b)); create table m (id int primary key, a int, b int not null, key (a));" +
		"insert into n values (1,1,1),(2,2,2),(3,null,3),(4,4,4); insert into m values (1,1,1),(2,null,2)"
	for _, s := range []shows{
		{setup, "select id from n where a not in (select b from m) order by id", "4\n"},
		{setup, "select id from n where a not in (select a from m)", ""},
		{setup, "select id from n where b not in (select a from m)", ""},
		{setup, "select id from n where a not in (select null)", ""},
		{setup, "select id from n where b not in (select b from m) order by id", "3\n4\n"},
		{setup, "select id from n where a not in (select a from m where a > 100) order by id", "1\n2\n3\n4\n"},
		{setup, "select id from n where not (a in (select a from m where m.id = n.id)) order by id", "3\n4\n"},
		{setup, "select id from n where a not in (1, 3) order by id", "2\n4\n"},
		{setup, "select id from n where a not in (1, null)", ""},
		{setup, "select n.id from n left join m on n.b = m.b where m.b not in (select b from n where id = 1) order by n.id", "2\n"},
		{setup + ";delete from n where a not in (select b from m)", "select count(*) from n", "3\n"},
		{setup, "select id from n where a in (select a from n where id not in (select a from m))", ""},
		{setup, "select id from m where b in (select b from n where id not in (select a from m))", ""},
		{setup, "select id from n where b in (select b from m where b + 7 not in (select a from m where id = 1)) order by id", "1\n2\n"},
		{setup, "select id from n where b > (select count(*) from m where b not in (select a from m)) order by id", "1\n2\n3\n4\n"},
		{setup + ";update n set b = 0 where a not in (select b from m)", "select id from n where b = 0", "4\n"},
	} {
		s.test(t)
	}
}

// TestInOfOtherTypes: IN of a subquery took the left side for a value of the subquery's type.
func TestInOfOtherTypes(t *testing.T) {
	const setup = "create table n (id int primary key, d decimal(8,2), f double, t datetime, u bigint unsigned);" +
		"create table m (id int primary key, i int, d date, w tinyint);" +
		"insert into n values (1,1.5,1.5,'2024-01-01 10:00:00',300),(2,2,2,'2024-01-02',2),(3,1.49,1.2,'2024-01-03',18446744073709551615),(4,null,null,null,null);" +
		"insert into m values (1,1,'2024-01-01',-1),(2,2,'2024-01-02',2),(3,null,null,null)"
	for _, s := range []shows{
		{setup, "select d in (select i from m where id < 3), f in (select i from m where id < 3), t in (select d from m where id < 3), u in (select w from m where id < 3) from n order by id", "0 | 0 | 0 | 0\n1 | 1 | 1 | 1\n0 | 0 | 0 | 0\nNULL | NULL | NULL | NULL\n"},
		{setup, "select d in (select i from m), f in (select i from m), t in (select d from m), u in (select w from m) from n order by id", "NULL | NULL | NULL | NULL\n1 | 1 | 1 | 1\nNULL | NULL | NULL | NULL\nNULL | NULL | NULL | NULL\n"},
		{setup, "select id from n where d not in (select i from m where i > 0) order by id", "1\n3\n"},
		{setup, "select id from n where d in (select max(i) from m group by id)", "2\n"},
		{setup, "select id from n where t in (select max(d) from m group by id)", "2\n"},
		{setup, "select id from n where t not in (select d from m where id = 1) order by id", "1\n2\n3\n"},
		{setup, "select i in (select d from n), d in (select t from n where id < 4), w in (select u from n where id < 4) from m order by id", "NULL | 0 | 0\n1 | 1 | 1\nNULL | NULL | NULL\n"},
		{setup, "select d in (select i from m where m.id > n.id) from n order by id", "NULL\nNULL\n0\n0\n"},
		{setup + ";update n set f = 0 where d in (select max(i) from m group by id)", "select id from n where f = 0", "2\n"},
		{"create table n (id int primary key, e enum('x','y','Z')); create table m (id int primary key, e enum('y','x','w')); insert into n values (1,'x'),(2,'y'),(3,'Z'),(4,null); insert into m values (1,'x'),(2,'w')", "select e in (select e from m), e not in (select e from m) from n order by id", "1 | 0\n0 | 1\n0 | 1\nNULL | NULL\n"},
	} {
		s.test(t)
	}
}

// TestHashOfElements: a hash join compared the number of an ENUM or SET with a text.
func TestHashOfElements(t *testing.T) {
	const setup = "create table n (p int, q smallint, s varchar(5), primary key (p, q)); create table m (id int primary key auto_increment, n int, e enum('y','x'), c set('a','x'));" +
		"insert into n values (1,1,'x'),(1,2,'X'),(2,3,'y'),(3,7,null),(4,7,null); insert into m (n,e,c) values (1,'x','x'),(1,'x','x'),(2,'y','a')"
	for _, s := range []shows{
		{setup, "select count(*) from n left join m on m.e = 'x'", "10\n"},
		{setup, "select count(*) from n left join m on m.e = 'X'", "10\n"},
		{setup, "select count(*) from n left join m on m.c = 'x'", "10\n"},
		{setup, "select count(*) from n left join m on m.e = 2", "10\n"},
		{setup, "select q, id from n left join m on m.e = n.s order by 1, 2", "1 | 1\n1 | 2\n2 | 1\n2 | 2\n3 | 3\n7 | NULL\n7 | NULL\n"},
		{setup, "select q, id from n left join m on m.e = n.s and m.n = n.p order by 1, 2", "1 | 1\n1 | 2\n2 | 1\n2 | 2\n3 | 3\n7 | NULL\n7 | NULL\n"},
	} {
		s.test(t)
	}
}

// TestConditionsOutside: a subquery's conditions on the outer query were evaluated on its own
// columns of the same names.
func TestConditionsOutside(t *testing.T) {
	const setup = "create table n (id int primary key, a int, b int, key (a)); insert into n values (1,1,1),(2,2,2),(3,null,3),(4,4,4)"
	for _, s := range []shows{
		{setup, "select o.id, (select count(*) from n i where o.id not in (1, 2)) from n o order by o.id", "1 | 0\n2 | 0\n3 | 4\n4 | 4\n"},
		{setup, "select o.id, (select count(*) from n i where o.id = 1) from n o order by o.id", "1 | 4\n2 | 0\n3 | 0\n4 | 0\n"},
		{setup, "select o.id, (select count(*) from n i where o.a is null) from n o order by o.id", "1 | 0\n2 | 0\n3 | 4\n4 | 0\n"},
		{setup, "select o.id, (select count(*) from n i where i.id = 1 or o.id = 2) from n o order by o.id", "1 | 1\n2 | 4\n3 | 1\n4 | 1\n"},
		{setup, "select o.id, (select max(i.b) from n i where i.id < o.id and o.a > 1) from n o order by o.id", "1 | NULL\n2 | 1\n3 | NULL\n4 | 3\n"},
		{setup, "select o.id from n o where exists (select 1 from n i where o.id = 2 and i.id = 3)", "2\n"},
		{setup, "select o.id from n o where o.a = (select max(i.a) from n i where o.id between 2 and 3)", ""},
	} {
		s.test(t)
	}
}

// TestRowsWithNull: rows were compared as if NULL were a value.
func TestRowsWithNull(t *testing.T) {
	const setup = "create table n (id int primary key, a int, b int, key (a, b)); insert into n values (1,1,1),(2,2,null),(3,null,3),(4,4,4)"
	for _, s := range []shows{
		{setup, "select id from n where (a, b) <> (null, 4) order by id", "1\n3\n"},
		{setup, "select id from n where (a, b) in ((1, 1), (4, null))", "1\n"},
		{setup, "select id from n where (a, b) not in ((1, 1), (4, null))", "2\n"},
		{setup, "select id from n where (a, b) <=> (2, null)", "2\n"},
		{setup, "select (1, null) = (1, null), (1, null) = (2, null), (1, 2) in ((1, null)), (1, null) <=> (1, null)", "NULL | 0 | NULL | 1\n"},
	} {
		s.test(t)
	}
}

// TestChangesOfDisjointRanges: an UPDATE or DELETE looked at the whole table for BETWEEN and
// for rows, and conflicted with all of it; FOR UPDATE takes what its whole WHERE admits.
func TestChangesOfDisjointRanges(t *testing.T) {
	for name, q := range map[string][2]string{
		"between":        {"update t set v = v + 1 where id between 1 and 10", "update t set v = v + 1 where id between 11 and 20"},
		"not between":    {"update t set v = v + 1 where not (id not between 1 and 10)", "update t set v = v + 1 where id between 11 and 20"},
		"delete between": {"delete from t where id between 1 and 10", "delete from t where id between 11 and 20"},
		"rows":           {"update t set v = v + 1 where (id, w) in ((1, 1), (2, 2))", "update t set v = v + 1 where (id, w) in ((3, 3), (4, 4))"},
		"a row":          {"update t set v = v + 1 where (id, w) = (1, 1)", "delete from t where (id, w) = (2, 2)"},
		"like":           {"update t set v = v + 1 where s like 'a%'", "update t set v = v + 1 where s like 'b%'"},
		"for update":     {"select * from t where id between 1 and 10 for update", "select * from t where id between 11 and 20 for update"},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInstance(t)
			a, b := in.client("d"), in.client("d")
			a.exec("create database d")
			a.exec("create table t (id int, w int, v int, s varchar(10), primary key (id, w), key (s))")
			for i := range 20 {
				a.exec(fmt.Sprintf("insert into t values (%d, %d, 0, '%c')", i+1, i+1, 'a'+i/10))
			}
			for i, c := range []*client{a, b} {
				c.exec("begin")
				c.s.SetForUpdate(strings.HasSuffix(q[i], "for update"))
				c.exec(q[i])
				c.s.SetForUpdate(false)
			}
			for _, c := range []*client{a, b} {
				if _, _, err := c.run("commit"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestEqualitiesTwice: if two conditions fix a column, go-mysql-server took values that are not identical
// for different ones, and panicked for bytes.
func TestEqualitiesTwice(t *testing.T) {
	const setup = "create table t (id int primary key, v varbinary(6), s varchar(6), d date, key (v), key (s), key (d)); create table u (id int primary key, v varbinary(6));" +
		"insert into t values (1,x'00','a','2026-01-01'),(2,x'ff','b','2026-01-02'); insert into u values (1,x'00'),(2,x'ff')"
	for _, s := range []shows{
		{setup, "select id from t where v = x'00' and v = x'ff'", ""},
		{setup, "select id from t where (v = x'00' and v = x'00') or (v = 'b' and v = 'a')", "1\n"},
		{setup, "select t.id from t join u on t.v = u.v and t.v = x'00' where u.v = x'00' and t.v = x'00'", "1\n"},
		{setup, "select t.id from t left join u on t.v = u.v and u.v = x'ff' and u.v = x'ff' where u.id is null", "1\n"},
		{setup, "select t.id from t cross join u w join u on t.v <=> u.v and t.v in (x'00') where t.s in ('a', 'b') order by w.id", "1\n1\n"},
		{setup, "select id from t where v in (x'00', 'b') and v = x'00' and v in (x'00', x'01')", "1\n"},
		{setup, "select t.id from t join u on t.v = u.v and t.v in (x'00', '', 'b') and u.v = x'00' where t.v in (x'00', x'ff')", "1\n"},
		{setup, "select id from t where s = 'a' and s = 'A'", "1\n"},
		{setup, "select id from t where d = '2026-01-01' and d = '2026-01-01 00:00:00'", "1\n"},
		{setup, "select id from t where id = 1 and id = '1'", "1\n"},
		{setup, "select id from t where id in (1, 2) and id = 2", "2\n"},
		{setup + "; delete from t where v = x'00' and v = x'ff'; update t set s = 'z' where v = x'ff' and v = x'ff'", "select s from t order by id", "a\nz\n"},
	} {
		s.test(t)
	}
}

// TestJoinsOfSeveralColumns: joins by several columns looked strings up by their bytes, not by their
// collation, and merge joins lost rows because of NULLs.
func TestJoinsOfSeveralColumns(t *testing.T) {
	const setup = "create table a (id int primary key, x varchar(9), y varchar(9) collate utf8mb4_bin, z varchar(9), m int, n int, key mn (m, n)); create table b like a;" +
		"insert into a values (1,'a','k','É',1,1),(2,'B','K','e',1,2),(3,null,'k','e',2,2),(4,'c','k','x',2,1); insert into b values (1,'A','k','e',1,1),(2,'b','K','é',2,2),(3,null,'k','e',3,3),(4,'c','K','x',1,2)"
	for _, hint := range []string{"", "/*+ HASH_JOIN(a,b) */ ", "/*+ INNER_JOIN(a,b) */ "} {
		for _, s := range []shows{
			{setup, "select " + hint + "a.id from a join b on a.x = b.x and a.z = b.z order by a.id", "1\n2\n4\n"},
			{setup, "select " + hint + "a.id from a join b on a.x = b.x and a.y = b.y order by a.id", "1\n2\n"},
			{setup, "select " + hint + "a.id, b.id from a join b on a.x = b.x and a.m = b.m order by a.id", "1 | 1\n"},
			{setup, "select " + hint + "count(*) from a join b on a.m = b.m and a.n = b.m", "3\n"},
			{setup + "; insert into a values (5,null,null,null,1,null),(6,null,null,null,null,2),(7,null,null,null,0,null),(8,null,null,null,0,7); insert into b select * from a where id > 4", "select " + hint + "count(*) from a join b on a.m = b.m and a.n = b.n where b.z is null", "1\n"},
			{setup, "select " + hint + "a.id from a left join b on a.x = b.x and a.z = b.z where b.id is null", "3\n"},
		} {
			s.test(t)
		}
	}
}

// TestSubqueryOverJoins: a condition with a subquery was evaluated between the joins whose tables it
// uses.
func TestSubqueryOverJoins(t *testing.T) {
	const setup = "create table n (id int primary key, a int); insert into n values (1,1),(2,2),(3,null)"
	for _, s := range []shows{
		{setup, "select count(*) from n x cross join n y cross join n z where 0 = (select count(i.id) from n i where x.id <> z.id)", "9\n"},
		{setup, "select count(*) from n x join n y on x.a <= y.id join n z on y.id = z.id where x.id = 1 or exists (select 1 from n i where x.a > 1 and i.id = z.id)", "5\n"},
		{setup, "select count(*) from n x cross join n y join n z on x.id = z.id where z.id = (select max(i.id) from n i where i.id <= y.id)", "3\n"},
		{setup, "select x.id, y.id from n z left join (n x cross join n y) on x.id = z.id where y.id >= x.id and z.id = 2 order by y.id", "2 | 2\n2 | 3\n"},
		{setup, "select count(*) from n x join n y on x.id = y.id and exists (select 1 from n i where i.a = x.a and i.a > 1) where not exists (select 1 from n j where j.a = 1 and j.id = x.id)", "1\n"},
		{setup, "select z.id from n x cross join n y right join n z on x.a = z.id where x.a = y.a order by z.id", "1\n2\n"},
	} {
		s.test(t)
	}
}
