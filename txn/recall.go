package txn

import (
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
)

// recalled are the logs of this machine's earlier lives. Nobody writes to them any
// more; they are evidence (see evidence.go) until a recovery is over.
type recalled struct {
	logs []*nvram.Memory
	// ledgers are theirs, by who wrote to them: of several lives, if recoveries
	// were interrupted.
	ledgers map[coordinatorID][]*ledger
	// before is the first configuration of this life.
	before uint32
}

// Recall gives the machine the logs of its earlier lives, before its first Freeze,
// or takes them back: without any, it comes as a machine without memory. Their
// memory can go once a recovery is over. It fails if one is no log, or has
// no ledger: what it says would be missing from the evidence.
func (m *Machine) Recall(logs []*nvram.Memory) error {
	m.recovery.mu.Lock()
	m.recalled.drop(m)
	m.recovery.mu.Unlock()
	formatted, ledgers, err := openLogs(logs)
	if err != nil {
		return err
	}
	for i, log := range formatted {
		if err := m.cfg.NIC.Register(recalledKey(i), log); err != nil {
			return fmt.Errorf("txn: a log of an earlier life: %w", err)
		}
	}
	m.recovery.mu.Lock()
	defer m.recovery.mu.Unlock()
	m.recalled.logs, m.recalled.ledgers = formatted, ledgers
	return nil
}

// openLogs opens logs of earlier lives. In some there was never a record. One that was
// being emptied for a new connection still has its ledger.
func openLogs(logs []*nvram.Memory) (formatted []*nvram.Memory, ledgers map[coordinatorID][]*ledger, err error) {
	ledgers = make(map[coordinatorID][]*ledger)
	for _, log := range logs {
		rx, err := OpenLog(log)
		if errors.Is(err, errWithoutLedger) {
			return nil, nil, err
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errDamagedLog, err)
		}
		l, from := openLedger(log)
		switch {
		case l != nil:
			ledgers[from] = append(ledgers[from], l)
		case rx != nil:
			return nil, nil, fmt.Errorf("%w: it does not say who writes to it", errDamagedLog)
		}
		if rx != nil {
			formatted = append(formatted, log)
		}
	}
	return formatted, ledgers, nil
}

var errDamagedLog = errors.New("txn: a log of an earlier life is damaged (without its memory the machine joins as a new one)")

// gather takes note of all records, also of transactions that a later one says are
// truncated: it may have landed without being processed, so that a backup has
// not applied them yet. Recovering them once more changes nothing.
func (l *recalled) gather(r *recoveryState) {
	if l.before == 0 {
		l.before = r.m.config.Load()
	}
	for i, log := range l.logs {
		r.scan(log, recalledKey(i), ^uint64(0), func(*Record) bool { return true })
	}
}

// has says whether a transaction is of an earlier life of this machine.
func (l *recalled) has(id ID) bool { return len(l.ledgers) > 0 && id.Config < l.before }

// truncated says whether a transaction has been truncated in an earlier life.
func (l *recalled) truncated(id ID) bool {
	if sabotage.Ledger.Skipped() {
		return false
	}
	for _, b := range l.ledgers[coordinatorID{id.Machine, id.Worker}] {
		if b.has(id.Seq) {
			return true
		}
	}
	return false
}

// drop forgets the logs.
func (l *recalled) drop(m *Machine) {
	for i := range l.logs {
		m.cfg.NIC.Deregister(recalledKey(i))
	}
	l.logs, l.ledgers = nil, nil
}
