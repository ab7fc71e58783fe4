package sql

import (
	"fmt"
	"strings"
	"testing"
)

// An UPDATE and a DELETE read, and an UPDATE writes, only the columns that they need: further columns cost no allocations.
func TestChangesOfWideRows(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	var columns, values strings.Builder
	for i := range 30 {
		fmt.Fprintf(&columns, ", j%d JSON, d%d DECIMAL(9,2), s%d VARCHAR(50)", i, i, i)
		fmt.Fprintf(&values, ", '{\"a\": [1, 2.5, \"x\"]}', 1.25, 'some text'")
	}
	c.exec("CREATE TABLE narrow (id INT PRIMARY KEY, k INT, v INT, KEY (k))")
	c.exec("CREATE TABLE wide (id INT PRIMARY KEY, k INT, v INT" + columns.String() + ", KEY (k))")
	for i := range 400 {
		c.exec(fmt.Sprintf("INSERT INTO narrow VALUES (%d, %d, 0)", i, i/10))
		c.exec(fmt.Sprintf("INSERT INTO wide VALUES (%d, %d, 0%s)", i, i/10, values.String()))
	}
	allocs := func(query string) float64 {
		k := 0
		return testing.AllocsPerRun(15, func() {
			if err := c.execute(fmt.Sprintf(query, k)); err != nil {
				t.Fatal(err)
			}
			c.s.Settle()
			k++
		})
	}
	for _, query := range []string{"UPDATE %s SET v = v + 1 WHERE k = %%d", "UPDATE %s SET k = k + 100 WHERE k = %%d", "UPDATE %s SET v = 7 WHERE id BETWEEN %%d AND %%[1]d + 5", "DELETE FROM %s WHERE k = %%d + 20"} {
		narrow := allocs(fmt.Sprintf(query, "narrow"))
		if wide := allocs(fmt.Sprintf(query, "wide")); wide > 2*narrow {
			t.Errorf("%s: %.0f allocations for narrow rows, %.0f for wide ones", query, narrow, wide)
		}
	}
}
