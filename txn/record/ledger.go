package record

import (
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/rdma"
)

// A Ledger records which transactions of a log's writer have been truncated, for as long as the
// log exists. Once their records are freed, only the ledger shows that. A region that cannot
// tell "truncated" from "never came" would vote to abort a transaction that has been reported
// committed. That can happen after a power failure that destroyed the memory of the region's
// other replicas.
//
// The ledger is the last page of the log's memory. Every change is a store of one word, so that the
// ledger is valid at every moment:
//
//	| writer | low bound | drained | ...  64 B | named transaction | ... |
//
// Transactions below the low bound, of the same life of their coordinator, are truncated, and so
// are the named transactions. A transaction at or above the bound has one place where it can be
// named. If it is so far above the bound that another may use that place, it has to wait until the
// bound has moved (txn/worker/truncate.go).
//
// The third word, | configuration 32 | position 32 |, says for which configuration the log was last
// drained, and up to which position. A record after that position came too late, unless it is of a
// later configuration: it has no effect, since recovery has decided without it. Logs of an earlier
// program version have 0 there.
//
// The machine that has the log in its memory writes the ledger, before it frees records.
type Ledger struct {
	memory *nvram.Memory
	base   uint64
	low    uint64 // the low bound, as the ledger's memory has it
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

// NewLedger makes an empty ledger for a log that worker c will write to, before the log exists.
func NewLedger(log *nvram.Memory, c Coordinator) *Ledger {
	l := &Ledger{memory: log, base: RingBytes(log)}
	log.Zero(l.base, ledgerBytes)
	log.Store(l.base+ledgerWriterAt, c.word())
	return l
}

// OpenLedger opens the ledger of a log from an earlier life, and returns the log's writer. It
// returns nil if there is no ledger.
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

// A Coordinator is a machine's worker, which numbers the transactions that it coordinates.
type Coordinator struct {
	Machine rdma.MachineID
	Worker  uint16
}

// word returns the first word of a ledger for c. No record begins with that word.
func (c Coordinator) word() uint64 {
	const mark = 0x7265646c // "lder" in memory
	return mark<<32 | uint64(c.Machine)<<16 | uint64(c.Worker)
}

// Raise moves the low bound up, or into another life of the writer. After that, nobody asks about
// transactions of the earlier life: a machine may join again only when nothing is left to recover
// (membership.Machine).
func (l *Ledger) Raise(low uint64) {
	if low > l.low || !SameLife(low, l.low) {
		l.low = low
		l.memory.Store(l.base+ledgerLowAt, low)
	}
}

// CanName reports whether there is a place to name a transaction that is not below the low bound.
func (l *Ledger) CanName(seq uint64) bool { return seq-l.low < LedgerNames }

// Name records a transaction as truncated; CanName must be true for it.
func (l *Ledger) Name(seq uint64) { l.memory.Store(l.place(seq), seq) }

// place returns the offset of the only word that can name a transaction.
func (l *Ledger) place(seq uint64) uint64 {
	return l.base + ledgerNamesAt + seq%LedgerNames*nvram.WordBytes
}

// Passed reports whether a transaction is below the low bound, in the same life.
func (l *Ledger) Passed(seq uint64) bool { return seq < l.low && SameLife(seq, l.low) }

// Has reports whether a transaction has been truncated.
func (l *Ledger) Has(seq uint64) bool {
	return l.Passed(seq) || l.memory.Load(l.place(seq)) == seq
}

// Drain records that the log was drained for this and all earlier configurations, up to a position.
// One word holds both: the lower 32 bits of the position are enough, since a ring is smaller than
// 2 GB.
func (l *Ledger) Drain(config uint32, position uint64) {
	l.memory.Store(l.base+ledgerDrainAt, uint64(config)<<32|uint64(uint32(position)))
}

// IsLate reports whether a record in the log, of the given configuration and at the given position, came
// too late. It returns false if l is nil: there is no ledger.
func (l *Ledger) IsLate(config uint32, position uint64) bool {
	if l == nil || sabotage.LateRecords.Skipped() {
		return false
	}
	w := l.memory.Load(l.base + ledgerDrainAt)
	isAfter := int32(uint32(position)-uint32(w)) >= 0 // the lower halves of positions wrap
	return config <= uint32(w>>32) && isAfter
}

// LowBound returns the low bound.
func (l *Ledger) LowBound() uint64 { return l.low }

// Named returns the transactions at or above the low bound that are named.
func (l *Ledger) Named() (named []uint64) {
	for i := range uint64(LedgerNames) {
		seq := l.memory.Load(l.base + ledgerNamesAt + i*nvram.WordBytes)
		isUsed := seq != 0
		if isUsed && seq >= l.low && SameLife(seq, l.low) {
			named = append(named, seq)
		}
	}
	return named
}

// Log returns the memory of the ledger's log.
func (l *Ledger) Log() *nvram.Memory { return l.memory }
