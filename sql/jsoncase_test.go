package sql

import "testing"

// TestCaseOfJSON: CASE compares the text of a JSON document with texts.
func TestCaseOfJSON(t *testing.T) {
	const table = `create table j (id int primary key, d json); insert into j values (1, '{"a": null}'), (2, '{"a": "x"}'), (3, '{"a": 3}'), (4, '{}');`
	for _, s := range []shows{
		{table, "select id, case json_extract(d, '$.a') when 'null' then 'null' when '\"x\"' then 'text' when 'x' then 'bare' when '3' then 'number' else 'other' end from j order by id", "1 | null\n2 | text\n3 | number\n4 | other\n"},
		{table, "select id, case json_extract(d, '$.a') when 3 then 'number' else 'other' end from j order by id", "1 | other\n2 | other\n3 | number\n4 | other\n"},
		{table, "select id from j where case json_extract(d, '$.a') when 'null' then null else json_unquote(json_extract(d, '$.a')) end is null order by id", "1\n4\n"},
		{`create table b (id int primary key, d json); insert into b values (1, '{"a": null}'), (2, '{"a": true}'), (3, '{"a": false}'), (4, '{}');`, "select id, case json_extract(d, '$.a') when 'null' then null when true then 'yes' else 'no' end from b order by id", "1 | NULL\n2 | yes\n3 | no\n4 | no\n"},
	} {
		s.testTwice(t)
	}
}
