package sql

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/farmsql/farmsql/catalog"
)

// Tables that come and go leave nothing on the heap: neither at the machine that drops them nor at
// another one that has used them.
func TestDroppedTablesLeaveTheHeap(t *testing.T) {
	cfg := testConfig
	cfg.Machines, cfg.Replicas = 2, 1
	in := openInstance(t, cfg)
	t.Cleanup(in.close)
	cat, err := OpenCatalog(t.Context(), in.cluster.Machine(1), in.cluster.Root(), catalog.Config{Sequences: in.cat.Sequences()})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(in.cluster.Machine(1), cat, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(e.Close(context.Background()), cat.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	owner, other := in.client(""), (&instance{t: t, cluster: in.cluster, cat: cat, e: e, cfg: cfg}).client("")
	owner.exec("CREATE DATABASE d")
	cycle := func(n int) {
		for i := range n {
			owner.exec(fmt.Sprintf("CREATE TABLE d.t%d (id INT PRIMARY KEY, a VARCHAR(30), KEY (a))", i))
			owner.exec(fmt.Sprintf("INSERT INTO d.t%d VALUES (1, 'x')", i))
			other.exec(fmt.Sprintf("SELECT * FROM d.t%d WHERE a = 'x'", i))
		}
		for i := range n {
			owner.exec(fmt.Sprintf("DROP TABLE d.t%d", i))
		}
	}
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	churn := func(tables int) {
		for ; tables > 0; tables -= 50 {
			cycle(50)
		}
	}
	churn(600) // there are copies of as many tables as there may be
	before := heap()
	churn(1500)
	if leaks := heap() - before; leaks > 1<<20 {
		t.Errorf("1500 tables that came and went leave %d KB", leaks>>10)
	}
}
