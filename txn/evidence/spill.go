package evidence

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

// A spill is memory for records outside of the ordinary logs: one log after the other, added as
// needed. There is one for parked transactions, and one for the notes that do not fit the machine's
// own logs.
type spill struct {
	r *Recovery
	// open makes the n'th memory for a configuration, and key names it to peers, which READ it.
	open func(in cluster.ID, n int, bytes int64) (*nvram.Memory, error)
	key  func(in cluster.ID, n int) rdma.Key
	logs []spilled
}

// A spilled is one log of a spill.
type spilled struct {
	in     cluster.ID
	memory *nvram.Memory
	key    rdma.Key
	rx     *ring.Receiver
	log    *ring.Sender
}

// append appends a record that belongs to the given configuration, and returns its location.
func (s *spill) append(in cluster.ID, b []byte) (Extent, error) {
	if len(s.logs) == 0 || ring.Space(len(b)) > s.logs[len(s.logs)-1].log.Available() {
		l, err := s.begin(in, len(b))
		if err != nil {
			return Extent{}, err
		}
		s.logs = append(s.logs, l)
	}
	l := s.logs[len(s.logs)-1]
	pos := l.log.Tail()
	if _, _, err := l.log.Append(rdma.Unsignalled, b); err != nil {
		return Extent{}, err
	}
	return extentOf(l.rx, l.key, ring.Record{Pos: pos, Payload: b}), nil
}

func (s *spill) appendAll(in cluster.ID, records [][]byte) error {
	for _, b := range records {
		if _, err := s.append(in, b); err != nil {
			return err
		}
	}
	return nil
}

// spillBytes is the size of the first log of a spill. Each further log is twice as large, up to the
// size of ordinary logs. A machine whose memory is full can still store a few records in its
// reserve, but not a whole log.
const spillBytes = 64 << 10

// begin adds a log with room for a record of n bytes.
func (s *spill) begin(in cluster.ID, n int) (l spilled, err error) {
	count := 0 // logs of the same configuration
	for _, other := range s.logs {
		if other.in == in {
			count++
		}
	}
	bytes := max(min(int64(s.r.LogBytes), spillBytes<<min(count, 16)), record.LogBytesFor(n))
	l.in, l.key = in, s.key(in, count)
	if l.memory, err = s.open(in, count, bytes); err != nil {
		return l, err
	}
	// Write the ledger first: a log without one counts as damaged.
	record.NewLedger(l.memory, record.Coordinator{Machine: s.r.Replicas.ID, Worker: 0})
	if l.rx, err = record.CreateLog(l.memory, s.r.Replicas.Clock.Uint64()); err != nil {
		return l, err
	}
	state, err := l.rx.State()
	if err != nil {
		return l, err
	}
	l.log = ring.NewLocalSender(state, l.memory, 0)
	return l, s.r.Replicas.NIC.Register(l.key, l.memory)
}

func (s *spill) memory() (all []*nvram.Memory) {
	for i := range s.logs {
		all = append(all, s.logs[i].memory)
	}
	return all
}

// noteLocked appends a note of the given configuration's recovery to the machine's own log, or, if
// the log is full, to the spill. A recovery may need more room than a log has: the log may hold
// records that can be freed only after this recovery, and a machine notes evidence of other machines
// about all transactions in progress.
func (r *Recovery) noteLocked(in cluster.ID, rec *record.Record) (Extent, error) {
	rec.Truncated = []uint64{uint64(in)}
	b := record.Append(make([]byte, 0, record.Bytes(rec)), rec)
	at, err := r.noteInLogLocked(uint16(int(rec.ID.Worker)%len(r.Workers)), b)
	if (errors.Is(err, ring.ErrFull) || errors.Is(err, ring.ErrTooLarge)) && r.OpenNotes != nil {
		if at, err = r.notes.append(in, b); err != nil {
			err = fmt.Errorf("%w, and there is no memory beside the own log: %w", ring.ErrFull, err)
		}
	}
	if err != nil {
		return Extent{}, fmt.Errorf("txn: note %v of %v: %w", rec.Kind, rec.ID, err)
	}
	return at, nil
}

// noteInLogLocked appends a note to the own log of the worker with number id.
func (r *Recovery) noteInLogLocked(id uint16, b []byte) (at Extent, err error) {
	w := r.Workers[id]
	w.Locked(func() {
		own, _ := w.OwnLocked()
		pos := own.Log.Tail()
		if err = own.Note(b); err == nil {
			at = extentOf(own.Receiver, route.LogKey(r.Replicas.ID, id, 0), ring.Record{Pos: pos, Payload: b})
		}
	})
	return at, err
}

// gatherNotesLocked finds the notes in the spill.
func (r *Recovery) gatherNotesLocked() {
	if sabotage.SpilledNotes.Skipped() {
		return
	}
	for i := range r.notes.logs {
		l := &r.notes.logs[i]
		r.scanLocked(l.memory, l.key, ^uint64(0), func(rec *record.Record, _ uint64) bool { return r.noteCountsLocked(rec) })
	}
}

// forget drops the spill's logs, so that peers can no longer read them.
func (s *spill) forget() {
	for i := range s.logs {
		s.r.Replicas.NIC.Deregister(s.logs[i].key)
	}
	s.logs = slices.Delete(s.logs, 0, len(s.logs))
}
