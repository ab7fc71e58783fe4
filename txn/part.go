package txn

import (
	"errors"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
)

// A Part is a part of an object that a transaction depends on. The same value can be used for that
// part of any number of objects.
type Part interface {
	// Same reports whether the part is equal in two payloads of an object. Its result must depend
	// on the payloads alone.
	Same(was, now []byte) bool
}

// ReadPart is like Read, for a caller that uses only a part of the object p: the transaction does not
// conflict with others that change the rest of the object.
//
// Between two calls, the bytes outside of the part may change. After many questions of a transaction ReadPart is Read, which
// keeps an object once, however often it is read.
func (t *Tx) ReadPart(p region.Ptr, part Part) ([]byte, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if len(t.questions) >= partsMost || t.writes.Find(p.Addr) >= 0 || t.readBefore(p.Addr) >= 0 {
		return t.Read(p)
	}
	payload, v, err := t.first(p)
	if err != nil {
		return nil, t.doom(err)
	}
	q := t.parts.next()
	*q = partQuestion{from: [1]Source{{p, v}}, was: payload, part: part}
	t.Expect(q)
	return payload, nil
}

// partsMost bounds the questions of a transaction beyond which it asks no more about parts.
const partsMost = 256

// A partQuestion is the Question that asks for a part of one object.
type partQuestion struct {
	from [1]Source
	was  []byte
	part Part
}

// partQuestions allocates the partQuestions of one transaction, and keeps the memory for the next:
// a statement that reads a range needs one for each row.
type partQuestions struct{ chunk []partQuestion }

const (
	partsChunkMin = 16
	partsChunkMax = 1024
)

func (q *partQuestions) next() *partQuestion {
	n := len(q.chunk)
	if n == cap(q.chunk) {
		q.chunk, n = make([]partQuestion, 0, min(max(2*n, partsChunkMin), partsChunkMax)), 0
	}
	q.chunk = q.chunk[:n+1]
	return &q.chunk[n]
}

// reset takes back all questions, and keeps the last chunk.
func (q *partQuestions) reset() {
	clear(q.chunk)
	q.chunk = q.chunk[:0]
}

// Sources implements Question.
func (q *partQuestion) Sources() []Source { return q.from[:] }

// Ask implements Question.
func (q *partQuestion) Ask(f *Fresh) (bool, error) {
	p := q.from[0].Ptr
	if f.replaces(p) {
		return false, nil // the slot has another version by now, whose payload was freed, or another object
	}
	payload, v, err := f.Peek(p)
	if errors.Is(err, region.ErrFreed) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	q.from[0].Version = v
	return sabotage.Parts.Skipped() || q.part.Same(q.was, payload), nil
}

// replaces reports whether the transaction has locked p's slot for a write that is made without
// knowing the slot's content.
func (f *Fresh) replaces(p region.Ptr) bool {
	e := f.s.lockedAt(p.Addr)
	return e != nil && e.Base == nil
}
