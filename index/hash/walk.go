package hash

import (
	"fmt"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// A walk reads the pages that a lookup in one home may need, for a transaction, and
// records the sources of the answer.
type walk struct {
	tb    *Table
	pk    peeker
	lay   *layout
	first region.Ptr // the home
	// sources are the pages read so far.
	sources []txn.Source
	// second is the neighbour's payload if it was read together with the home.
	second []byte
}

// home reads the home. From another machine it reads the neighbour as well, by the same
// READ.
func (w *walk) home() (page, error) {
	t, ok := w.pk.(*txn.Tx)
	if !ok || w.tb.m.IsPrimary(w.first.Addr) {
		b, err := w.peek(w.first)
		return w.lay.bucket(b), err
	}
	a, b, va, vb, err := t.PeekPair(w.first)
	if err != nil {
		return page{}, err
	}
	w.second = b
	w.sources = append(w.sources, txn.Source{Ptr: w.first, Version: va}, txn.Source{Ptr: w.first.Element(1), Version: vb})
	return w.lay.bucket(a), nil
}

func (w *walk) peek(p region.Ptr) ([]byte, error) {
	b, sources, err := peek(w.pk, p, w.sources)
	w.sources = sources
	return b, err
}

// neighbour reads the bucket after the home, and checks that both were read in one
// state.
func (w *walk) neighbour(home page) (page, error) {
	b := w.second
	if b == nil {
		var err error
		if b, err = w.peek(w.first.Element(1)); err != nil {
			return page{}, asDestroyed(err)
		}
	}
	next := w.lay.bucket(b)
	if !joint(home, next) {
		return page{}, errOvertaken
	}
	return next, nil
}

// block reads the block that p links to, or returns false at the chain's end.
func (w *walk) block(p page) (page, region.Ptr, bool, error) {
	l, err := p.link()
	if err != nil || l.ptr.IsNil() {
		return page{}, l.ptr, false, err
	}
	if l.ptr.Capacity() < w.lay.blockBytes() || len(w.sources) > chainMax {
		return page{}, l.ptr, false, fmt.Errorf("%w: block %v, %d pages on", ErrCorrupt, l.ptr, len(w.sources))
	}
	b, err := w.peek(l.ptr)
	if err != nil {
		return page{}, l.ptr, false, err
	}
	next := w.lay.block(b)
	if next.u16(chainVersion) != l.version && !sabotage.ChainVersion.Skipped() {
		return page{}, l.ptr, false, errOvertaken
	}
	return next, l.ptr, true, nil
}

// pair reads an outside pair's object.
func (w *walk) pair(s slot) (key, value []byte, err error) {
	_, ptr, err := s.pair()
	if err != nil {
		return nil, nil, err
	}
	b, err := w.peek(ptr)
	if err != nil {
		return nil, nil, err
	}
	return decodePair(b)
}

// visitHome calls visit with the slot, key and value of each pair whose key has this home.
func (w *walk) visitHome(home page, visit func(s slot, key, value []byte) error) error {
	next, err := w.neighbour(home)
	if err != nil {
		return err
	}
	if err := w.visitPage(home, false, visit); err != nil {
		return err
	}
	if err := w.visitPage(next, true, visit); err != nil {
		return err
	}
	for p := home; ; { // p goes along the chain
		b, _, more, err := w.block(p)
		if err != nil || !more {
			return err
		}
		if err := w.visitPage(b, false, visit); err != nil {
			return err
		}
		p = b
	}
}

// visitPage visits those pairs of a page whose home is the page, or its chain's home; or, if next is
// true, those whose home is the bucket before the page.
func (w *walk) visitPage(p page, next bool, visit func(s slot, key, value []byte) error) error {
	for k := range p.slots {
		s := p.slot(k)
		if !s.used() || s.next() != next {
			continue
		}
		if err := s.valid(w.lay); err != nil {
			return err
		}
		key, value := []byte(nil), []byte(nil)
		var err error
		if s.outside() {
			key, value, err = w.pair(s)
		} else {
			key, value = s.key(), s.value()
		}
		if err == nil {
			err = visit(s, key, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
