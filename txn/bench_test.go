package txn_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/txn"
)

// BenchmarkCommit changes one object or several at other machines, which keep two replicas of each.
func BenchmarkCommit(b *testing.B) {
	for _, writes := range []int{1, 4} {
		b.Run(fmt.Sprint(writes), func(b *testing.B) {
			r := open(b, txntest.Config{Machines: 3, Replicas: 2, Workers: 1}, 12)
			b.ReportAllocs()
			for b.Loop() {
				must(b, r.Machine(0).Run(ctx, func(t *txn.Tx) error {
					for i := range writes {
						if err := write(t, r.ptrs[3*i+1], 7); err != nil { // a primary at machine 1
							return err
						}
					}
					return nil
				}))
			}
		})
	}
}

// BenchmarkMessage ships a function that does nothing to another machine.
func BenchmarkMessage(b *testing.B) {
	r := open(b, txntest.Config{Machines: 2, Workers: 1}, 2)
	r.Machine(1).Handle(1, func(context.Context, []byte) ([]byte, error) { return nil, nil })
	b.ReportAllocs()
	for b.Loop() {
		_, err := r.Machine(0).Ship(ctx, r.ptrs[1].Addr, 1, nil)
		must(b, err)
	}
}

// BenchmarkValidate commits transactions that only read objects of one other machine: the
// commit's whole work is to validate them, by READs if they are few and by a message otherwise.
func BenchmarkValidate(b *testing.B) {
	for _, reads := range []int{4, 8, 16, 32} {
		b.Run(fmt.Sprint(reads), func(b *testing.B) {
			r := open(b, txntest.Config{Machines: 2, Workers: 1}, 64)
			b.ReportAllocs()
			for b.Loop() {
				t := r.Machine(0).Begin()
				for i := range reads {
					_, err := t.Read(r.ptrs[2*i+1])
					must(b, err)
				}
				must(b, t.Commit(ctx))
			}
		})
	}
}
