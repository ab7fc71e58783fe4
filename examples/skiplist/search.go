package skiplist

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
	"github.com/farmsql/farmsql/txn/outcome"
)

// restartsMax bounds how often a search begins again because a node on its way has been removed.
const restartsMax = 1000

// errOvertaken ends a search after restartsMax; running it again may succeed.
var errOvertaken = fmt.Errorf("skiplist: list kept changing: %w", outcome.ErrConflict)

// A search is one lookup of a key, as a lookup.Search. It first tries the node that is cached for
// the key. If that fails, and it is not to ask the owner, it walks through the list.
type search struct {
	list *List
	key  []byte

	// guess is the cached node. hasGuessed says that it has been read, or that no node is cached.
	guess      region.Ptr
	hasGuessed bool
	// node is the latest node before the key that the walk has reached, nil at the start. source is its
	// pointer and version. next is the node after it on level, and will be read next.
	node     node
	source   txn.Source
	next     region.Ptr
	level    int
	restarts int

	// found, value and sources are the answer.
	found   bool
	value   []byte
	sources []txn.Source
}

// Start implements lookup.Search.
func (s *search) Start(walk bool) (lookup.Place, bool) {
	if !s.hasGuessed {
		if p, ok := s.list.cache.get(s.key); ok {
			s.guess = p
			return lookup.Place{Ptr: p}, true
		}
		s.hasGuessed = true
	}
	switch {
	case !walk:
		return lookup.Place{}, false
	case s.node == nil:
		s.next = s.list.head
	}
	return lookup.Place{Ptr: s.next}, true
}

// End implements lookup.Search.
func (s *search) End(got []lookup.Object, failed error) (decided bool, err error) {
	if failed != nil {
		return false, s.fail(failed)
	}
	n, err := parse(got[0].Payload)
	if err != nil {
		return false, err
	}
	if !s.hasGuessed {
		s.hasGuessed = true
		if bytes.Equal(n.key(), s.key) {
			s.find(got[0].Source, n)
			return true, nil
		}
		s.list.cache.drop(s.key, s.guess)
		return false, nil
	}
	return s.step(got[0].Source, n)
}

// fail handles an error of reading a node. A node that has been freed does not end the search: if
// it was the cached node, the cache drops it; otherwise the walk begins again at the head.
func (s *search) fail(failed error) error {
	isHead := s.hasGuessed && s.node == nil // the walk had not passed the head yet
	if !errors.Is(failed, region.ErrFreed) || isHead {
		return failed // another error, or the head is gone
	}
	if !s.hasGuessed {
		s.hasGuessed = true
		s.list.cache.drop(s.key, s.guess)
		return nil
	}
	if s.restarts++; s.restarts > restartsMax {
		return errOvertaken
	}
	s.node = nil
	return nil
}

// step continues the walk with n, the node that was just read. If n is beyond the key, the walk
// stays at its node, otherwise it moves to n. Then it chooses the highest level, not above the
// present one, with a next node to read.
func (s *search) step(source txn.Source, n node) (decided bool, err error) {
	switch order := bytes.Compare(n.key(), s.key); {
	case s.node == nil: // n is the head
		s.level = heightMax - 1
		s.node, s.source = n, source
	case order == 0:
		s.find(source, n)
		return true, nil
	case order < 0:
		s.node, s.source = n, source
	default:
		s.level--
	}
	tooFar := source.Ptr // n need not be read again
	for ; s.level >= 0; s.level-- {
		if s.next, err = s.node.next(s.level); err != nil {
			return false, err
		}
		if !s.next.IsNil() && s.next != tooFar {
			return false, nil
		}
	}
	s.sources = []txn.Source{s.source} // the node before the key's place, which changes if the key is inserted
	return true, nil
}

// find ends the search at the key's node.
func (s *search) find(source txn.Source, n node) {
	s.found, s.value, s.sources = true, n.value(), []txn.Source{source}
	s.list.remember(s.key, source.Ptr)
}

// remember caches where a key is. The handle of answer has no cache.
func (l *List) remember(key []byte, p region.Ptr) {
	if l.cache != nil {
		l.cache.put(key, p)
	}
}

// Owner implements lookup.Search: the nodes are near the head.
func (s *search) Owner() region.Addr { return s.list.head.Addr }

// Request implements lookup.Search.
func (s *search) Request(b []byte) []byte { return append(s.list.head.Append(b), s.key...) }

// Learn implements lookup.Search.
func (s *search) Learn(a lookup.Answer) error {
	if len(a.Sources) != 1 {
		return fmt.Errorf("%w: an answer with %d sources", ErrCorrupt, len(a.Sources))
	}
	s.found, s.value, s.sources = a.Found, a.Value, a.Sources
	if a.Found {
		s.list.remember(s.key, a.Sources[0].Ptr)
	}
	return nil
}

// A question is a search whose answer a transaction depends on.
type question struct{ search }

// Sources implements txn.Question.
func (q *question) Sources() []txn.Source { return q.sources }

// Ask implements txn.Question.
func (q *question) Ask(f *txn.Fresh) (same bool, err error) {
	again := &search{list: q.list, key: q.key, hasGuessed: true}
	if err := lookup.Walk(f, again); errors.Is(err, errOvertaken) {
		return false, txn.ErrStale
	} else if err != nil {
		return false, err
	}
	q.sources = again.sources
	return again.found == q.found && bytes.Equal(again.value, q.value), nil
}
