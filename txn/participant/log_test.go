package participant

import (
	"math/rand/v2"
	"testing"

	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/record"
)

// "Records in flight" (SOSP'15 section 5.3 step 2): what a member wrote before it
// froze can land after the log was drained. It has no effect, and no reply.
func TestPaper5_3_RecordsAfterTheDrainHaveNoEffect(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	l.in.Freeze(2)
	l.in.Thaw(1)
	if reply := l.write(record.Lock, 1, seq, seq); reply.Kind != 0 || l.header().Locked() || len(l.in.txs) != 0 {
		t.Errorf("a LOCK that came late: reply %v, object %v, %d transactions", reply.Kind, l.header(), len(l.in.txs))
	}
	if l.in.rx.Head() != l.tx.Tail() {
		t.Error("its space is not free")
	}
	if reply := l.write(record.Lock, 2, seq+1, seq); reply.Kind != message.LockReply || !l.header().Locked() {
		t.Errorf("a LOCK of the new configuration: reply %v, object %v", reply.Kind, l.header())
	}
}

// A record is marked void where it lies, also if the ring's end cuts through it.
func TestVoidAtTheEndOfTheRing(t *testing.T) {
	l := newTestLog(t)
	for seq := uint64(1<<record.LifeShift + 1); l.in.rx.Head() < 2*l.in.rx.Bytes(); seq++ {
		l.in.Thaw(0)
		l.write(record.Lock, 1, seq, seq)
		l.write(record.Abort, 1, seq, seq)
		l.in.Thaw(1)
		pos := l.in.rx.Next()
		l.in.tx(seq).held = true // so that what follows stays
		l.write(record.CommitBackup, 1, seq, seq)
		rx, err := record.OpenLog(l.in.ledger.Log())
		must(t, err)
		for {
			raw, ok, err := rx.Poll()
			must(t, err)
			if !ok {
				t.Fatal("the record is gone")
			}
			var r record.Record
			must(t, record.Decode(raw.Payload, &r))
			if r.IsVoid() != (raw.Pos >= pos) || r.ID.Seq != seq {
				t.Fatalf("the record at %d, of %v, is void: %v", raw.Pos, r.ID, r.IsVoid())
			}
			if raw.Pos >= pos {
				break
			}
		}
		must(t, l.in.Release(seq))
	}
}

// Between NEW-CONFIG and NEW-CONFIG-COMMIT a record of the configuration before is
// evidence and nothing else: it locks nothing, and stays.
func TestPaper5_3_RecordsOfAFrozenLogAreEvidence(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	l.in.Freeze(2)
	head := l.in.rx.Head()
	if reply := l.write(record.Lock, 1, seq, seq); reply.Kind != 0 || l.header().Locked() {
		t.Errorf("a LOCK: reply %v, object %v", reply.Kind, l.header())
	}
	if p := l.in.txs[seq]; p == nil || !p.held || l.in.rx.Head() != head {
		t.Error("it is not kept")
	}
}

// What recovery holds stays in the log until recovery releases it, though its
// coordinator, which is settled already, says that it is truncated: should recovery
// begin again it has to be found.
func TestHeldRecordsStay(t *testing.T) {
	const seq = 1<<record.LifeShift + 1
	l := newTestLog(t)
	head := l.in.rx.Head()
	l.write(record.Lock, 1, seq, seq)
	l.in.Freeze(2)
	l.in.Thaw(1)
	l.write(record.Truncate, 2, 0, seq+10)
	if l.in.rx.Head() != head || l.in.txs[seq] == nil {
		t.Errorf("the head has moved by %d bytes over what is held", l.in.rx.Head()-head)
	}
	must(t, l.in.Release(seq))
	if l.in.rx.Head() != l.tx.Tail() || len(l.in.txs) != 0 {
		t.Errorf("%d bytes are not free after the release", l.tx.Tail()-l.in.rx.Head())
	}
}

func TestDeque(t *testing.T) {
	var d deque
	next, first := uint64(0), uint64(0)
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		if d.n == 0 || rng.IntN(100) < 55 {
			d.push(logRecord{seq: next, end: next + 1})
			next++
		} else {
			if r := d.front(); r.seq != first || r.end != first+1 {
				t.Fatalf("front is %v, want %d", r, first)
			}
			d.pop()
			first++
		}
		if d.n != int(next-first) {
			t.Fatalf("%d records, want %d", d.n, next-first)
		}
	}
}
