package sql

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/sql/myerr"
)

// What plans of ours keep is counted, and given back.
func TestPlannedMemory(t *testing.T) {
	m := boundedMemory(1<<20, math.MaxInt64)
	c := openBounded(t, m)
	for _, query := range []string{
		"SELECT ROW_NUMBER() OVER (PARTITION BY k ORDER BY s) AS n FROM t WHERE id >= 0",
		"SELECT COUNT(*) FROM (SELECT id, s FROM t WHERE id >= 0) d JOIN (SELECT k, s FROM t WHERE id >= 0) e ON e.s = d.s",
		"SELECT COUNT(*) FROM t WHERE id IN (SELECT MAX(id) FROM t GROUP BY s)",
	} {
		for range 3 {
			_, _, _, err := c.compiled(query)
			if e := myerr.Of(err); e == nil || e.Num != myerr.StatementMemory.Number {
				t.Errorf("%s: %.200v, want %d", query, err, myerr.StatementMemory.Number)
			}
			c.s.Settle()
			if n := m.Used(); n != 0 {
				t.Fatalf("%s: %d bytes are still held", query, n)
			}
		}
		_, rows, err := c.run("EXPLAIN FORMAT=TREE " + query)
		if err != nil || !strings.Contains(fmt.Sprint(rows), "run by sql/exec") {
			t.Errorf("%s: no plan of ours: %v, %v", query, rows, err)
		}
	}
}
