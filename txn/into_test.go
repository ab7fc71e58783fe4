package txn_test

import (
	"encoding/binary"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// readInto reads an object's number by ReadInto.
func readInto(t *txn.Tx, p region.Ptr, room *[]byte) (uint64, error) {
	b, err := t.ReadInto(p, room)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// An object read by ReadInto is in the read set: the transaction conflicts with changes of it, and a later
// Read sees the same object, or is a conflict.
func TestReadInto(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 3)
		other := r.Machines() - 1
		var room []byte
		for _, p := range r.ptrs[:2] {
			for _, changed := range []bool{false, true} {
				r.run(other, setHalf(p, 0, 5))
				tx := r.Machine(0).Begin()
				n, err := readInto(tx, p, &room)
				if must(t, err); n != 5 {
					t.Errorf("the object has %d", n)
				}
				must(t, write(tx, r.ptrs[2], n))
				if changed {
					r.run(other, setHalf(p, 0, 6))
				}
				again, err := half(tx, p, 0)
				if !changed {
					if must(t, err); again != 5 {
						t.Errorf("read again it has %d", again)
					}
					must(t, tx.Commit(ctx))
					continue
				}
				wantReason(t, err, txn.ReasonValidate)
				tx.Abort()
			}
		}
		r.quiet()
	})
}

// ReadInto validates objects that are not read again, and returns the transaction's own writes. After an
// end it fails.
func TestReadIntoOfOwn(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 2)
		other := r.Machines() - 1
		var room []byte
		tx := r.Machine(0).Begin()
		must(t, setHalf(r.ptrs[0], 0, 7)(tx))
		if n, err := readInto(tx, r.ptrs[0], &room); err != nil || n != 7 {
			t.Errorf("the own write is %d, %v", n, err)
		}
		_, err := readInto(tx, r.ptrs[1], &room)
		must(t, err)
		r.run(other, setHalf(r.ptrs[1], 0, 8))
		wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
		if _, err := readInto(tx, r.ptrs[1], &room); err == nil {
			t.Error("an ended transaction reads")
		}
		r.quiet()
	})
}
