package worker

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
func (w *Worker) ReleaseAnnexLocked(machine rdma.MachineID, connection uint32, number uint64) {
	body := message.AnnexRequest{Sender: w.m.cfg.ID, Worker: w.ID, Connection: connection, Number: number}
	w.releaseLocked(machine, connection, handlerDropAnnex, body.Encode())
}

// handleAnnex makes an annex for a record of another machine.
func (m *Machine) handleAnnex(_ context.Context, arg []byte) ([]byte, error) {
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
	if !m.withLogOf(r, func(l *participant.Log) { m.Replicas.Annexes.Give(number, l) }) {
		m.Replicas.Annexes.Drop(number)
		return nil, outcome.ErrLost
	}
	return binary.LittleEndian.AppendUint64(nil, number), nil
}

// handleDropAnnex releases an annex that no record names.
func (m *Machine) handleDropAnnex(_ context.Context, arg []byte) ([]byte, error) {
	r, err := message.DecodeAnnexRequest(arg)
	if err != nil {
		return nil, err
	}
	m.withLogOf(r, func(l *participant.Log) {
		if m.Replicas.Annexes.IsUnbound(r.Number, l) {
			m.Replicas.Annexes.Drop(r.Number)
		}
	})
	return nil, nil
}

// withLogOf locks the worker and calls f with the log that the sender of a request writes to. If the
// connection over which the request came has been replaced, it does not call f, and returns false.
func (m *Machine) withLogOf(r message.AnnexRequest, f func(*participant.Log)) bool {
	if int(r.Worker) >= len(m.workers) {
		return false
	}
	w := m.workers[r.Worker]
	w.Lock()
	defer w.Unlock()
	p := w.peerLocked(r.Sender)
	if p == nil || p.in == nil || p.life != r.Connection || p.broken != nil || w.stopped {
		return false
	}
	f(p.in)
	return true
}

var errNoAnnexes = fmt.Errorf("%w: this machine has no memory for records that do not fit its logs", outcome.ErrTooLarge)

// MakeAnnex makes an annex at this machine.
func (m *Machine) MakeAnnex(bytes uint64) (number uint64, err error) {
	if m.Replicas.Annex == nil {
		return 0, errNoAnnexes
	}
	return m.Replicas.Annexes.Add(bytes)
}

// Annexes returns how many annexes this machine holds. There are none when no transaction is in
// progress.
func (m *Machine) Annexes() int { return m.Replicas.Annexes.Count() }
