package participant

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/nvram"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/route"
	"github.com/farmsql/farmsql/txn/step"
)

// A LOCK or COMMIT-BACKUP record that does not fit the log has its writes beside it, in
// an annex: non-volatile memory of the machine that the log is at, which is made for this
// one record. The coordinator asks for it before anything is locked (large.go), fills it,
// and when all of it is there it commits as ever, by records that name annexes. So there
// is a whole annex wherever there is such a record:
//
//	asked for     the machine has made memory with storage for all of it
//	filled        by WRITEs in pieces; all of them are acknowledged before ...
//	bound         ... the record is appended that names it
//	given back    after the log's head has passed that record
//
// What is lost between two of these is memory that no record names, and goes: when the
// coordinator says so, when its log is made anew, when recovery is settled without it, or
// with the next life of the machine.

// annexPage is what sizes of annexes are multiples of.
const annexPage = 4096

// An annex is one that is here.
type annex struct {
	memory *nvram.Memory
	// owner is the log whose sender has asked for it; nil for the own log, and for those
	// of earlier lives.
	owner *Log
	bound bool // a record names it
}

// Annexes are those of one machine. The lock is taken after all others.
type Annexes struct {
	r  *Replicas
	mu struct {
		lockrank.Mutex[lockrank.Annexes]
		all map[uint64]*annex
	}
}

func (a *Annexes) init(r *Replicas) { a.r, a.mu.all = r, make(map[uint64]*annex) }

// errAnnex means that a record names an annex that is not there.
var errAnnex = fmt.Errorf("%w: its annex is not there", record.ErrBad)

// Body returns what a record's annex says; nothing may use it once the record is freed.
func (a *Annexes) Body(x *record.Annex) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bodyLocked(x)
}

func (a *Annexes) bodyLocked(x *record.Annex) ([]byte, error) {
	at := a.mu.all[x.Number]
	if at == nil || x.Bytes > at.memory.Size() {
		return nil, fmt.Errorf("%w: %d bytes, number %#x", errAnnex, x.Bytes, x.Number)
	}
	return at.memory.View(0, x.Bytes), nil
}

// Bind has a record name the annex, which its sender must have asked for.
func (a *Annexes) Bind(x *record.Annex, owner *Log) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.mu.all[x.Number]
	if at == nil || at.owner != owner || at.bound {
		return nil, fmt.Errorf("%w: number %#x, for this record", errAnnex, x.Number)
	}
	at.bound = true
	return a.bodyLocked(x)
}

// Add makes an annex of so many bytes, with storage behind all of them.
func (a *Annexes) Add(bytes uint64) (number uint64, err error) {
	if a.r.meets(clock.NoStorage) {
		return 0, fmt.Errorf("txn: an annex: %w", nvram.ErrNoSpace)
	}
	for number == 0 || a.has(number) {
		number = a.r.Clock.Uint64() & record.AnnexNumberMax
	}
	size := (bytes + annexPage - 1) &^ (annexPage - 1)
	memory, err := a.r.Annex(number, int64(size))
	if err != nil {
		return 0, fmt.Errorf("txn: an annex of %d bytes at machine %d: %w", bytes, a.r.ID, err)
	}
	if err := a.r.NIC.Register(route.AnnexKey(number), memory); err != nil {
		return 0, errors.Join(err, a.r.DropAnnex(number, memory))
	}
	a.mu.Lock()
	a.mu.all[number] = &annex{memory: memory}
	a.mu.Unlock()
	a.r.Reached(step.Annex)
	return number, nil
}

func (a *Annexes) has(number uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.all[number] != nil
}

// Give has an annex belong to a log.
func (a *Annexes) Give(number uint64, owner *Log) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.all[number].owner = owner
}

// Drop gives an annex back, if it is there. It does so in the background: nobody who holds
// a worker's lock can wait for that much memory to go.
func (a *Annexes) Drop(number uint64) {
	a.mu.Lock()
	at := a.mu.all[number]
	delete(a.mu.all, number)
	a.mu.Unlock()
	if at == nil {
		return
	}
	r := a.r
	r.Background(func() { // else it goes with the next life
		r.NIC.Deregister(route.AnnexKey(number))
		_ = r.DropAnnex(number, at.memory) // what stays goes with the next life
		r.Reached(step.DropAnnex)
	})
}

// DropUnbound gives back the annexes of a log that no record names; all of them where the
// log itself ends.
func (a *Annexes) DropUnbound(owner *Log, all bool) {
	for _, number := range a.of(owner, all) {
		a.Drop(number)
	}
}

func (a *Annexes) of(owner *Log, all bool) (numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(a.mu.all)) {
		if at := a.mu.all[number]; at.owner == owner && (all || !at.bound) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// Recall takes over the annexes of earlier lives.
func (a *Annexes) Recall(all map[uint64]*nvram.Memory) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if err := a.r.NIC.Register(route.AnnexKey(number), all[number]); err != nil {
			return fmt.Errorf("txn: an annex of an earlier life: %w", err)
		}
		a.mu.all[number] = &annex{memory: all[number], bound: true}
	}
	return nil
}

// Forget gives up annexes of earlier lives: peers cannot read them any more.
func (a *Annexes) Forget(numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range numbers {
		a.r.NIC.Deregister(route.AnnexKey(number))
		delete(a.mu.all, number)
	}
}

// Write stores to an annex of this machine.
func (a *Annexes) Write(number, off uint64, b []byte) error {
	a.mu.Lock()
	at := a.mu.all[number]
	a.mu.Unlock()
	if at == nil {
		return fmt.Errorf("%w: number %#x", errAnnex, number)
	}
	at.memory.CopyIn(off, b)
	return nil
}

// IsUnbound says whether no record names an annex that a log's sender has asked for.
func (a *Annexes) IsUnbound(number uint64, owner *Log) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.mu.all[number]
	return at != nil && at.owner == owner && !at.bound
}

// Free gives back the annex of a record that has been freed; number is 0 if it has none.
func (a *Annexes) Free(number uint64) {
	if number != 0 {
		a.Drop(number)
	}
}

// Count returns how many there are.
func (a *Annexes) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.mu.all)
}

// EachPtr yields the objects that a record's annex writes to, if it is there, and says
// whether there may be more. What does not make sense was never acted upon.
func (a *Annexes) EachPtr(x *record.Annex, yield func(region.Ptr) bool) bool {
	if x.IsNone() {
		return true
	}
	body, err := a.Body(x)
	if err != nil {
		return true // of a record that does not count
	}
	d := record.NewDecoder(body)
	for range x.Writes {
		w, ok := d.Next()
		if !ok {
			return true
		}
		if !yield(w.Ptr) {
			return false
		}
	}
	return true
}

// earlyAnnex gives an annex back before its record is freed: what must not be.
func (l *Log) earlyAnnex(x *record.Annex) {
	if sabotage.EarlyAnnex.Skipped() {
		l.r.Annexes.Drop(x.Number)
	}
}
