package txn_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/farmsql/farmsql/internal/txntest"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// half reads one of the two numbers of an object, and depends on no more of it.
func half(t *txn.Tx, p region.Ptr, which int) (uint64, error) {
	b, err := t.ReadPart(p, halfOf(which))
	if err != nil {
		return 0, err
	}
	return halfOf(which).in(b), nil
}

// halfOf is one of the two numbers of an object.
type halfOf int

func (h halfOf) in(b []byte) uint64 { return binary.LittleEndian.Uint64(b[8*h:]) }

// Same implements txn.Part.
func (h halfOf) Same(was, now []byte) bool { return h.in(was) == h.in(now) }

func setHalf(p region.Ptr, which int, n uint64) func(*txn.Tx) error {
	return func(t *txn.Tx) error {
		b, err := t.Write(p)
		if err == nil {
			binary.LittleEndian.PutUint64(b[8*which:], n)
		}
		return err
	}
}

// A transaction that has read a part of an object conflicts only with transactions that change that
// part.
func TestReadPart(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		r := open(t, cfg, 3)
		other := r.Machines() - 1
		for _, p := range r.ptrs[:2] {
			for _, changed := range []bool{false, true} {
				for _, readOnly := range []bool{false, true} {
					r.run(other, setHalf(p, 0, 5))
					tx := r.Machine(0).Begin()
					n, err := half(tx, p, 0)
					must(t, err)
					if !readOnly {
						must(t, write(tx, r.ptrs[2], n))
					}
					r.run(other, setHalf(p, 1, 7))
					must(t, tx.Validate())
					if changed {
						r.run(other, setHalf(p, 0, 6))
					}
					r.run(other, setHalf(p, 1, 8))
					if again, err := half(tx, p, 1); err != nil || again != 8 {
						t.Errorf("the other part is %d, %v", again, err)
					}
					err = tx.Commit(ctx)
					if !changed {
						must(t, err)
					} else {
						wantReason(t, err, txn.ReasonAnswer)
					}
				}
			}
		}
		r.quiet()
	})
}

// A part of an object that the transaction has read or written is what it has seen
// or written.
func TestReadPartOfOwn(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2}, 2)
	for _, p := range r.ptrs {
		tx := r.Machine(0).Begin()
		must(t, setHalf(p, 0, 3)(tx))
		if n, err := half(tx, p, 0); err != nil || n != 3 {
			t.Errorf("%d, %v", n, err)
		}
		must(t, tx.Commit(ctx))

		tx = r.Machine(0).Begin()
		_, err := read(tx, p)
		must(t, err)
		_, err = half(tx, p, 0)
		must(t, err)
		r.run(1, setHalf(p, 1, 9))
		wantReason(t, tx.Validate(), txn.ReasonValidate)
		tx.Abort()
	}
	r.quiet()
}

// An object that was read in part can be written, and then conflicts as a whole.
func TestReadPartThenWrite(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2}, 2)
	for _, p := range r.ptrs {
		for between := range 3 {
			tx := r.Machine(0).Begin()
			n, err := half(tx, p, 0)
			must(t, err)
			if between == 1 { // after the part, before the write: nobody has looked since
				r.run(1, setHalf(p, 1, 1))
			}
			must(t, setHalf(p, 0, n+1)(tx))
			if between == 2 {
				r.run(1, setHalf(p, 1, 2))
			}
			switch err := tx.Commit(ctx); between {
			case 0:
				must(t, err)
			case 1:
				wantReason(t, err, txn.ReasonAnswer)
			case 2:
				wantReason(t, err, txn.ReasonLock)
			}
		}
		// Validated in between, the part is one of the version that is written.
		tx := r.Machine(0).Begin()
		_, err := half(tx, p, 0)
		must(t, err)
		r.run(1, setHalf(p, 1, 3))
		must(t, tx.Validate())
		must(t, setHalf(p, 0, 4)(tx))
		must(t, tx.Commit(ctx))

		// A write that was taken back is none.
		tx = r.Machine(0).Begin()
		mark := tx.Mark()
		must(t, setHalf(p, 0, 5)(tx))
		tx.Rollback(mark)
		if n, err := half(tx, p, 0); err != nil || n != 4 {
			t.Errorf("%d, %v", n, err)
		}
		must(t, tx.Commit(ctx))
	}
	r.quiet()
}

// A part of an object that has been freed, or of another in its place, is another
// answer.
func TestReadPartOfFreed(t *testing.T) {
	r := open(t, txntest.Config{Machines: 2, Replicas: 2}, 0)
	for machine := range 2 {
		p := r.make(machine, 1)
		before, after := r.Machine(0).Begin(), r.Machine(0).Begin()
		_, err := half(before, p, 0)
		must(t, err)
		r.run(1, func(t *txn.Tx) error { return t.Free(p) })
		wantReason(t, before.Validate(), txn.ReasonAnswer)
		before.Abort()
		_, err = half(after, p, 0)
		wantReason(t, err, txn.ReasonFreed)
		_, err = half(after, p, 0)
		wantReason(t, err, txn.ReasonFreed)
		after.Abort()
	}
}

// presence is a Question that asks whether an object is there.
type presence struct{ source [1]txn.Source }

func (q *presence) Sources() []txn.Source { return q.source[:] }

func (q *presence) Ask(f *txn.Fresh) (bool, error) {
	_, v, err := f.Peek(q.source[0].Ptr)
	if errors.Is(err, region.ErrFreed) {
		return false, nil
	}
	if err == nil {
		q.source[0].Version = v
	}
	return true, err
}

// slotLocks are the ways in which a transaction comes to lock the slot of an object
// that was freed: it makes another there, or writes what somebody else has made there,
// by itself or when an index prepares.
var slotLocks = []struct {
	name   string
	remade bool
	lock   func(tx *txn.Tx, near region.Addr, there *region.Ptr) error
}{
	{"alloc", false, func(tx *txn.Tx, near region.Addr, there *region.Ptr) (err error) {
		*there, _, err = tx.Alloc(100, near)
		return err
	}},
	{"prepared alloc", false, func(tx *txn.Tx, near region.Addr, there *region.Ptr) error {
		tx.Defer(scripted(func(l *txn.Late) (err error) {
			*there, _, err = l.Alloc(100, near)
			return err
		}))
		return nil
	}},
	{"write", true, func(tx *txn.Tx, _ region.Addr, there *region.Ptr) error {
		_, err := tx.Write(*there)
		return err
	}},
	{"prepared write", true, func(tx *txn.Tx, _ region.Addr, there *region.Ptr) error {
		tx.Defer(scripted(func(l *txn.Late) error {
			_, err := l.Write(*there)
			return err
		}))
		return nil
	}},
}

// An object of which a part was read, or a question asked, is freed, and the
// transaction itself locks its slot: that is another answer. To wait until the slot is
// unlocked were to wait for itself.
func TestSlotOfAnAnswerLockedByItself(t *testing.T) {
	eachShape(t, func(t *testing.T, cfg txntest.Config) {
		for _, way := range slotLocks {
			for _, isPart := range []bool{true, false} {
				r := open(t, cfg, 0)
				owner := r.Machines() - 1
				p := r.make(owner, 1)
				tx := r.Machine(0).Begin()
				if isPart {
					_, err := half(tx, p, 0)
					must(t, err)
				} else {
					_, v, err := tx.Peek(p)
					must(t, err)
					tx.Expect(&presence{[1]txn.Source{{Ptr: p, Version: v}}})
				}
				r.run(owner, func(t *txn.Tx) error { return t.Free(p) })
				if _, err := r.Machine(0).Read(p, make([]byte, p.Capacity())); !errors.Is(err, region.ErrFreed) {
					t.Fatal(err)
				}
				var there region.Ptr
				if way.remade {
					r.run(owner, func(t *txn.Tx) (err error) {
						there, _, err = t.Alloc(100, p.Addr)
						return err
					})
					r.ptrs = append(r.ptrs, there)
				}
				must(t, way.lock(tx, p.Addr, &there))
				err := tx.Commit(ctx)
				if there.Addr != p.Addr || there == p {
					t.Fatalf("%s: %v is not another object in the slot of %v", way.name, there, p)
				}
				wantReason(t, err, txn.ReasonAnswer)
				r.quiet()
			}
		}
	})
}
