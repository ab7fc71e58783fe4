package worker

import (
	"testing"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/record"
)

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
	w := &Worker{window: record.NewWindow(1)}
	stuck := w.window.Begin()
	for range record.LedgerNames + 9 {
		seq := w.window.Begin()
		w.window.Finish(seq)
		p.truncated = append(p.truncated, seq)
		p.log.Reserve(TruncateReserve)
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
	w.window.Finish(stuck)
	if len(w.takeTruncatedLocked(p)) != 0 || len(p.truncated)+len(p.far) != 0 || p.log.Reserved() != 0 {
		t.Errorf("the bound has passed all, and %d wait, %d are far, with %d bytes", len(p.truncated), len(p.far), p.log.Reserved())
	}
}
