package evidence

import (
	"errors"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/record"
)

// The ledgers of earlier lives tell only about those lives.
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
		w := record.NewWindow(config)
		l.Raise(w.Low + 50)
		l.Name(w.Low + 60)
		logs, firsts = append(logs, log), append(firsts, w.Low)
	}
	logs = append(logs, nvram.NewMemory(64<<10)) // which nobody has written to
	formatted, ledgers, err := openLogs(logs)
	if err != nil || len(formatted) != 2 {
		t.Fatalf("%d logs, %v", len(formatted), err)
	}
	r := recalled{logs: formatted, ledgers: ledgers}
	for _, first := range append(firsts, record.NewWindow(5).Low) {
		for n, want := range map[uint64]bool{0: true, 49: true, 50: false, 60: true, 61: false} {
			id := record.ID{Config: 3, Machine: c.Machine, Worker: c.Worker, Seq: first + n}
			if want = want && first != record.NewWindow(5).Low; r.truncatedLocked(id) != want {
				t.Errorf("truncated(%#x) is %v", id.Seq, !want)
			}
			if id.Worker++; r.truncatedLocked(id) {
				t.Errorf("truncated(%v), of which there is no log", id)
			}
		}
	}
}

// A crash that interrupted the emptying of a log has left its ledger.
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
	r := recalled{ledgers: ledgers, firstConfig: 2}
	if id := (record.ID{Config: 1, Machine: 4, Worker: 1, Seq: 99}); !r.isOlderLocked(id) || !r.truncatedLocked(id) {
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
	r := recoveringIn(t, 6, true)
	if err := r.Recall(nil, []*nvram.Memory{log}, nil, 1); !errors.Is(err, record.ErrFormat) || !strings.Contains(err.Error(), "parked") {
		t.Errorf("parked: %v", err)
	}
}

// Damaged logs of earlier lives are refused, and so are logs of earlier versions unless they are
// empty: their evidence would be missing.
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
