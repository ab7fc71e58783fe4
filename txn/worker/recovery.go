package worker

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

var _ evidence.Worker = (*Worker)(nil)

// Recovery returns the machine's part in the recovery of transactions.
func (m *Machine) Recovery() *evidence.Recovery { return &m.recovery }

func (m *Machine) initRecovery() {
	cfg := &m.cfg
	m.recovery.Config = evidence.Config{
		Replicas: &m.Replicas, Configuration: &m.config, LogBytes: cfg.LogBytes, Read: m.readRemote,
		OpenParked: cfg.Park, OpenNotes: cfg.Note, Settling: cfg.Settling,
	}
	for _, w := range m.workers {
		m.recovery.Workers = append(m.recovery.Workers, w)
	}
	m.recovery.Init()
}

// Locked implements evidence.Worker.
func (w *Worker) Locked(f func()) {
	w.Lock()
	defer w.Unlock()
	f()
}

// LogsLocked implements evidence.Worker.
func (w *Worker) LogsLocked() (logs []evidence.Log) {
	for _, p := range w.peers {
		if p != nil {
			logs = append(logs, evidence.Log{Log: p.in, From: p.id, Connection: p.life, Memory: p.memory, Key: route.LogKey(p.id, w.ID, p.life)})
		}
	}
	return logs
}

// OwnLocked implements evidence.Worker.
func (w *Worker) OwnLocked() (*participant.OwnLog, *record.Window) { return w.self, &w.window }

// FencePeerLocked implements evidence.Worker.
func (w *Worker) FencePeerLocked(from rdma.MachineID, err error) { w.fenceLocked(w.peers[from], err) }

// SettleLocked implements evidence.Worker.
func (w *Worker) SettleLocked(isWhole bool) {
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		if p.hasLeft { // later WRITEs of the peer find no log, or come too late
			w.m.Replicas.Annexes.DropUnbound(p.in, false)
		}
		p.hasLeft = p.hasLeft && !isWhole
		for _, seq := range p.in.Transactions() {
			if err := p.in.Release(seq); err != nil { // the region of the transaction is lost
				w.fenceLocked(p, err)
				break
			}
		}
		if err := p.in.Free(); err != nil { // frees records that belong to no transaction, such as TRUNCATE
			w.fenceLocked(p, err)
		}
	}
	for seq := w.window.Low; seq < w.boundary; seq++ {
		if !w.window.Finished(seq) {
			w.window.Finish(seq)
		}
	}
	if err := w.self.Settle(&w.m.Replicas, &w.window); err != nil {
		invariant.Violated("own log is as it was written", err, nil)
	}
}
