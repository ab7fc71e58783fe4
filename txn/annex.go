package txn

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/invariant"
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
	owner *logReader
	bound bool // a record names it
}

// annexes are those of one machine. The lock is taken after all others.
type annexes struct {
	m  *Machine
	mu struct {
		lockrank.Mutex[lockrank.Annexes]
		all map[uint64]*annex
	}
}

func (a *annexes) init(m *Machine) { a.m, a.mu.all = m, make(map[uint64]*annex) }

// errAnnex means that a record names an annex that is not there.
var errAnnex = fmt.Errorf("%w: its annex is not there", record.ErrBad)

// body returns what a record's annex says; nothing may use it once the record is freed.
func (a *annexes) body(x *record.Annex) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bodyLocked(x)
}

func (a *annexes) bodyLocked(x *record.Annex) ([]byte, error) {
	at := a.mu.all[x.Number]
	if at == nil || x.Bytes > at.memory.Size() {
		return nil, fmt.Errorf("%w: %d bytes, number %#x", errAnnex, x.Bytes, x.Number)
	}
	return at.memory.View(0, x.Bytes), nil
}

// bind has a record name the annex, which its sender must have asked for.
func (a *annexes) bind(x *record.Annex, owner *logReader) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.mu.all[x.Number]
	if at == nil || at.owner != owner || at.bound {
		return nil, fmt.Errorf("%w: number %#x, for this record", errAnnex, x.Number)
	}
	at.bound = true
	return a.bodyLocked(x)
}

// add makes an annex of so many bytes, with storage behind all of them.
func (a *annexes) add(bytes uint64) (number uint64, err error) {
	cfg := &a.m.cfg
	if cfg.Annex == nil {
		return 0, errNoAnnexes
	}
	if a.m.Meets(clock.NoStorage) {
		return 0, fmt.Errorf("txn: an annex: %w", nvram.ErrNoSpace)
	}
	for number == 0 || a.has(number) {
		number = cfg.Clock.Uint64() & record.AnnexNumberMax
	}
	size := (bytes + annexPage - 1) &^ (annexPage - 1)
	memory, err := cfg.Annex(number, int64(size))
	if err != nil {
		return 0, fmt.Errorf("txn: an annex of %d bytes at machine %d: %w", bytes, cfg.ID, err)
	}
	if err := cfg.NIC.Register(route.AnnexKey(number), memory); err != nil {
		return 0, errors.Join(err, cfg.DropAnnex(number, memory))
	}
	a.mu.Lock()
	a.mu.all[number] = &annex{memory: memory}
	a.mu.Unlock()
	a.m.reached(step.Annex)
	return number, nil
}

var errNoAnnexes = fmt.Errorf("%w: this machine has no memory for records that do not fit its logs", ErrTooLarge)

func (a *annexes) has(number uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.all[number] != nil
}

// give has an annex belong to a log.
func (a *annexes) give(number uint64, owner *logReader) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.all[number].owner = owner
}

// drop gives an annex back, if it is there. It does so in the background: nobody who holds
// a worker's lock can wait for that much memory to go.
func (a *annexes) drop(number uint64) {
	a.mu.Lock()
	at := a.mu.all[number]
	delete(a.mu.all, number)
	a.mu.Unlock()
	if at == nil {
		return
	}
	m := a.m
	m.serving.Add(1)
	if m.closed.Load() { // it goes with the next life
		m.serving.Add(-1)
		return
	}
	m.cfg.Clock.Go(func() {
		defer m.serving.Add(-1)
		m.cfg.NIC.Deregister(route.AnnexKey(number))
		_ = m.cfg.DropAnnex(number, at.memory) // what stays goes with the next life
		m.reached(step.DropAnnex)
	})
}

// dropUnbound gives back the annexes of a log that no record names; all of them where the
// log itself ends.
func (a *annexes) dropUnbound(owner *logReader, all bool) {
	for _, number := range a.of(owner, all) {
		a.drop(number)
	}
}

func (a *annexes) of(owner *logReader, all bool) (numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(a.mu.all)) {
		if at := a.mu.all[number]; at.owner == owner && (all || !at.bound) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// Annexes returns how many records have their writes in memory of their own at this machine,
// or will have. When nothing is under way there is none.
func (m *Machine) Annexes() int {
	m.annexes.mu.Lock()
	defer m.annexes.mu.Unlock()
	return len(m.annexes.mu.all)
}

// recall takes over the annexes of earlier lives.
func (a *annexes) recall(all map[uint64]*nvram.Memory) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(all)) {
		if err := a.m.cfg.NIC.Register(route.AnnexKey(number), all[number]); err != nil {
			return fmt.Errorf("txn: an annex of an earlier life: %w", err)
		}
		a.mu.all[number] = &annex{memory: all[number], bound: true}
	}
	return nil
}

// forget gives up annexes of earlier lives: peers cannot read them any more.
func (a *annexes) forget(numbers []uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range numbers {
		a.m.cfg.NIC.Deregister(route.AnnexKey(number))
		delete(a.mu.all, number)
	}
}

// eachPtr yields the objects that a record's annex writes to, if it is there, and says
// whether there may be more. What does not make sense was never acted upon.
func (a *annexes) eachPtr(x *record.Annex, yield func(region.Ptr) bool) bool {
	if x.IsNone() {
		return true
	}
	body, err := a.body(x)
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

// takeAnnexedLocked is what takeLocked does with a record whose writes are in an annex. If what is there
// makes no sense its writer is fenced, as after any such record. That it is there Recall
// and bind have seen to.
func (r *recoveryState) takeAnnexedLocked(t *trace, rec *record.Record) {
	seen := SeenLock
	if rec.Kind == record.CommitBackup {
		seen = SeenCommitBackup
	}
	body, err := r.m.annexes.body(&rec.Annex)
	if err != nil {
		invariant.Violated("a record that counts has its annex", err, rec.ID)
	}
	_ = t.takeAnnexed(&rec.Annex, body, seen)
}

func (t *trace) takeAnnexed(x *record.Annex, body []byte, seen Seen) error {
	writes, err := record.AnnexWrites(x, body)
	if err != nil {
		return err
	}
	at := Extent{Key: route.AnnexKey(x.Number)}
	for len(writes) > 0 {
		id, n := writes[0].Ptr.Addr.Region(), 0
		at.Off, at.N = at.Off+at.N, 0
		for n < len(writes) && writes[n].Ptr.Addr.Region() == id {
			at.N += uint64(record.WriteBytes(&writes[n]))
			n++
		}
		t.takeWrites(writes[:n:n], seen, at)
		writes = writes[n:]
	}
	return nil
}

// isOf says whether all writes are to a region.
func isOf(id region.ID, writes []record.Write) bool {
	return !slices.ContainsFunc(writes, func(w record.Write) bool { return w.Ptr.Addr.Region() != id })
}

// freeAnnex gives back the annex of a record that has been freed.
func (m *Machine) freeAnnex(number uint64) {
	if number != 0 {
		m.annexes.drop(number)
	}
}

// earlyAnnex gives an annex back before its record is freed: what must not be.
func (l *logReader) earlyAnnex(x *record.Annex) {
	if sabotage.EarlyAnnex.Skipped() {
		l.m.annexes.drop(x.Number)
	}
}
