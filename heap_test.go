package farmsql

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// heapBytesMax is what the Go heap may hold with ten million rows loaded: rows
// and indexes live outside it.
const (
	heapRows     = 10_000_000
	heapBytesMax = 300 << 20
)

// TestHeapStaysSmall loads a table with a primary key and a secondary index and
// looks at the Go heap. In the nightly mode (FARMSQL_NIGHTLY=1) it loads ten
// million rows; otherwise a part of them, which may take up its part of the heap
// besides what an empty database does.
func TestHeapStaysSmall(t *testing.T) {
	rows := 200_000
	if os.Getenv("FARMSQL_NIGHTLY") != "" {
		rows = heapRows
	}
	db, err := Open(Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	pool := db.SQL()
	for _, q := range []string{"CREATE DATABASE heap", "CREATE TABLE heap.t (id BIGINT PRIMARY KEY, k INT, c CHAR(60), KEY (k))"} {
		if _, err := pool.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	load := func(from, to int) {
		const batch = 500
		for ; from < to; from += batch {
			var q strings.Builder
			q.WriteString("INSERT INTO heap.t VALUES ")
			for id := from; id < min(from+batch, to); id++ {
				if id > from {
					q.WriteByte(',')
				}
				fmt.Fprintf(&q, "(%d,%d,'%060d')", id, id*7919%1000003, id)
			}
			if _, err := pool.Exec(q.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What the first rows bring along is not the rows' own.
	first := rows / 10
	load(0, first)
	before := heap()
	load(first, rows)
	after := heap()
	t.Logf("heap with %d rows: %.1f MB, with %d rows: %.1f MB", first, mb(before), rows, mb(after))
	share := heapBytesMax / float64(heapRows) * float64(rows-first)
	if grown := float64(after) - float64(before); grown > share {
		t.Errorf("the heap grew by %.1f MB with %d rows, %.1f MB is their share", grown/(1<<20), rows-first, share/(1<<20))
	}
	if after > heapBytesMax {
		t.Errorf("the heap has %.1f MB, must stay under %d MB", mb(after), heapBytesMax>>20)
	}
	var n int
	if err := pool.QueryRow("SELECT COUNT(*) FROM heap.t").Scan(&n); err != nil || n != rows {
		t.Errorf("counted %d rows of %d: %v", n, rows, err)
	}
}

// heap returns the bytes of live objects on the Go heap.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func mb(b uint64) float64 { return float64(b) / (1 << 20) }
