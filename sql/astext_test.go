package sql

import "testing"

// TestTextOfArguments: functions got the number of an ENUM and a SET, and failed with TIME and
// JSON.
func TestTextOfArguments(t *testing.T) {
	const setup = "create table t (id int primary key, e enum('x','y'), s set('a','b','c'), j json, ti time, d date, dt datetime);" +
		`insert into t values (1,'y','a,c','{"k": 1}','10:00:00','2020-01-02','2020-01-02 03:04:05'),(2,null,'',null,null,null,null)`
	const one = " from t where id = 1"
	for _, s := range []shows{
		{setup, "select id, json_object('e', e, 's', s) from t order by id", "1 | {\"e\": \"y\", \"s\": \"a,c\"}\n2 | {\"e\": null, \"s\": \"\"}\n"},
		{setup, "select json_array(e, s, concat(e), id) from t order by id", "[\"y\", \"a,c\", \"y\", 1]\n[null, \"\", null, 2]\n"},
		{setup, "select json_arrayagg(e), json_objectagg(id, s) from t", "[\"y\", null] | {\"1\": \"a,c\", \"2\": \"\"}\n"},
		{setup, "select 1, json_object(e, 1), json_set(j, '$.e', e), json_replace(j, '$.k', s), json_array_append('[1]', '$', e)" + one, "1 | {\"y\": 1} | {\"e\": \"y\", \"k\": 1} | {\"k\": \"a,c\"} | [1, \"y\"]\n"},
		{setup, "select cast(e as json), json_array(max(e))" + one + " group by e", "\"y\" | [\"y\"]\n"},
		{setup, "select if(id = 1, e, s), ifnull(e, 'q'), coalesce(e, s, 'z'), json_array(if(id = 1, e, s)), greatest(e, 'a') from t order by id", "y | y | y | [\"y\"] | y\n | q |  | [\"\"] | NULL\n"},
		{setup, "select json_array((select e" + one + ")), (select json_arrayagg(f) from (select e f from t where id = 1) x)", "[\"y\"] | [\"y\"]\n"},
		{setup, "select hex(j), hex(ti), hex(e), hex(s), hex(d), hex(id)" + one, "7B226B223A20317D | 31303A30303A3030 | 79 | 612C63 | 323032302D30312D3032 | 1\n"},
		{setup, "select length(j), md5(j) = md5(concat(j)), upper(j), substr(j, 1, 3), left(j, 2), replace(j, 'k', 'y'), reverse(j)" + one, "8 | 1 | {\"K\": 1} | {\"k | {\" | {\"y\": 1} | }1 :\"k\"{\n"},
		{setup, "select concat(ti), concat(ti, 'x'), concat_ws('-', ti, d, dt), lpad(ti, 10, 'x'), length(ti), reverse(ti), md5(ti) = md5('10:00:00')" + one, "10:00:00 | 10:00:00x | 10:00:00-2020-01-02-2020-01-02 03:04:05 | xx10:00:00 | 8 | 00:00:01 | 1\n"},
		{setup, "select concat(cast('10:00:00.25' as time(6))), concat(timediff('08:58:59', '10:00:00')), json_array(ti)" + one, "10:00:00.250000 | -01:01:01 | [\"10:00:00\"]\n"},
		{setup, "select ascii(j), crc32(j) > 0, field(ti, '10:00:00'), elt(1, j), strcmp(ti, 'a'), substring_index(j, ':', 1), repeat(ti, 2), quote(j), to_base64(ti)" + one, "123 | 1 | 1 | {\"k\": 1} | -1 | {\"k\" | 10:00:0010:00:00 | '{\"k\": 1}' | MTA6MDA6MDA=\n"},
		{setup + "; create table c (e enum('x','y'), h varchar(20) as (hex(e)) stored, check (concat(e) <> 'x')); insert into c (e) values ('y')", "select h from c", "79\n"},
		{setup + "; create table c (e enum('x','y'), h varchar(20) as (hex(e)) stored, check (concat(e) <> 'x'))", "insert into c (e) values ('x')", "error 3819"},
		{"", "select repeat('a', -1), repeat('a', 0), repeat('ab', 2), repeat(null, -1), repeat('a', null), repeat(12, '2'), repeat('ab', 1.6)", " |  | abab | NULL | NULL | 1212 | abab\n"},
		{"", `select length(quote(repeat('a', 100000))), quote(null), quote('a''b\\'), quote(''), quote(7)`, "100002 | NULL | 'a\\'b\\\\' | '' | '7'\n"},
		{"", `select json_valid(concat(json_array(char(1)))), hex(json_array(char(1), 'a\nb')), cast(json_array(char(31)) as char)`, "1 | 5B225C7530303031222C2022615C6E62225D | [\"\\u001f\"]\n"},
		{"create table k (j json); insert into k values (json_object('a', concat('x', char(2), 'y')))", "select length(j), length(j->>'$.a'), j->>'$.a' = concat('x', char(2), 'y') from k", "17 | 3 | 1\n"},
	} {
		s.test(t)
	}
}

// TestQualifiedValues: go-mysql-server evaluated VALUES(t.c) as the column of the existing row.
func TestQualifiedValues(t *testing.T) {
	const setup = "create table t (id int primary key, v int); insert into t values (1, 5);"
	for _, s := range []shows{
		{setup + "insert into t values (1, 9) on duplicate key update v = values(t.v) + 1", "select v from t", "10\n"},
		{setup + "insert into t values (1, 9) on duplicate key update v = values(d.t.v) + t.v", "select v from t", "14\n"},
	} {
		s.test(t)
	}
}
