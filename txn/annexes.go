package txn

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
)

// ReleaseAnnexLocked tells another machine that an annex is not needed. If the connection has
// ended, the annex is gone already, or will go with it.
func (w *worker) ReleaseAnnexLocked(machine rdma.MachineID, connection uint32, number uint64) {
	body := message.AnnexRequest{Sender: w.m.cfg.ID, Worker: w.id, Connection: connection, Number: number}
	w.releaseLocked(machine, connection, handlerDropAnnex, body.Encode())
}

// handleAnnex makes an annex for a record of another machine.
func (m *machine) handleAnnex(_ context.Context, arg []byte) ([]byte, error) {
	r, err := message.DecodeAnnexRequest(arg)
	if err != nil {
		return nil, err
	}
	if r.Bytes == 0 || r.Bytes > record.AnnexBytesMax || r.Bytes%8 != 0 {
		return nil, fmt.Errorf("%w: an annex of %d bytes, the limit is %d", outcome.ErrTooLarge, r.Bytes, record.AnnexBytesMax)
	}
	number, err := m.MakeAnnex(r.Bytes)
	if err != nil {
		return nil, err
	}
	if !m.withLogOf(r, func(l *participant.Log) { m.replicas.Annexes.Give(number, l) }) {
		m.replicas.Annexes.Drop(number)
		return nil, outcome.ErrLost
	}
	return binary.LittleEndian.AppendUint64(nil, number), nil
}

// handleDropAnnex releases an annex that no record names.
func (m *machine) handleDropAnnex(_ context.Context, arg []byte) ([]byte, error) {
	r, err := message.DecodeAnnexRequest(arg)
	if err != nil {
		return nil, err
	}
	m.withLogOf(r, func(l *participant.Log) {
		if m.replicas.Annexes.IsUnbound(r.Number, l) {
			m.replicas.Annexes.Drop(r.Number)
		}
	})
	return nil, nil
}

// withLogOf locks the worker and calls f with the log that the sender of a request writes to. It
// does not if the connection over which the request came has been replaced.
func (m *machine) withLogOf(r message.AnnexRequest, f func(*participant.Log)) bool {
	if int(r.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[r.Worker]
	w.lock()
	defer w.unlock()
	p := w.peerLocked(r.Sender)
	if p == nil || p.in == nil || p.life != r.Connection || p.broken != nil || w.stopped {
		return false
	}
	f(p.in)
	return true
}

var errNoAnnexes = fmt.Errorf("%w: this machine has no memory for records that do not fit its logs", outcome.ErrTooLarge)

// MakeAnnex makes an annex at this machine.
func (m *machine) MakeAnnex(bytes uint64) (number uint64, err error) {
	if m.replicas.Annex == nil {
		return 0, errNoAnnexes
	}
	return m.replicas.Annexes.Add(bytes)
}

// Annexes returns how many annexes this machine holds. There are none when no transaction is in
// progress.
func (m *machine) Annexes() int { return m.replicas.Annexes.Count() }
