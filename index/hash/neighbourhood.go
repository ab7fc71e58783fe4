package hash

import (
	"bytes"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// A spot is the place of a pair: in the home bucket, the one after it, or a block of
// the home's chain. Spots are ordered as a lookup reads them.
type spot struct {
	page int // 0 is the home, 1 the neighbour, 2 and more are the chain's blocks
	slot int
}

// A neighbourhood holds the pages that the lookup of a key may read: the key's home bucket, the
// bucket after it, and the home's chain. A page is read only when it is needed, because every page
// that was read must be unchanged at commit.
type neighbourhood struct {
	e    *editor
	home int
	// pages are the pages read so far, ptrs the pointers to these pages.
	pages []page
	ptrs  []region.Ptr
}

// chainMax bounds the walk along a chain: more blocks than that are a cycle.
const chainMax = 1 << 20

// neighbourhood returns the neighbourhood of home, and reads only the home bucket.
func (e *editor) neighbourhood(home int) (*neighbourhood, error) {
	n := &e.neighbourhoods[e.turn]
	e.turn ^= 1
	n.cut(0)
	n.e, n.home = e, home
	p, err := e.bucket(home)
	n.pages, n.ptrs = append(n.pages, p), append(n.ptrs, e.first.Element(home))
	return n, err
}

// cut drops the pages from i on.
func (n *neighbourhood) cut(i int) {
	clear(n.pages[i:])
	n.pages, n.ptrs = n.pages[:i], n.ptrs[:i]
}

// readNext reads the next page, or returns false if there is none.
func (n *neighbourhood) readNext() (bool, error) {
	i := len(n.pages)
	if i == 1 {
		p, err := n.e.bucket(n.home + 1)
		n.pages, n.ptrs = append(n.pages, p), append(n.ptrs, n.e.first.Element(n.home+1))
		return true, err
	}
	l, err := n.pages[linkedFrom(i)].link()
	if err != nil || l.ptr.IsNil() {
		return false, err
	}
	if i > chainMax {
		return false, fmt.Errorf("%w: endless chain at %v", ErrCorrupt, n.ptrs[0])
	}
	b, err := n.e.st.Read(l.ptr)
	if err != nil {
		return false, err
	}
	p := n.e.lay.block(b)
	if p.u16(chainVersion) != l.version {
		return false, errOvertaken
	}
	n.pages, n.ptrs = append(n.pages, p), append(n.ptrs, l.ptr)
	n.e.chained = max(n.e.chained, i-1)
	return true, nil
}

// rest reads all pages that have not been read yet.
func (n *neighbourhood) rest() error {
	for {
		if more, err := n.readNext(); !more || err != nil {
			return err
		}
	}
}

// edit opens page i of the neighbourhood for writing.
func (n *neighbourhood) edit(i int) (page, error) {
	var p page
	var err error
	if i < 2 {
		p, err = n.e.editBucket(n.home + i)
	} else {
		var b []byte
		b, err = n.e.st.Write(n.ptrs[i])
		p = n.e.lay.block(b)
	}
	if err == nil {
		n.pages[i] = p
	}
	return p, err
}

// linkedFrom returns the number of the page that links to page i, a block of the chain.
func linkedFrom(i int) int {
	if i == 2 {
		return 0
	}
	return i - 1
}

// find returns the spot of key; false if there is none. It reads pages only as far as it must.
func (n *neighbourhood) find(h uint64, key []byte) (spot, bool, error) {
	for i := 0; ; i++ {
		if i == len(n.pages) {
			if more, err := n.readNext(); !more || err != nil {
				return spot{}, false, err
			}
		}
		p := n.pages[i]
		isNeighbour := i == 1
		for k := p.find(0, h, key, isNeighbour); k >= 0; k = p.find(k+1, h, key, isNeighbour) {
			s := p.slot(k)
			if !s.outside() { // p.find has compared the key; of an outside one only the hash
				return spot{i, k}, true, nil
			}
			stored, _, err := n.e.pair(s)
			if err != nil {
				return spot{}, false, err
			}
			if bytes.Equal(stored, key) {
				return spot{i, k}, true, nil
			}
		}
	}
}
