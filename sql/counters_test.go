package sql

import (
	"context"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/store"
)

// The part of a table's row count that a machine has not written yet is small compared with the count,
// so that other machines plan well, for small tables, too. It does not write for every row.
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
		seen := store.NewCounters(in.e.Store.Machine).Read(all[0].Counter)
		if off := max(int(seen)-n, n-int(seen)); off >= max(store.FlushLeast, int(seen)/store.FlushPart) {
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
	if writes < 10 || writes > 2*rows/store.FlushLeast {
		t.Errorf("%d writes for %d changes", writes, 2*rows)
	}
	c.exec("DROP TABLE t")
	in.e.Store.Counters.Add(context.Background(), map[region.Ptr]int64{all[0].Counter: store.FlushMost})
	if n := in.e.Store.Counters.Kept(); n != 0 {
		t.Errorf("%d counts of no table", n)
	}
}
