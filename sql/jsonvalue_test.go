package sql

import "testing"

// TestJSONValue: JSON_VALUE returned arrays, objects and quotes. The results are MariaDB's.
func TestJSONValue(t *testing.T) {
	const setup = `create table t (j json); insert into t values ('{"a": "q", "b": [1]}'), ('{"a": 5}')`
	for _, s := range []shows{
		{setup, "select json_value(j, '$.a'), json_value(j, '$.b'), json_value(j, '$.b[0]'), json_value(j, '$') from t", "q | NULL | 1 | NULL\n5 | NULL | NULL | NULL\n"},
		{setup, "select count(*) from t where json_value(j, '$.a') = 'q'", "1\n"},
		{setup, `select json_value('{"a": null}', '$.a'), json_value('"x"', '$'), json_value(null, '$'), json_value('{"a b": 3}', '$."a b"'), json_value('{"a": "5"}', '$.a') + 1`, "NULL | x | NULL | 3 | 6\n"},
		{setup, `select json_value('{', '$.a')`, "error 3141"},
	} {
		s.testTwice(t)
	}
}
