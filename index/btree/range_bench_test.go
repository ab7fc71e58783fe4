package btree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/internal/cputime"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/shm"
	"github.com/farmsql/farmsql/txn"
)

// benchRows returns the number of rows of the ranges; few in short mode.
func benchRows() int {
	if testing.Short() {
		return 2_000
	}
	return 200_000
}

// openRows returns handles of a tree of rows of 200 bytes: one of a machine that is not the rows'
// primary, and one of the primary. The machines reach each other over shm.
func openRows(b *testing.B) (local, remote *Tree) {
	path := b.TempDir()
	var nics []rdma.NIC
	c, err := farm.Open(farm.Config{Folder: b.TempDir(), Machines: 2, LogBytes: 16 << 20, RegionBytes: 256 << 20, Each: func(m *farm.MemberConfig) {
		nic, err := shm.Join(path, m.Self.Machine)
		if err != nil {
			b.Fatal(err)
		}
		nics = append(nics, nic)
		m.NIC = nic
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Close()
		for _, n := range nics {
			_ = n.Close()
		}
	})
	trees := createTree(b, c, Config{})
	fillRows(b, trees[0], benchRows())
	return trees[0], trees[1]
}

// fillRows adds rows of 200 bytes, whose keys come in random order.
func fillRows(tb testing.TB, tr *Tree, n int) {
	const batch = 200
	order := rand.New(rand.NewPCG(1, 1)).Perm(n)
	for lo := 0; lo < n; lo += batch {
		must(tb, tr.m, func(tx *txn.Tx) error {
			for _, i := range order[lo:min(lo+batch, n)] {
				p, b, err := tx.Alloc(200, 0)
				if err != nil {
					return err
				}
				b[0] = byte(i)
				if err := tr.Put(tx, intKey(i), p); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// BenchmarkRange100 reads the rows of a range of 100 keys in each transaction. It compares reading
// them one by one with reading ahead.
func BenchmarkRange100(b *testing.B) {
	local, remote := openRows(b)
	for _, c := range []struct {
		name  string
		tr    *Tree
		ahead int
	}{{"local/one", local, 0}, {"local/8", local, 8}, {"local/ahead", local, 128}, {"remote/one", remote, 0}, {"remote/8", remote, 8}, {"remote/ahead", remote, 128}} {
		b.Run(c.name, func(b *testing.B) { benchmarkRange(b, c.tr, c.ahead) })
	}
}

func benchmarkRange(b *testing.B, tr *Tree, ahead int) {
	r := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	before, taken := tr.m.Stats(), cputime.Now(b)
	n := 0
	for b.Loop() {
		n++
		lo := r.IntN(benchRows() - 100)
		tx := tr.m.Begin()
		c := tr.Scan(tx, intKey(lo), intKey(lo+100), false)
		if ahead > 0 {
			c.ReadAhead(ahead)
		}
		if err := readRange(tx, c, lo); err != nil {
			b.Fatal(err)
		}
		if err := tx.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
	taken = cputime.Now(b) - taken
	s := tr.m.Stats().Sub(before)
	b.ReportMetric(float64(taken.Nanoseconds())/float64(n), "cpu-ns/op")
	b.ReportMetric(float64(s.RoundTrips)/float64(n), "round-trips/op")
	b.ReportMetric(float64(s.RemoteReads)/float64(n), "READs/op")
}

// readRange reads the rows of a range of 100 keys.
func readRange(tx *txn.Tx, c *Cursor, lo int) error {
	for i := lo; ; i++ {
		_, p, ok, err := c.Next()
		if err != nil || !ok {
			if err == nil && i != lo+100 {
				err = fmt.Errorf("%d rows", i-lo)
			}
			return err
		}
		row, err := tx.Read(p)
		if err != nil {
			return err
		}
		if row[0] != byte(i) {
			return fmt.Errorf("row %d is %d", i, row[0])
		}
	}
}
