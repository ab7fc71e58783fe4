package hash

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Wherever Destroy is interrupted, Check visits every object that is left and none
// that is gone, and each pair that Destroy has not come to.
func TestRemains(t *testing.T) {
	for split := range 4 {
		t.Run(fmt.Sprint(split), func(t *testing.T) {
			c := openFarm(t, 1, 1)
			anchor := createTable(t, c.Machine(0), Config{Buckets: 16, Neighbourhood: 4})
			tb := Open(c.Machine(0), anchor)
			for i := range 150 {
				put(t, tb, testKey(i), make([]byte, i%40))
			}
			o := mustOpen(t, tb)
			for range split { // leave a split half way
				if _, err := tb.step(ctx, o, o.first(), true); err != nil {
					t.Fatal(err)
				}
			}
			doomed, last := 0, 151
			for destroyed := false; !destroyed; doomed++ {
				destroyed = destroySome(t, Open(c.Machine(0), anchor), 10+5*doomed)
				if destroyed {
					break
				}
				left, nodes := 0, []region.Ptr(nil)
				err := Open(c.Machine(0), anchor).Check(ctx, Visitor{
					Destroying: true,
					Pair:       func(_, _ []byte) error { left++; return nil },
					Node:       func(p region.Ptr) error { nodes = append(nodes, p); return nil },
				})
				if err != nil {
					t.Fatal(err)
				}
				faults, err := c.Check(context.Background(), slices.Values(nodes))
				if len(faults) > 0 || err != nil || left > last {
					t.Fatalf("after %d pieces, with %d pairs left, %d before: %v, %v", doomed+1, left, last, faults, err)
				}
				last = left
			}
			if doomed < 3 || last == 151 {
				t.Errorf("looked %d times, %d pairs in the end", doomed, last)
			}
		})
	}
}

// destroySome has Destroy free some n pairs, and reports whether that was the end.
func destroySome(t *testing.T, tb *Table, n int) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := tb.Destroy(ctx, func(*txn.Tx, []byte, []byte) error {
		if n--; n < 0 {
			cancel()
		}
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return err == nil
}
