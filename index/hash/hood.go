package hash

import (
	"bytes"
	"fmt"

	"github.com/farmsql/farmsql/region"
)

// A spot is where a pair is: in the home bucket, the one after it, or a block of
// the home's chain. Spots are numbered in the order in which a lookup reads.
type spot struct {
	page int // 0 home, 1 neighbour, 2.. blocks
	slot int
}

// A hood is all that a lookup of a key with one home may read: the home, its
// neighbour, and the home's chain.
type hood struct {
	e     *editor
	home  int
	pages []page
	ptrs  []region.Ptr
}

// chainMax bounds the walk along a chain: more blocks than that are a cycle.
const chainMax = 1 << 20

// hood reads the neighbourhood of home and the chain.
func (e *editor) hood(home int) (*hood, error) {
	n := &e.hoods[e.turn]
	e.turn ^= 1
	*n = hood{e: e, home: home, pages: n.pages[:0], ptrs: n.ptrs[:0]}
	for i := range 2 {
		p, err := e.bucket(home + i)
		if err != nil {
			return nil, err
		}
		n.pages = append(n.pages, p)
		n.ptrs = append(n.ptrs, e.first.Element(home+i))
	}
	for last := n.pages[0]; ; last = n.pages[len(n.pages)-1] {
		l, err := last.link()
		if err != nil {
			return nil, err
		}
		if l.ptr.IsNil() {
			e.chained = max(e.chained, len(n.pages)-2)
			return n, nil
		}
		if len(n.pages) > chainMax {
			return nil, fmt.Errorf("%w: endless chain at %v", ErrCorrupt, n.ptrs[0])
		}
		b, err := e.st.Read(l.ptr)
		if err != nil {
			return nil, err
		}
		p := e.lay.block(b)
		if p.u16(chainVersion) != l.version {
			return nil, errOvertaken
		}
		n.pages, n.ptrs = append(n.pages, p), append(n.ptrs, l.ptr)
	}
}

// edit opens page i of the neighbourhood for writing.
func (n *hood) edit(i int) (page, error) {
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

// before returns the page that links to page i, which is a block.
func before(i int) int {
	if i == 2 {
		return 0
	}
	return i - 1
}

// find returns where key is.
func (n *hood) find(h uint64, key []byte) (spot, bool, error) {
	for i, p := range n.pages {
		for k := p.find(0, h, key, i == 1); k >= 0; k = p.find(k+1, h, key, i == 1) {
			s := p.slot(k)
			if !s.outside() {
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
	return spot{}, false, nil
}
