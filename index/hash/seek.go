package hash

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/lookup"
)

// A seek looks for a key in copies of the objects where it may be: the home, the bucket after it, the blocks of the
// chain, and after each of these pages the objects of its outside pairs that may have the key. It is the hash table's
// lookup.Search, inside of transactions and outside of them, at the shard's primary and elsewhere.
type seek struct {
	tb    *Table
	o     *opened
	h     uint64
	key   []byte
	shard *shard
	// pair says that the two buckets are read together.
	pair bool

	stage stage
	first region.Ptr // the home
	home  page
	// after is the bucket after the home, without bytes until it has been read.
	after page
	// page is the page being searched, from slot on, and at is its pointer. inAfter says that page is the bucket after
	// the home.
	page    page
	at      region.Ptr
	slot    int
	inAfter bool
	outside region.Ptr // the object of an outside pair, to be read
	link    link       // to the block to be read
	blocks  int

	// found, value and sources are the answer; until then, sources are all objects that were read.
	found   bool
	value   []byte
	sources []txn.Source
}

// A stage is what a seek reads next.
type stage uint8

const (
	atBuckets stage = iota // the home, with the bucket after it if pair is set
	atAfter
	atOutside
	atBlock
)

// begin prepares s to look for a key with hash h in a shard. sources is memory for the sources.
func (s *seek) begin(tb *Table, o *opened, in *shard, h uint64, key []byte, sources []txn.Source) {
	*s = seek{tb: tb, o: o, h: h, key: key, shard: in, sources: sources[:0]}
	s.enter(in)
}

// enter begins the search of a shard.
func (s *seek) enter(in *shard) {
	s.shard, s.stage, s.first = in, atBuckets, in.first.Element(bucketOf(s.h, s.o.buckets))
	s.sources, s.after, s.blocks = s.sources[:0], page{}, 0
}

// Start implements lookup.Search: the directory always knows where to read.
func (s *seek) Start(bool) (lookup.Place, bool) {
	switch s.stage {
	case atBuckets:
		return lookup.Place{Ptr: s.first, Pair: s.pair}, true
	case atAfter:
		return lookup.Place{Ptr: s.first.Element(1)}, true
	case atOutside:
		return lookup.Place{Ptr: s.outside}, true
	}
	return lookup.Place{Ptr: s.link.ptr}, true
}

// End implements lookup.Search.
func (s *seek) End(got []lookup.Object, failed error) (decided bool, err error) {
	if failed != nil {
		if s.stage == atBuckets || s.stage == atAfter { // they exist as long as the table
			failed = asDestroyed(failed)
		}
		return false, failed
	}
	for _, object := range got {
		s.sources = append(s.sources, object.Source)
	}
	switch b := got[0].Payload; s.stage {
	case atBuckets:
		return s.buckets(got)
	case atAfter:
		s.after = s.o.bucket(b)
		s.turn(s.after, got[0].Ptr, true)
	case atOutside:
		stored, value, err := decodePair(b)
		if err != nil {
			return false, err
		}
		if bytes.Equal(stored, s.key) {
			s.find(value, s.at, s.outside)
			return true, nil
		}
	case atBlock:
		p := s.o.block(b)
		if p.u16(chainVersion) != s.link.version && !sabotage.ChainVersion.Skipped() {
			return false, errOvertaken
		}
		s.turn(p, got[0].Ptr, false)
	}
	return s.scan()
}

// buckets takes the home, and the bucket after it if they were read together. If the home does not cover the
// key, because the directory is stale, the search begins again in another shard.
func (s *seek) buckets(got []lookup.Object) (decided bool, err error) {
	s.home = s.o.bucket(got[0].Payload)
	if len(got) > 1 {
		s.after = s.o.bucket(got[1].Payload)
	}
	depth, live := s.home.depth()
	if (!live || !s.shard.covers(s.h, depth)) && !sabotage.StaleDirectory.Skipped() {
		other, err := s.tb.follow(s.o, s.shard, s.h, depth, live)
		if err != nil {
			return false, err
		}
		s.enter(other)
		return false, nil
	}
	s.turn(s.home, s.first, false)
	return s.scan()
}

// turn begins the search of a page.
func (s *seek) turn(p page, at region.Ptr, inAfter bool) {
	s.page, s.at, s.slot, s.inAfter = p, at, 0, inAfter
}

// scan searches the rest of the page, and other pages that have been read. It stops when it has found the key, when it
// has searched all pages, or when another object has to be read.
func (s *seek) scan() (decided bool, err error) {
	for {
		if decided, more, err := s.scanPage(); decided || more || err != nil {
			return decided, err
		}
		switch {
		case s.inAfter && !joint(s.home, s.after) && !sabotage.JointBuckets.Skipped():
			return false, errOvertaken
		case s.inAfter:
			return s.toBlock(s.home)
		case s.blocks > 0:
			return s.toBlock(s.page)
		case s.after.b == nil:
			s.stage = atAfter
			return false, nil
		}
		s.turn(s.after, s.first.Element(1), true)
	}
}

// scanPage searches the rest of the page. more is true if an outside pair has to be read.
func (s *seek) scanPage() (decided, more bool, err error) {
	k := s.page.find(s.slot, s.h, s.key, s.inAfter)
	if k < 0 {
		return false, false, nil
	}
	s.slot = k + 1
	found := s.page.slot(k)
	if !found.outside() {
		s.find(found.value(), s.at)
		return true, false, nil
	}
	_, s.outside, err = found.pair()
	s.stage = atOutside
	return false, true, err
}

// toBlock prepares to read the block that p links to. Without such a block the key is not in the table.
func (s *seek) toBlock(p page) (decided bool, err error) {
	if s.link, err = p.link(); err != nil || s.link.ptr.IsNil() {
		return err == nil, err
	}
	if s.blocks++; s.link.ptr.Capacity() < s.o.blockBytes() || s.blocks > chainMax {
		return false, fmt.Errorf("%w: block %v, %d on", ErrCorrupt, s.link.ptr, s.blocks)
	}
	s.stage = atBlock
	return false, nil
}

// find ends the search with a value, whose sources are the objects at ptrs.
func (s *seek) find(value []byte, ptrs ...region.Ptr) {
	s.found, s.value, s.sources = true, value, only(s.sources, ptrs)
}

// only returns the sources at ptrs, in the memory of sources.
func only(sources []txn.Source, ptrs []region.Ptr) []txn.Source {
	kept := sources[:0]
	for _, s := range sources {
		for _, p := range ptrs {
			if s.Ptr == p {
				kept = append(kept, s)
			}
		}
	}
	return kept
}

// Owner implements lookup.Search.
func (s *seek) Owner() region.Addr { return s.first.Addr }

// Request implements lookup.Search.
func (s *seek) Request(b []byte) []byte { return appendKey(s.tb.anchor.Append(b), s.key) }

// Learn implements lookup.Search.
func (s *seek) Learn(a lookup.Answer) error {
	s.found, s.value, s.sources = a.Found, a.Value, append(s.sources[:0], a.Sources...)
	return nil
}

var seeks = sync.Pool{New: func() any { return new(seek) }}

// free gives s back to the pool, without the sources, which belong to the transaction.
func (s *seek) free() {
	*s = seek{}
	seeks.Put(s)
}
