package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/region"
)

// What a machine has not written of a table's count is little beside it, so that the
// others plan well for small tables, too; and it does not write for every row.
func TestCountIsNearAtOtherMachines(t *testing.T) {
	in := newInstance(t)
	c := in.client("")
	c.exec("CREATE DATABASE d")
	c.exec("USE d")
	c.exec("CREATE TABLE t (id INT PRIMARY KEY)")
	all, err := in.e.allTables(context.Background())
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	const rows = 1500
	last, writes := uint64(0), 0
	see := func(n int) {
		t.Helper()
		seen := newCounters(in.e.Store.m).read(all[0].Counter)
		if off := max(int(seen)-n, n-int(seen)); off >= max(flushLeast, int(seen)/flushPart) {
			t.Fatalf("others see %d rows of %d", seen, n)
		}
		if seen != last {
			last, writes = seen, writes+1
		}
	}
	for n := 1; n <= rows; n++ {
		c.exec(fmt.Sprintf("INSERT INTO t VALUES (%d)", n))
		see(n)
	}
	for n := rows; n > 0; n-- {
		c.exec(fmt.Sprintf("DELETE FROM t WHERE id = %d", n))
		see(n - 1)
	}
	if writes < 10 || writes > 2*rows/flushLeast {
		t.Errorf("%d writes for %d changes", writes, 2*rows)
	}
	c.exec("DROP TABLE t")
	in.e.Store.counters.add(context.Background(), map[region.Ptr]int64{all[0].Counter: flushMost})
	if n := in.e.Store.counters.kept(); n != 0 {
		t.Errorf("%d counts of no table", n)
	}
}
