package record

import (
	"cmp"
	"errors"

	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma/ring"
)

// OpenEmptyLog makes a log, or opens the log that is there, which must be empty: records of an
// earlier life are for recovery to process.
func OpenEmptyLog(m *nvram.Memory, nonce uint64) (*ring.Receiver, error) {
	rx, err := OpenLog(m)
	if err != nil {
		return nil, err
	}
	if rx == nil {
		return CreateLog(m, nonce)
	}
	_, ok, err := rx.Poll()
	if err == nil && ok {
		err = errors.New("txn: log holds records of an earlier life that have not been recovered")
	}
	return rx, err
}

// CreateLog makes m an empty log. nonce is random.
func CreateLog(m *nvram.Memory, nonce uint64) (*ring.Receiver, error) {
	return ring.Create(m, 0, RingBytes(m), nonce)
}

// LogBytesFor returns how much memory a log needs that has room for one record of n bytes.
func LogBytesFor(n int) int64 {
	const page = 4096
	return (int64(ring.MemoryFor(n)) + ledgerBytes + page - 1) &^ (page - 1)
}

// OpenLog opens the log in m. It returns nil if m has never held a log, or holds an empty one from
// a program version whose logs had no ledgers.
func OpenLog(m *nvram.Memory) (*ring.Receiver, error) {
	rx, err := ring.Open(m, 0, RingBytes(m))
	if errors.Is(err, ring.ErrUnformatted) {
		return nil, nil
	}
	if err != nil {
		return openWithoutLedger(m, err)
	}
	return rx, nil
}

// openWithoutLedger handles a log without a ledger, as earlier program versions wrote it. An empty
// log counts as no log; for a log with records it returns ErrWithoutLedger. If m does not hold a log
// at all, it returns errNoLog.
func openWithoutLedger(m *nvram.Memory, errNoLog error) (*ring.Receiver, error) {
	rx, err := ring.Open(m, 0, m.Size())
	if err != nil {
		return nil, errNoLog
	}
	if _, ok, err := rx.Poll(); err != nil || ok {
		return nil, cmp.Or(err, ErrWithoutLedger)
	}
	return nil, nil
}

var ErrWithoutLedger = errors.New("txn: a log of an earlier version holds records: start the instance with that version, and stop it with SIGTERM")
