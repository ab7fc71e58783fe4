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

// A search is one lookup of a key: the list's lookup.Search. It tries the node that is cached for the key first;
// then it goes through the list, if it has to do without the owner.
type search struct {
	list *List
	key  []byte

	// guess is the cached node. hasGuessed says that it has been read, or that no node is cached.
	guess      region.Ptr
	hasGuessed bool
	// node is where the search has come to, nil before the head, and source its pointer and version. next is the node
	// after it on level, which is to be read.
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

// fail takes the error of reading a node. One that is gone ends nothing: if it was cached, that is forgotten, if
// not, the search begins again at the head.
func (s *search) fail(failed error) error {
	if !errors.Is(failed, region.ErrFreed) || s.hasGuessed && s.node == nil {
		return failed // also if the head is gone
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

// step goes on from n, the node that was to be read. It goes there unless that is too far, and then along the
// highest level on which there is a node to be read.
func (s *search) step(source txn.Source, n node) (decided bool, err error) {
	switch order := bytes.Compare(n.key(), s.key); {
	case s.node == nil: // the head
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
	tooFar := source.Ptr
	for ; s.level >= 0; s.level-- {
		if s.next, err = s.node.next(s.level); err != nil {
			return false, err
		}
		if !s.next.IsNil() && s.next != tooFar {
			return false, nil
		}
	}
	s.sources = []txn.Source{s.source} // the node before the key's place: it changes if the key comes
	return true, nil
}

// find ends the search at the key's node.
func (s *search) find(source txn.Source, n node) {
	s.found, s.value, s.sources = true, n.value(), []txn.Source{source}
	s.list.remember(s.key, source.Ptr)
}

// remember caches where a key is.
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
