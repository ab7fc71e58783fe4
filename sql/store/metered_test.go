package store

import (
	"io"
	"math"
	"strings"
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// What nodes of a subquery keep is given back when its rows are closed, also in a subquery of the subquery, unless that is
// executed only once: then it is counted until the statement ends.
func TestMeteredSubquery(t *testing.T) {
	ctx := gms.NewEmptyContext()
	h := &Holding{memory: &Memory{Limit: func() int64 { return math.MaxInt64 }, Live: func() int64 { return 0 }}}
	rows := func() gms.RowIter {
		all := make([]gms.Row, 100)
		for i := range all {
			all[i] = gms.Row{strings.Repeat("x", 1000)}
		}
		return gms.RowsToRowIter(all...)
	}
	read := func(iter gms.RowIter) {
		for {
			if _, err := iter.Next(ctx); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if err := iter.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	keep := func() { read(h.Metered(rows(), Metering{Most: math.MaxInt64, Stays: true})) } // as a hash table does
	subquery := func(stays bool, inner func()) {
		iter, err := h.MeteredSubquery(stays, func() (gms.RowIter, error) {
			keep()
			inner()
			return rows(), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		read(iter)
	}
	nothing := func() {}
	keep()
	around := h.bytes.Load()
	if around < 90_000 {
		t.Fatalf("%d bytes are kept", around)
	}
	for range 3 {
		if subquery(false, func() { subquery(false, nothing) }); h.bytes.Load() != around {
			t.Fatalf("%d bytes are held after the subquery, %d before", h.bytes.Load(), around)
		}
	}
	subquery(false, func() { subquery(true, nothing) })
	if stays := h.bytes.Load() - around; stays < 180_000 {
		t.Errorf("%d bytes of a subquery that stays are counted", stays)
	}
	if _, err := h.MeteredSubquery(false, func() (gms.RowIter, error) { keep(); return nil, io.ErrUnexpectedEOF }); err != io.ErrUnexpectedEOF {
		t.Errorf("a subquery that cannot be built: %v", err)
	}
	if h.settle(0); h.bytes.Load() != 0 || h.staying.Load() != 0 {
		t.Errorf("%d and %d bytes at the end", h.bytes.Load(), h.staying.Load())
	}
}
