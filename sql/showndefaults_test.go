package sql

import (
	"reflect"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// A column that has NULL as its default has none in SHOW COLUMNS, where Rails takes any text for the default itself.
func TestShownDefaults(t *testing.T) {
	c := newInstance(t).client("")
	c.exec("CREATE DATABASE d")
	c.s.SetCurrentDatabase("d")
	c.exec("CREATE TABLE t (a INT, b INT DEFAULT NULL, c VARCHAR(9) DEFAULT null, d TEXT DEFAULT NULL, e VARCHAR(9) DEFAULT 'NULL', f INT DEFAULT 5, g VARCHAR(9) DEFAULT '')")
	want := []any{nil, nil, nil, nil, "NULL", "5", ""}
	for query, at := range map[string]int{"SHOW COLUMNS FROM t": 4, "SHOW FULL FIELDS FROM t": 5, "DESCRIBE t": 4} {
		_, rows, err := c.run(query)
		if err != nil {
			t.Fatal(err)
		}
		if got := column(rows, at); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: defaults %q, want %q", query, got, want)
		}
	}
}

func column(rows []gms.Row, at int) (values []any) {
	for _, r := range rows {
		values = append(values, r[at])
	}
	return values
}
