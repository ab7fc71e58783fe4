package hash

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// An overlay holds the questions that one transaction has asked one table, and the changes that it
// will make there. Changes stay operations on keys until Prepare applies them to fresh copies of
// the buckets, so that two transactions conflict only over the same key.
type overlay struct {
	tb *Table
	o  *opened
	// isNew says that this transaction has created the table: no other transaction can have
	// put anything into it.
	isNew   bool
	entries []*entry
	// byKey maps keys to entries, once there are more than scanMax entries.
	byKey map[string]*entry
	// spare are entries of earlier transactions.
	spare []*entry
	// pending holds the entries with an operation, while Prepare applies them.
	pending []*entry
	// editors change the shards that pending entries belong to. Their underlying array keeps
	// further editors for later. The field used counts the editors that have been used since the
	// last reset; they are the first of the array.
	editors []*editor
	used    int
	// changed counts how often an entry got its first operation: 0 means that there are no changes. A
	// rollback does not take it back.
	changed int
	// ahead is memory for the pointers to buckets that are about to be requested.
	ahead   []region.Ptr
	release func() // returns the overlay to the pool
}

// scanMax bounds the entries that find searches without a map. Most transactions have fewer, and
// for these a map would cost more than it saves.
const scanMax = 24

// An entry holds a transaction's question about one key, and its change. It becomes a txn.Question
// once the transaction has asked for the key.
type entry struct {
	tb  *Table
	h   uint64
	key []byte

	asked asked
	// found, value and sources are the answer. The transaction owns the memory of value.
	found   bool
	value   []byte
	sources []txn.Source
	// reserve collects the sources of a new answer. If asking fails, sources still has the sources of the old answer.
	reserve []txn.Source

	op   operation
	next []byte // the value to be put
}

// asked says how much of a key's answer a transaction depends on.
type asked uint8

const (
	askedNothing asked = iota
	askedExistence
	askedValue
)

// An operation is the change that a transaction will make to a key.
type operation uint8

const (
	opNone operation = iota
	opPut
	opDelete
)

var overlays sync.Pool

// overlay returns the overlay of a transaction, and creates it if there is none.
func (tb *Table) overlay(t *txn.Tx) (*overlay, error) {
	if ov, ok := t.Local(tb).(*overlay); ok {
		return ov, nil
	}
	o, isNew, err := tb.openIn(t)
	if err != nil {
		return nil, err
	}
	ov, ok := overlays.Get().(*overlay)
	if !ok {
		ov = &overlay{}
		ov.release = func() {
			ov.reset()
			overlays.Put(ov)
		}
	}
	ov.tb, ov.o, ov.isNew = tb, o, isNew
	t.SetLocal(tb, ov)
	t.OnEnd(ov.release)
	return ov, nil
}

// openIn is like open, but within transaction t. isNew is true if t has created the table.
func (tb *Table) openIn(t *txn.Tx) (o *opened, isNew bool, err error) {
	if o, err = tb.open(); !errors.Is(err, ErrDestroyed) {
		return o, false, err
	}
	b, err := t.Read(tb.anchor)
	if err != nil {
		return nil, false, err
	}
	o, err = tb.decode(b)
	return o, true, err
}

// The numbers of entries and editors that an overlay keeps for the next transaction.
const (
	spareMax   = 64
	editorsMax = 16
)

func (ov *overlay) reset() {
	for _, e := range ov.entries {
		if len(ov.spare) < spareMax {
			*e = entry{key: e.key[:0], sources: e.sources[:0], reserve: e.reserve[:0]}
			ov.spare = append(ov.spare, e)
		}
	}
	clear(ov.entries)
	clear(ov.pending)
	// Keep at most editorsMax editors, and no references in them.
	all := ov.editors[:cap(ov.editors)]
	kept := min(len(all), editorsMax)
	for _, ed := range all[:min(ov.used, kept)] {
		ed.release()
	}
	clear(all[kept:])
	ov.entries, ov.pending, ov.editors = ov.entries[:0], ov.pending[:0], all[:0:kept]
	ov.tb, ov.o, ov.isNew, ov.byKey, ov.changed, ov.used = nil, nil, false, nil, 0, 0
}

// entry returns the entry of a key, and creates it if there is none.
func (ov *overlay) entry(h uint64, key []byte) *entry {
	if e := ov.find(h, key); e != nil {
		return e
	}
	var e *entry
	if n := len(ov.spare); n > 0 {
		e, ov.spare = ov.spare[n-1], ov.spare[:n-1]
	} else {
		e = new(entry)
	}
	e.tb, e.h, e.key = ov.tb, h, append(e.key, key...)
	ov.entries = append(ov.entries, e)
	if ov.byKey != nil {
		ov.byKey[string(e.key)] = e
	} else if len(ov.entries) > scanMax {
		ov.byKey = make(map[string]*entry, 4*scanMax)
		for _, e := range ov.entries {
			ov.byKey[string(e.key)] = e
		}
	}
	return e
}

func (ov *overlay) find(h uint64, key []byte) *entry {
	if ov.byKey != nil {
		return ov.byKey[string(key)]
	}
	for _, e := range ov.entries {
		if e.h == h && bytes.Equal(e.key, key) {
			return e
		}
	}
	return nil
}

// change sets the operation on the key of e to op. A rollback restores the previous one.
func (ov *overlay) change(t *txn.Tx, e *entry, op operation, value []byte) {
	before, next := e.op, e.next
	if before == opNone && op != opNone {
		ov.changed++
		if ov.changed == 1 {
			t.Defer(ov)
		}
	}
	e.op, e.next = op, append(t.Scratch(len(value))[:0], value...)
	if t.IsMarked() { // without a mark there is nothing to roll back to
		t.OnRollback(func() { e.op, e.next = before, next })
	}
}

// ask looks up for the transaction whether the key is in the table and, if want says so, its value.
// Later answers must equal the first; otherwise the transaction aborts.
func (ov *overlay) ask(t *txn.Tx, e *entry, want asked) error {
	if e.asked >= want || ov.isNew {
		return nil
	}
	value, found, err := e.answer(t)
	if err != nil {
		return err
	}
	if e.asked != askedNothing && found != e.found {
		return &txn.AbortError{Reason: txn.ReasonAnswer, Addr: e.tb.anchor.Addr}
	}
	// The transaction may already expect the key's existence. Its value is a new read: without this call,
	// Tx.ValidateRecent would not validate it.
	t.Expect(e)
	e.asked, e.found, e.value = want, found, value
	return nil
}

// answer looks the key up and stores the sources of the answer in e.
func (e *entry) answer(pk peeker) (value []byte, found bool, err error) {
	value, found, sources, err := e.tb.ask(pk, e.h, e.key, e.reserve[:0])
	e.reserve = sources
	if err == nil {
		e.sources, e.reserve = e.reserve, e.sources
	}
	return value, found, err
}

// Sources implements txn.Question.
func (e *entry) Sources() []txn.Source { return e.sources }

// Ask implements txn.Question.
func (e *entry) Ask(f *txn.Fresh) (bool, error) {
	value, found, err := e.answer(f)
	if err != nil {
		return false, inTx(err, e.tb)
	}
	return found == e.found && (e.asked < askedValue || bytes.Equal(value, e.value)), nil
}

// Prepare implements txn.Intent: it applies the operations in the order of the keys'
// hashes, so that the operations on one shard follow each other.
func (ov *overlay) Prepare(l *txn.Late) error {
	o := ov.o
	ov.pending, ov.editors = ov.pending[:0], ov.editors[:0]
	for _, e := range ov.entries {
		if e.op != opNone {
			ov.pending = append(ov.pending, e)
		}
	}
	slices.SortFunc(ov.pending, func(a, b *entry) int {
		if a.h != b.h {
			if a.h < b.h {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.key, b.key)
	})
	requested := 0 // the buckets of pending[:requested] have been requested
	for i, e := range ov.pending {
		if i == requested {
			requested += ov.requestBuckets(l, ov.pending[i:])
		}
		if err := ov.apply(o, l, e); err != nil {
			return inTx(asStale(err), ov.tb)
		}
	}
	for _, ed := range ov.editors {
		if err := ed.seal(); err != nil {
			return inTx(asStale(err), ov.tb)
		}
		o.note(ed)
	}
	return nil
}

// requestBuckets requests the buckets at other machines that operations on the first entries are
// going to read. It returns the number of these entries.
func (ov *overlay) requestBuckets(l *txn.Late, entries []*entry) int {
	entries = entries[:min(len(entries), getsTogether)]
	if len(entries) == 1 || ov.isNew {
		return len(entries)
	}
	ptrs, anyElsewhere := ov.ahead[:0], false
	for _, e := range entries {
		var home, next region.Ptr // nil if there is nothing to request
		if at := ov.o.home(&sight{h: e.h}); !l.Machine().IsPrimary(at.Addr) {
			home, next, anyElsewhere = at, at.Element(1), true
		}
		ptrs = append(ptrs, home, next)
	}
	ov.ahead = ptrs
	if !anyElsewhere {
		return len(entries)
	}
	return max(l.ReadAhead(ptrs)/2, 1)
}

// apply does one operation.
func (ov *overlay) apply(o *opened, l *txn.Late, e *entry) error {
	s, err := ov.tb.route(o, l, e.h)
	if err != nil {
		return err
	}
	ed := ov.editor(o, l, s)
	if e.op == opPut {
		_, err = ed.put(e.h, e.key, e.next)
	} else {
		_, err = ed.remove(e.h, e.key)
	}
	return err
}

// editor returns the editor that changes shard s in this preparation. It uses an editor of an earlier
// transaction again if the array still has one.
func (ov *overlay) editor(o *opened, l *txn.Late, s *shard) *editor {
	for i := len(ov.editors) - 1; i >= 0; i-- {
		if ov.editors[i].shard == s {
			return ov.editors[i]
		}
	}
	n := len(ov.editors)
	ov.used = max(ov.used, n+1)
	if n < cap(ov.editors) {
		if ed := ov.editors[:n+1][n]; ed != nil {
			ed.reset(o, l, s)
			ov.editors = ov.editors[:n+1]
			return ed
		}
	}
	ov.editors = append(ov.editors, o.editor(l, s))
	return ov.editors[n]
}

// route returns the shard that h belongs to, according to the home bucket that it reads from st.
func (tb *Table) route(o *opened, st store, h uint64) (*shard, error) {
	s := o.dir.find(h)
	for {
		b, err := st.Read(s.first.Element(bucketOf(h, o.buckets)))
		if err != nil {
			return nil, asDestroyed(err)
		}
		depth, live := o.bucket(b).depth()
		if live && s.covers(h, depth) {
			return s, nil
		}
		if s, err = tb.follow(o, s, h, depth, live); err != nil {
			return nil, err
		}
	}
}

// asStale turns the errors of a lookup during which the buckets changed into txn.ErrStale, for
// which a transaction begins its preparation again.
func asStale(err error) error {
	if overtaken(err) {
		return txn.ErrStale
	}
	return err
}

// A peeker reads committed objects for a transaction.
type peeker interface {
	Peek(p region.Ptr) ([]byte, region.Version, error)
}

// peek reads an object and adds it to sources.
func peek(pk peeker, p region.Ptr, sources []txn.Source) ([]byte, []txn.Source, error) {
	b, v, err := pk.Peek(p)
	if err != nil {
		return nil, sources, err
	}
	return b, append(sources, txn.Source{Ptr: p, Version: v}), nil
}

// asksMax bounds the attempts at one question, which is asked again whenever a change has overtaken
// it. After these the transaction backs off.
const asksMax = 100

// ask looks key up for a transaction, and appends the pages on which the answer depends to
// sources: the page that holds the key, or, for an absent key, all pages where it could be
// inserted.
func (tb *Table) ask(pk peeker, h uint64, key []byte, sources []txn.Source) (value []byte, found bool, _ []txn.Source, err error) {
	o, err := tb.open()
	if err != nil {
		return nil, false, sources, err
	}
	for range asksMax {
		value, found, sources, err = tb.askOnce(pk, o, h, key, sources[:0])
		if err == nil || !overtaken(err) {
			return value, found, sources, err
		}
		tb.stats.restarts.Add(1)
	}
	if _, fresh := pk.(*txn.Fresh); fresh {
		return nil, false, sources, txn.ErrStale
	}
	return nil, false, sources, &txn.AbortError{Reason: txn.ReasonBusy, Addr: tb.anchor.Addr}
}

// askOnce looks up a key once, and returns the value, whether the key is in the table, and the sources of the answer.
func (tb *Table) askOnce(pk peeker, o *opened, h uint64, key []byte, sources []txn.Source) ([]byte, bool, []txn.Source, error) {
	if t, ok := pk.(*txn.Tx); ok {
		value, found, seen := o.glanceIn(t, h, key, sources[:0])
		if len(seen) > 0 { // the glance has decided
			return value, found, seen, nil
		}
	}
	s := seeks.Get().(*seek)
	defer s.free()
	s.begin(tb, o, o.dir.find(h), h, key, sources)
	var err error
	if t, ok := pk.(*txn.Tx); ok {
		s.pair = !tb.m.IsPrimary(s.first.Addr) // there a second copy costs little, here it costs as much as the first
		err = tb.client.Find(t.Context(), t, s)
	} else {
		err = lookup.Walk(pk, s)
	}
	return s.value, s.found, s.sources, err
}
