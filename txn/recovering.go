package txn

import (
	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/txn/evidence"
	"github.com/farmsql/farmsql/txn/participant"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
)

var _ evidence.Worker = (*worker)(nil)

// Recovery returns the machine's part in the recovery of transactions.
func (m *machine) Recovery() *evidence.Recovery { return &m.recovery }

func (m *machine) initRecovery() {
	cfg := &m.cfg
	m.recovery.Config = evidence.Config{
		Replicas: &m.replicas, Configuration: &m.config, LogBytes: cfg.LogBytes, Read: m.readRemote,
		OpenParked: cfg.Park, OpenNotes: cfg.Note, Settling: cfg.Settling,
	}
	for _, w := range m.workers {
		m.recovery.Workers = append(m.recovery.Workers, w)
	}
	m.recovery.Init()
}

// Locked implements evidence.Worker.
func (w *worker) Locked(f func()) {
	w.lock()
	defer w.unlock()
	f()
}

// LogsLocked implements evidence.Worker.
func (w *worker) LogsLocked() (logs []evidence.Log) {
	for _, p := range w.peers {
		if p != nil {
			logs = append(logs, evidence.Log{Log: p.in, From: p.id, Connection: p.life, Memory: p.memory, Key: route.LogKey(p.id, w.id, p.life)})
		}
	}
	return logs
}

// OwnLocked implements evidence.Worker.
func (w *worker) OwnLocked() (*participant.OwnLog, *record.Window) { return w.self, &w.window }

// FencePeerLocked implements evidence.Worker.
func (w *worker) FencePeerLocked(from rdma.MachineID, err error) { w.fenceLocked(w.peers[from], err) }

// SettleLocked implements evidence.Worker.
func (w *worker) SettleLocked(isWhole bool) {
	for _, p := range w.peers {
		if p == nil {
			continue
		}
		if p.hasLeft { // later WRITEs of the peer find no log, or come too late
			w.m.replicas.Annexes.DropUnbound(p.in, false)
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
	if err := w.self.Settle(&w.m.replicas, &w.window); err != nil {
		invariant.Violated("own log is as it was written", err, nil)
	}
}
