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

// If a LOCK or COMMIT-BACKUP record does not fit the log, its writes are beside the log in an
// annex: non-volatile memory of the participant that is made for this one record. The coordinator
// asks for the annex before anything is locked (large.go) and fills it. When all of it has arrived,
// the transaction commits as usual, with records that name annexes. So a record that names an annex
// is never there without its whole annex:
//
//	asked for     the machine makes memory with storage for the whole annex
//	filled        the coordinator WRITEs it in pieces, and waits until all are acknowledged
//	bound         the coordinator appends the record that names the annex
//	given back    the machine frees the annex, after the log's head has passed that record
//
// A failure between two of these steps leaves an annex that no record names. It is freed when the
// coordinator asks for that, when the log is replaced, when recovery is settled without it, or in
// the next life of the machine.

// The sizes of annexes are multiples of annexPage.
const annexPage = 4096

// An annex holds the writes of one record in memory of this machine.
type annex struct {
	memory *nvram.Memory
	// owner is the log whose sender has asked for the annex; nil for the machine's own log, and for
	// annexes of earlier lives.
	owner *Log
	bound bool // a record names the annex
}

// Annexes are the annexes at one machine. Their lock is taken after all others.
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

// Body returns the content of a record's annex. The caller must not use it once the record is
// freed.
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

// Bind marks the annex as named by a record of the log owner, and returns its content. It fails
// unless the log's sender has asked for the annex and no record names it yet.
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

// Add makes an annex of the given size, with storage for all of it.
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

// Give makes owner the log whose record may name the annex.
func (a *Annexes) Give(number uint64, owner *Log) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.all[number].owner = owner
}

// Drop frees an annex, if it is there. It does so in the background: freeing that much memory takes
// too long for a caller that holds a worker's lock.
func (a *Annexes) Drop(number uint64) {
	a.mu.Lock()
	at := a.mu.all[number]
	delete(a.mu.all, number)
	a.mu.Unlock()
	if at == nil {
		return
	}
	r := a.r
	r.Background(func() { // if the machine is closed before this runs, the next life frees the annex
		r.NIC.Deregister(route.AnnexKey(number))
		_ = r.DropAnnex(number, at.memory) // if this fails, the next life frees the annex
		r.Reached(step.DropAnnex)
	})
}

// DropUnbound frees the log's annexes that none of its records names. If all is set, the log itself
// ends, and DropUnbound frees every annex.
func (a *Annexes) DropUnbound(owner *Log, all bool) {
	for _, number := range a.numbersOf(owner, all) {
		a.Drop(number)
	}
}

// numbersOf returns the numbers of a log's annexes in ascending order: every annex, or only the
// unbound ones.
func (a *Annexes) numbersOf(owner *Log, all bool) (numbers []uint64) {
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

// Forget forgets annexes of earlier lives, so that peers can no longer read them. Their memory
// belongs to the caller of Recall.
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

// IsUnbound reports whether the annex was made for a log's sender and no record names it yet.
func (a *Annexes) IsUnbound(number uint64, owner *Log) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.mu.all[number]
	return at != nil && at.owner == owner && !at.bound
}

// Free frees the annex of a record that has been freed. It does nothing if number is 0: the record
// has no annex.
func (a *Annexes) Free(number uint64) {
	if number != 0 {
		a.Drop(number)
	}
}

// Count returns the number of annexes.
func (a *Annexes) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.mu.all)
}

// EachPtr yields the pointer of each write in a record's annex. It returns false if yield has
// returned false. Where the annex is missing or does not decode, EachPtr ends without an error:
// such a record has never taken effect.
func (a *Annexes) EachPtr(x *record.Annex, yield func(region.Ptr) bool) bool {
	if x.IsNone() {
		return true
	}
	body, err := a.Body(x)
	if err != nil {
		return true // the record does not count
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

// earlyAnnex is a planted bug (sabotage.EarlyAnnex): it frees an annex before its record.
func (l *Log) earlyAnnex(x *record.Annex) {
	if sabotage.EarlyAnnex.Skipped() {
		l.r.Annexes.Drop(x.Number)
	}
}
