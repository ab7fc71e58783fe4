package txn

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/record"
)

// A ledger says of a life's transactions what a set of the truncated ones says,
// also when it is opened again.
func TestLedger(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	log := nvram.NewMemory(64 << 10)
	c := record.Coordinator{Machine: 7, Worker: 3}
	l := record.NewLedger(log, c)
	for life := range uint32(20) {
		w := newWindow(2 + 3*life)
		first := w.low
		for range 400 {
			for range rng.IntN(9) {
				w.begin()
			}
			for range rng.IntN(8) {
				seq := w.low + uint64(rng.IntN(int(w.next-w.low)+1))
				if seq == w.next || w.finished(seq) || seq-w.low >= record.LedgerNames {
					continue
				}
				w.finish(seq)
				if l.Raise(w.low); !l.Passed(seq) {
					if !l.CanName(seq) {
						t.Fatalf("there is no place for %d, the bound is %d", seq, w.low)
					}
					l.Name(seq)
				}
			}
		}
		opened, from := record.OpenLedger(log)
		if opened == nil || from != c {
			t.Fatalf("the ledger is of %v: %v", from, opened)
		}
		for _, b := range []*record.Ledger{l, opened} {
			for seq := first; seq < w.next+record.LedgerNames; seq++ {
				if b.Has(seq) != w.finished(seq) {
					t.Fatalf("life %d: has(%d) is %v, the bound is %d", life, seq-first, b.Has(seq), w.low-first)
				}
			}
			for _, other := range []uint64{first - 1<<record.LifeShift, first + 1<<record.LifeShift} {
				if b.Passed(other) {
					t.Fatalf("life %d's bound is about %#x", life, other)
				}
			}
		}
	}
}

// What nobody has named, and what is too far ahead for that, is not truncated.
func TestLedgerHasPlaces(t *testing.T) {
	l := record.NewLedger(nvram.NewMemory(8<<10), record.Coordinator{})
	l.Raise(100)
	for seq, want := range map[uint64]bool{100: true, 99 + record.LedgerNames: true, 100 + record.LedgerNames: false, 99: false} {
		if l.CanName(seq) != want {
			t.Errorf("canName(%d) is %v", seq, !want)
		}
	}
	l.Name(150)
	for seq, want := range map[uint64]bool{99: true, 100: false, 150: true, 150 + record.LedgerNames: false} {
		if l.Has(seq) != want {
			t.Errorf("has(%d) is %v", seq, !want)
		}
	}
}

// A worker names transactions for which ledgers have a place; the others wait until
// the bound has come nearer.
func TestNamedWhereThereIsAPlace(t *testing.T) {
	log := nvram.NewMemory(64 << 10)
	rx, err := record.CreateLog(log, 1)
	if err != nil {
		t.Fatal(err)
	}
	state, err := rx.State()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{log: ring.NewLocalSender(state, log, 0)}
	w := &worker{window: newWindow(1)}
	stuck := w.window.begin()
	for range record.LedgerNames + 9 {
		seq := w.window.begin()
		w.window.finish(seq)
		p.truncated = append(p.truncated, seq)
		p.log.Reserve(truncateReserve)
	}
	named := 0
	for w.hasNearLocked(p) {
		n := len(w.takeTruncatedLocked(p))
		if n == 0 {
			t.Fatal("nothing is named")
		}
		named += n
	}
	if named != record.LedgerNames-1 || len(p.truncated) != 0 || len(p.far) != 10 {
		t.Errorf("%d named, %d wait, %d are far", named, len(p.truncated), len(p.far))
	}
	w.window.finish(stuck)
	if len(w.takeTruncatedLocked(p)) != 0 || len(p.truncated)+len(p.far) != 0 || p.log.Reserved() != 0 {
		t.Errorf("the bound has passed all, and %d wait, %d are far, with %d bytes", len(p.truncated), len(p.far), p.log.Reserved())
	}
}

// What earlier lives' ledgers say is about those lives.
func TestRecalledLedgers(t *testing.T) {
	c := record.Coordinator{Machine: 4, Worker: 1}
	var logs []*nvram.Memory
	var firsts []uint64
	for _, config := range []uint32{3, 6} {
		log := nvram.NewMemory(64 << 10)
		l := record.NewLedger(log, c)
		if _, err := record.CreateLog(log, uint64(config)); err != nil {
			t.Fatal(err)
		}
		w := newWindow(config)
		l.Raise(w.low + 50)
		l.Name(w.low + 60)
		logs, firsts = append(logs, log), append(firsts, w.low)
	}
	logs = append(logs, nvram.NewMemory(64<<10)) // which nobody has written to
	formatted, ledgers, err := openLogs(logs)
	if err != nil || len(formatted) != 2 {
		t.Fatalf("%d logs, %v", len(formatted), err)
	}
	r := recalled{logs: formatted, ledgers: ledgers}
	for _, first := range append(firsts, newWindow(5).low) {
		for n, want := range map[uint64]bool{0: true, 49: true, 50: false, 60: true, 61: false} {
			id := record.ID{Config: 3, Machine: c.Machine, Worker: c.Worker, Seq: first + n}
			if want = want && first != newWindow(5).low; r.truncatedLocked(id) != want {
				t.Errorf("truncated(%#x) is %v", id.Seq, !want)
			}
			if id.Worker++; r.truncatedLocked(id) {
				t.Errorf("truncated(%v), of which there is no log", id)
			}
		}
	}
}

// What interrupted the emptying of a log has left its ledger.
func TestLedgerOutlivesItsRing(t *testing.T) {
	log, c := nvram.NewMemory(64<<10), record.Coordinator{Machine: 4, Worker: 1}
	l := record.NewLedger(log, c)
	if _, err := record.CreateLog(log, 1); err != nil {
		t.Fatal(err)
	}
	l.Raise(100)
	log.Store(0, 0) // as ring.Receiver.Reset begins
	formatted, ledgers, err := openLogs([]*nvram.Memory{log})
	if err != nil || len(formatted) != 0 {
		t.Fatalf("%d logs: %v", len(formatted), err)
	}
	r := recalled{ledgers: ledgers, before: 2}
	if id := (record.ID{Config: 1, Machine: 4, Worker: 1, Seq: 99}); !r.hasLocked(id) || !r.truncatedLocked(id) {
		t.Errorf("%v is not truncated", id)
	}
}

// A log of an earlier life in which a newer program has written is refused before anything of it is
// given up, and so are parked transactions: what they say could not be read.
func TestLogsOfANewerProgramAreRefused(t *testing.T) {
	log := nvram.NewMemory(64 << 10)
	record.NewLedger(log, record.Coordinator{Machine: 4, Worker: 1})
	rx, err := record.CreateLog(log, 1)
	if err != nil {
		t.Fatal(err)
	}
	state, err := rx.State()
	if err != nil {
		t.Fatal(err)
	}
	tx := ring.NewLocalSender(state, log, 0)
	b := record.Append(nil, &record.Record{Kind: record.Abort, ID: record.ID{Config: 2, Machine: 4, Worker: 1, Seq: 3}})
	write := func() {
		t.Helper()
		if _, _, err := tx.Append(1, b); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if _, _, err := openLogs([]*nvram.Memory{log}); err != nil {
		t.Fatal(err)
	}
	b[7] |= 1 << 4 // format 1
	write()
	_, _, err = openLogs([]*nvram.Memory{log})
	if !errors.Is(err, record.ErrFormat) || !strings.Contains(err.Error(), "machine 4, worker 1 wrote") || !strings.Contains(err.Error(), "format 1") || !strings.Contains(err.Error(), "newer farmsql") {
		t.Error(err)
	}
	m := recoveringIn(t, 6, true)
	m.initReplicas()
	if err := m.Recall(nil, []*nvram.Memory{log}, nil, 1); !errors.Is(err, record.ErrFormat) || !strings.Contains(err.Error(), "parked") {
		t.Errorf("parked: %v", err)
	}
}

// Damaged logs of earlier lives are refused, and those of earlier versions unless they
// are empty: what they say would be missing.
func TestDamagedLogsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(log *nvram.Memory) error
		want   func(error) bool
	}{
		"ring": {func(log *nvram.Memory) error { log.Store(8, 12345); return nil }, func(err error) bool { return errors.Is(err, ring.ErrCorrupt) && errors.Is(err, errDamagedLog) }},
		"ledger": {func(log *nvram.Memory) error { log.Store(record.RingBytes(log), 9); return nil },
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "who writes to it") }},
		"empty, of an earlier version": {func(log *nvram.Memory) error {
			_, err := ring.Create(log, 0, log.Size(), 2)
			return err
		}, func(err error) bool { return err == nil }},
		"of an earlier version": {func(log *nvram.Memory) error {
			rx, err := ring.Create(log, 0, log.Size(), 2)
			if err != nil {
				return err
			}
			state, err := rx.State()
			if err != nil {
				return err
			}
			_, _, err = ring.NewLocalSender(state, log, 0).Append(1, []byte("left over"))
			return err
		}, func(err error) bool { return errors.Is(err, record.ErrWithoutLedger) && !errors.Is(err, errDamagedLog) }},
	} {
		log := nvram.NewMemory(64 << 10)
		record.NewLedger(log, record.Coordinator{Machine: 1, Worker: 0})
		if _, err := record.CreateLog(log, 1); err != nil {
			t.Fatal(err)
		}
		if err := c.damage(log); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openLogs([]*nvram.Memory{log}); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
