package hash

import (
	"bytes"
	"slices"

	"github.com/farmsql/farmsql/region"
)

// take removes and returns those pairs of this home for which goes(hash) is true. A split uses it
// to move half of a shard's pairs, home by home. Outside pairs keep their objects. Pairs that stay
// in the chain move into slots that have become free before them.
func (e *editor) take(home int, goes func(h uint64) bool) ([]slot, error) {
	n, err := e.neighbourhood(home)
	if err == nil {
		err = n.rest()
	}
	if err != nil {
		return nil, err
	}
	var taken []slot
	for i := range 2 {
		if taken, err = n.takeFromBucket(i, goes, taken); err != nil {
			return nil, err
		}
	}
	if len(n.pages) == 2 {
		return taken, nil
	}
	var stay []slot
	for _, p := range n.pages[2:] {
		for k := range p.slots {
			s := p.slot(k)
			switch {
			case !s.used(): // a free slot
			case goes(s.hash(e.seed)):
				taken = append(taken, s.clone())
			default:
				stay = append(stay, s.clone())
			}
		}
	}
	return taken, n.rebuild(stay)
}

func (s slot) clone() slot { return slot{s.control, bytes.Clone(s.data)} }

// takeFromBucket moves pairs from bucket i to taken: the pairs of this home for which goes(hash) is
// true.
func (n *neighbourhood) takeFromBucket(i int, goes func(h uint64) bool, taken []slot) ([]slot, error) {
	for k := range n.pages[i].slots {
		s := n.pages[i].slot(k)
		hasThisHome := s.next() == (i == 1)
		if !s.used() || !hasThisHome || !goes(s.hash(n.e.seed)) {
			continue
		}
		taken = append(taken, s.clone())
		p, err := n.edit(i)
		if err != nil {
			return nil, err
		}
		p.clear(k)
	}
	return taken, nil
}

// rebuild replaces the contents of the chain by pairs. It puts as many as possible into
// free slots of the home and its neighbour, and the rest into as few of the chain's
// blocks as they need.
func (n *neighbourhood) rebuild(pairs []slot) error {
	for i := range 2 {
		for len(pairs) > 0 {
			k, ok := n.pages[i].free()
			if !ok {
				break
			}
			p, err := n.edit(i)
			if err != nil {
				return err
			}
			p.set(k, pairs[0], i == 1)
			pairs = pairs[1:]
		}
	}
	blocks := (len(pairs) + blockSlots - 1) / blockSlots
	for last := len(n.pages) - 1; last >= 2+blocks; last-- {
		if err := n.drop(last); err != nil {
			return err
		}
	}
	for c, block := range slices.Collect(slices.Chunk(pairs, blockSlots)) {
		p, err := n.edit(2 + c)
		if err != nil {
			return err
		}
		for k := range p.slots {
			p.clear(k)
		}
		for k, s := range block {
			p.set(k, s, false)
		}
	}
	return n.renew(2, len(n.pages)-1)
}

// add inserts a pair that take has removed from another shard. This shard must not have
// a pair with the same key.
func (e *editor) add(home int, s slot) error {
	n, err := e.neighbourhood(home)
	if err == nil {
		err = n.rest()
	}
	if err != nil {
		return err
	}
	return n.insert(s)
}

// free clears a bucket and frees the objects of its outside pairs, and up to limit
// blocks, with their pairs, from the beginning of its chain. It reports whether the
// chain is gone. It calls seen with each pair before it frees the pair. Pairs of this
// home that are in the neighbour stay until the neighbour is freed.
func (e *editor) free(bucket, limit int, seen func(s slot) error) (bool, error) {
	p, err := e.bucket(bucket)
	if err != nil {
		return false, err
	}
	if err := e.freePairs(p, seen); err != nil {
		return false, err
	}
	if p, err = e.editBucket(bucket); err != nil {
		return false, err
	}
	for k := range p.slots {
		p.clear(k)
	}
	l, err := p.link()
	for ; err == nil && !l.ptr.IsNil() && limit > 0; limit-- {
		l, err = e.freeBlock(l.ptr, seen)
	}
	if err != nil {
		return false, err
	}
	p.setLink(l)
	return l.ptr.IsNil(), nil
}

// freeBlock frees a block with its pairs and returns its link.
func (e *editor) freeBlock(ptr region.Ptr, seen func(s slot) error) (link, error) {
	b, err := e.st.Read(ptr)
	if err != nil {
		return link{}, err
	}
	p := e.lay.block(b)
	if err := e.freePairs(p, seen); err != nil {
		return link{}, err
	}
	l, err := p.link()
	if err != nil {
		return link{}, err
	}
	return l, e.st.Free(ptr)
}

// freePairs calls seen with each used slot of a page, and then frees its pair if that is outside of the slot.
func (e *editor) freePairs(p page, seen func(s slot) error) error {
	for k := range p.slots {
		s := p.slot(k)
		if !s.used() {
			continue
		}
		if err := seen(s); err != nil {
			return err
		}
		if !s.outside() {
			continue
		}
		_, ptr, err := s.pair()
		if err != nil {
			return err
		}
		if err := e.st.Free(ptr); err != nil {
			return err
		}
	}
	return nil
}
