package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A number object holds one 64-bit number: a sequence holds the least number that no machine has
// reserved, a counter its value.
const numberBytes = 8

// A machine reserves numbers in ranges that grow with the demand. So a table with few inserts
// leaves small gaps after a crash, and a busy table seldom waits for a transaction.
const (
	rangeFirst = 8
	rangeMax   = 1024
)

// Sequences hands out the numbers of AUTO_INCREMENT columns and of hidden row
// keys. It is safe for concurrent use, also by the catalogs of several machines
// in one process.
type Sequences struct {
	m  *txn.Machine
	mu lockrank.Mutex[lockrank.Leaf]
	of map[region.Ptr]*sequence
}

// A sequence holds the numbers [next, end) that are reserved here.
type sequence struct {
	mu        lockrank.Mutex[lockrank.Leaf]
	next, end uint64
	size      uint64
	// reserving is the turn that a caller takes while it reserves numbers, because mu must not be
	// held during a transaction.
	reserving turn
}

// NewSequences returns sequences whose own transactions run on m.
func NewSequences(m *txn.Machine) *Sequences {
	return &Sequences{m: m, of: make(map[region.Ptr]*sequence)}
}

// NewNumber allocates a number object.
func NewNumber(t *txn.Tx, v uint64) (region.Ptr, error) {
	p, b, err := t.Alloc(numberBytes, 0)
	if err != nil {
		return p, err
	}
	binary.LittleEndian.PutUint64(b, v)
	return p, nil
}

// FreeNumber frees a number object. It does nothing if p is nil.
func (c *Catalog) FreeNumber(t *txn.Tx, p region.Ptr) error {
	if p.IsNil() {
		return nil
	}
	return t.Free(p)
}

// ErrGone says that a number object has been freed with its table. It is not a
// conflict, because the transaction would find the same if it were run again.
var ErrGone = errors.New("catalog: sequence is gone")

// OpenNumber opens a number object for writing in a transaction of its own.
func OpenNumber(t *txn.Tx, p region.Ptr) ([]byte, error) {
	if _, _, err := t.Peek(p); IsFreed(err) {
		return nil, ErrGone
	}
	return t.Write(p)
}

// run runs a transaction of its own on a number object. It turns ErrGone into a
// conflict for the calling statement, which, when it runs again, finds its table dropped
// or changed.
func (s *Sequences) run(ctx context.Context, p region.Ptr, fn func(b []byte) error) error {
	err := s.m.Run(ctx, func(t *txn.Tx) error {
		b, err := OpenNumber(t, p)
		if err != nil {
			return err
		}
		return fn(b)
	})
	if errors.Is(err, ErrGone) {
		return fmt.Errorf("%w: %w", err, outcome.ErrConflict)
	}
	return err
}

// get returns this machine's state of the sequence at p. If there is none, it creates one.
func (s *Sequences) get(p region.Ptr) *sequence {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.of[p]
	if q == nil {
		q = &sequence{size: rangeFirst}
		s.of[p] = q
	}
	return q
}

// Next returns the next number of the sequence at p.
func (s *Sequences) Next(ctx context.Context, p region.Ptr) (uint64, error) {
	q := s.get(p)
	for {
		q.mu.Lock()
		if q.next < q.end {
			v := q.next
			q.next++
			q.mu.Unlock()
			return v, nil
		}
		over := q.reserving.takeLocked(s.m.Clock())
		q.mu.Unlock()
		if over != nil { // another goroutine is reserving numbers
			if err := waitFor(ctx, over); err != nil {
				return 0, err
			}
			continue
		}
		if err := s.reserve(ctx, p, q); err != nil {
			return 0, err
		}
	}
}

// reserve reserves the next range of numbers. The caller must have taken the turn; reserve ends it.
func (s *Sequences) reserve(ctx context.Context, p region.Ptr, q *sequence) error {
	var first, end uint64
	err := s.run(ctx, p, func(b []byte) error {
		first = max(binary.LittleEndian.Uint64(b), 1)
		if first == math.MaxUint64 {
			return ErrExhausted
		}
		end = first + min(q.size, math.MaxUint64-first)
		if sabotage.Numbers.Skipped() {
			end = first + 1
		}
		binary.LittleEndian.PutUint64(b, end)
		return nil
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.reserving.endLocked()
	if err != nil {
		return fmt.Errorf("catalog: reserve numbers: %w", err)
	}
	q.next, q.end, q.size = first, end, min(2*q.size, rangeMax)
	if sabotage.Numbers.Skipped() {
		q.end += q.size
	}
	return nil
}

// Peek returns the number that Next would return now.
func (s *Sequences) Peek(p region.Ptr) (uint64, error) {
	q := s.get(p)
	q.mu.Lock()
	next, end := q.next, q.end
	q.mu.Unlock()
	if next < end {
		return next, nil
	}
	b := make([]byte, p.Capacity())
	if _, err := s.m.Read(p, b); err != nil {
		return 0, fmt.Errorf("catalog: read a sequence: %w", err)
	}
	return max(binary.LittleEndian.Uint64(b), 1), nil
}

// Raise makes sure that the sequence continues above a number that a statement has
// given explicitly.
func (s *Sequences) Raise(ctx context.Context, p region.Ptr, used uint64) error {
	if used == math.MaxUint64 {
		used-- // so that used+1 does not overflow
	}
	q := s.get(p)
	for {
		q.mu.Lock()
		if used < q.next || used+1 < q.end { // the reserved numbers suffice
			q.next = max(q.next, used+1)
			q.mu.Unlock()
			return nil
		}
		over := q.reserving.takeLocked(s.m.Clock())
		q.mu.Unlock()
		if over != nil {
			if err := waitFor(ctx, over); err != nil {
				return err
			}
			continue
		}
		return s.replace(ctx, p, q, func(stored uint64) uint64 { return max(stored, used+1) })
	}
}

// Set makes the sequence continue at v, even if it was beyond v.
func (s *Sequences) Set(ctx context.Context, p region.Ptr, v uint64) error {
	q := s.get(p)
	for {
		q.mu.Lock()
		over := q.reserving.takeLocked(s.m.Clock())
		q.mu.Unlock()
		if over == nil {
			return s.replace(ctx, p, q, func(uint64) uint64 { return v })
		}
		if err := waitFor(ctx, over); err != nil {
			return err
		}
	}
}

// replace changes the stored number to the result of next, and drops the numbers reserved here. The
// caller must have taken the turn; replace ends it.
func (s *Sequences) replace(ctx context.Context, p region.Ptr, q *sequence, next func(stored uint64) uint64) error {
	err := s.run(ctx, p, func(b []byte) error {
		binary.LittleEndian.PutUint64(b, next(binary.LittleEndian.Uint64(b)))
		return nil
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.reserving.endLocked()
	if err == nil {
		q.next, q.end = 0, 0
	}
	return err
}

// Close gives back the unused rest of every range, except where another machine has reserved
// numbers above that range. The sequences must not be used after Close.
func (s *Sequences) Close(ctx context.Context) error {
	s.mu.Lock()
	all := s.of
	s.of = make(map[region.Ptr]*sequence)
	s.mu.Unlock()
	for p, q := range all {
		if q.next >= q.end {
			continue
		}
		err := s.run(ctx, p, func(b []byte) error {
			if binary.LittleEndian.Uint64(b) == q.end {
				binary.LittleEndian.PutUint64(b, q.next)
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrGone) {
			return fmt.Errorf("catalog: give numbers back: %w", err)
		}
	}
	return nil
}

// NextIn returns the next number of a sequence that transaction t itself has created.
// It needs no reservation, because no one else can see the sequence yet.
func NextIn(t *txn.Tx, p region.Ptr) (uint64, error) {
	b, err := t.Write(p)
	if err != nil {
		return 0, err
	}
	v := max(binary.LittleEndian.Uint64(b), 1)
	if v == math.MaxUint64 {
		return 0, ErrExhausted
	}
	binary.LittleEndian.PutUint64(b, v+1)
	return v, nil
}

// PeekIn returns the number that NextIn would return.
func PeekIn(t *txn.Tx, p region.Ptr) (uint64, error) {
	b, err := t.Read(p)
	if err != nil {
		return 0, err
	}
	return max(binary.LittleEndian.Uint64(b), 1), nil
}

// SetIn makes a sequence that transaction t has created continue at v. If atLeast is
// set, it does so only if v is above the present number.
func SetIn(t *txn.Tx, p region.Ptr, v uint64, atLeast bool) error {
	b, err := t.Write(p)
	if err == nil && (!atLeast || v > binary.LittleEndian.Uint64(b)) {
		binary.LittleEndian.PutUint64(b, v)
	}
	return err
}
