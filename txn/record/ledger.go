package record

import (
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A ledger says, for as long as a log is there, which of its writer's transactions
// have been truncated. Once their records are freed nothing else does, and a region
// that cannot tell "truncated" from "never came" would vote for the abort of a
// transaction that has been reported committed: after a power cut that has taken the
// memory of the region's other replicas, for instance.
//
// It is the last page of the log's memory, and says what it says in single words, so
// that it is true at every moment:
//
//	| writer | low bound | drained | ...  64 B | named transaction | ... |
//
// Transactions below the low bound, of the same life of their coordinator, are
// truncated, and so are those that are named. One at or above the bound has one place
// where it can be named; who is so far above it that the place may be taken has to
// wait for the bound (txn/truncate.go).
//
// The third word says of which configuration the log was drained last, and up to which
// position: | configuration 32 | position 32 |. What is behind it and not of a later
// configuration came too late, and counts for nothing: recovery has decided without it. A
// log of a version before has 0 there.
//
// The machine that the log lies in writes it, before it frees records.
type Ledger struct {
	memory *nvram.Memory
	base   uint64
	low    uint64 // as in memory
}

const (
	ledgerBytes    = 4096
	ledgerWriterAt = 0
	ledgerLowAt    = nvram.WordBytes
	ledgerDrainAt  = 2 * nvram.WordBytes
	ledgerNamesAt  = nvram.LineBytes
	LedgerNames    = (ledgerBytes - ledgerNamesAt) / nvram.WordBytes
)

// RingBytes is how much of a log's memory its ring takes.
func RingBytes(log *nvram.Memory) uint64 { return log.Size() - ledgerBytes }

// NewLedger makes an empty one for what a worker of a machine writes to the log,
// before there is a log.
func NewLedger(log *nvram.Memory, c Coordinator) *Ledger {
	l := &Ledger{memory: log, base: RingBytes(log)}
	log.Zero(l.base, ledgerBytes)
	log.Store(l.base+ledgerWriterAt, c.word())
	return l
}

// OpenLedger opens the one of a log of an earlier life, and says whose log it is. It
// is nil if there is none.
func OpenLedger(log *nvram.Memory) (*Ledger, Coordinator) {
	l := &Ledger{memory: log, base: RingBytes(log)}
	w := log.Load(l.base + ledgerWriterAt)
	c := Coordinator{Machine: rdma.MachineID(w >> 16), Worker: uint16(w)}
	if w != c.word() {
		return nil, c
	}
	l.low = log.Load(l.base + ledgerLowAt)
	return l, c
}

// A Coordinator names who numbers transactions.
type Coordinator struct {
	Machine rdma.MachineID
	Worker  uint16
}

// word is the first word of a ledger, which no record has.
func (c Coordinator) word() uint64 {
	return 0x7265646c<<32 | uint64(c.Machine)<<16 | uint64(c.Worker)
}

// Raise moves the low bound on, or to where another life of the writer begins. Nobody
// asks for transactions of the life before then: a machine may join again only when
// nothing is left to recover (membership.Machine).
func (l *Ledger) Raise(low uint64) {
	if low > l.low || !SameLife(low, l.low) {
		l.low = low
		l.memory.Store(l.base+ledgerLowAt, low)
	}
}

// CanName says whether there is a place for a transaction that is not below the bound.
func (l *Ledger) CanName(seq uint64) bool { return seq-l.low < LedgerNames }

// Name says that a transaction has been truncated, for which there is a place.
func (l *Ledger) Name(seq uint64) { l.memory.Store(l.place(seq), seq) }

func (l *Ledger) place(seq uint64) uint64 {
	return l.base + ledgerNamesAt + seq%LedgerNames*nvram.WordBytes
}

// Passed says whether the low bound has passed a transaction.
func (l *Ledger) Passed(seq uint64) bool { return seq < l.low && SameLife(seq, l.low) }

// Has says whether a transaction has been truncated.
func (l *Ledger) Has(seq uint64) bool {
	return l.Passed(seq) || l.memory.Load(l.place(seq)) == seq
}

// Drain notes that the log was drained of a configuration and those before, up to a
// position: in one word, of whose position the lower half does, for a ring is smaller.
func (l *Ledger) Drain(config uint32, position uint64) {
	l.memory.Store(l.base+ledgerDrainAt, uint64(config)<<32|uint64(uint32(position)))
}

// IsLate says whether a record that is in the log came too late. There need be no ledger.
func (l *Ledger) IsLate(config uint32, position uint64) bool {
	if l == nil || sabotage.LateRecords.Skipped() {
		return false
	}
	w := l.memory.Load(l.base + ledgerDrainAt)
	return config <= uint32(w>>32) && int32(uint32(position)-uint32(w)) >= 0
}

// LowBound returns the low bound.
func (l *Ledger) LowBound() uint64 { return l.low }

// Named returns the transactions at or above the low bound that are named.
func (l *Ledger) Named() (named []uint64) {
	for i := range uint64(LedgerNames) {
		if seq := l.memory.Load(l.base + ledgerNamesAt + i*nvram.WordBytes); seq >= l.low && SameLife(seq, l.low) && seq != 0 {
			named = append(named, seq)
		}
	}
	return named
}

// Log returns the memory of the log that the ledger is of.
func (l *Ledger) Log() *nvram.Memory { return l.memory }
