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

// An object that is read by ReadInto twice, and changes in between, is a conflict at the commit and at a
// validation, whoever validates: what was read since the last validation, or all.
func TestReadIntoTwice(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 3)
		other := r.Machines() - 1
		var room []byte
		for name, end := range map[string]func(*txn.Tx) error{
			"commit": func(tx *txn.Tx) error { return tx.Commit(ctx) }, "validate": (*txn.Tx).Validate, "recent": (*txn.Tx).ValidateRecent,
		} {
			for _, writes := range []bool{false, true} {
				tx := r.Machine(0).Begin()
				_, err := readInto(tx, r.ptrs[0], &room)
				must(t, err)
				if writes {
					must(t, write(tx, r.ptrs[1], 1))
				}
				r.run(other, setHalf(r.ptrs[0], 0, 9))
				_, err = readInto(tx, r.ptrs[0], &room)
				must(t, err)
				if err := end(tx); err == nil {
					t.Errorf("%s, writing: %v: no conflict", name, writes)
				} else {
					wantReason(t, err, txn.ReasonValidate)
				}
				tx.Abort()
			}
		}
		r.quiet()
	})
}

// A transaction may write and free what ReadInto has read, and conflicts with changes made in between.
func TestReadIntoThenWrite(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 4)
		other := r.Machines() - 1
		var room []byte
		change := map[bool]func(*txn.Tx, region.Ptr) error{
			false: func(tx *txn.Tx, p region.Ptr) error { return setHalf(p, 0, 3)(tx) },
			true:  func(tx *txn.Tx, p region.Ptr) error { return tx.Free(p) },
		}
		for i, frees := range []bool{false, false, true, true} {
			p, changed := r.ptrs[i], i%2 == 0
			tx := r.Machine(0).Begin()
			_, err := readInto(tx, p, &room)
			must(t, err)
			if changed {
				r.run(other, setHalf(p, 0, 4))
			}
			err = change[frees](tx, p)
			if err == nil {
				err = tx.Commit(ctx)
			}
			if changed {
				wantReason(t, err, txn.ReasonValidate)
				tx.Abort()
				continue
			}
			must(t, err)
		}
		r.ptrs = r.ptrs[:3] // the last is free
		r.quiet()
	})
}

// A scan of many objects conflicts with the change of any one of them.
func TestReadIntoOfMany(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 40)
		other := r.Machines() - 1
		var room []byte
		for _, changed := range []int{-1, 0, 17, 39} {
			tx := r.Machine(0).Begin()
			for i, p := range r.ptrs {
				_, err := readInto(tx, p, &room)
				must(t, err)
				if i == 20 {
					must(t, tx.Validate())
				}
			}
			if changed >= 0 {
				r.run(other, setHalf(r.ptrs[changed], 0, 11))
				wantReason(t, tx.Commit(ctx), txn.ReasonValidate)
				continue
			}
			must(t, tx.Commit(ctx))
		}
		r.quiet()
	})
}

// What a transaction has read any number of times is kept a bounded number of times, and is a conflict if it has changed,
// also for a validation of what was read since the last.
func TestReadIntoAgainAndAgain(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 40)
		var room []byte
		for name, end := range map[string]func(*txn.Tx) error{
			"commit": func(tx *txn.Tx) error { return tx.Commit(ctx) }, "validate": (*txn.Tx).Validate, "recent": (*txn.Tx).ValidateRecent,
		} {
			tx := r.Machine(0).Begin()
			readAll := func(times int) {
				for range times {
					for _, p := range r.ptrs {
						_, err := readInto(tx, p, &room)
						must(t, err)
					}
				}
			}
			readAll(10)
			must(t, tx.Validate())
			held := tx.Held()
			readAll(1700)
			if most := held + 1<<20; tx.Held() > most {
				t.Errorf("%s: %d bytes are held, after %d", name, tx.Held(), held)
			}
			r.run(r.Machines()-1, setHalf(r.ptrs[7], 0, uint64(len(name))))
			wantReason(t, end(tx), txn.ReasonValidate)
			tx.Abort()
		}
		r.quiet()
	})
}
