package plan

import (
	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/store"
)

// findWhole tells scans whether all of their rows are read, and what their accesses cover. whole says
// that all rows of n are read; only nodes that are known to read all rows of their children pass it on.
func findWhole(n Node, whole bool) {
	switch n := n.(type) {
	case *Scan:
		n.Whole = whole && !n.End
		n.findCovers()
	case *Group:
		whole = true
	case *Sort, *Filter, *Project, *Derived:
	default:
		whole = false
	}
	for _, child := range childrenOf(n) {
		findWhole(child, whole)
	}
}

// findCovers marks the accesses of a scan whose ranges leave out all rows that do not meet its
// condition.
func (s *Scan) findCovers() {
	for i := range s.Access {
		if a := &s.Access[i]; len(a.Branches) == 1 {
			a.Covers = covers(s.Table, &a.Branches[0], conjuncts(s.Where))
		}
	}
}

// covers reports whether a branch's parts are all conditions of a conjunction, on columns whose keys
// tell all values apart. The ranges for some values may still be wide.
func covers(table *store.TableInfo, b *Branch, all []Condition) bool {
	if len(b.Alternatives) > 0 {
		return false
	}
	met := 0
	for i := range b.Parts {
		p := &b.Parts[i]
		if codec := table.Codec(p.Column); !codec.IsInteger() && codec.Kind != catalog.KindDecimal {
			return false
		}
		switch {
		case p.isPoints():
			met++
		case len(p.Likes) > 0 || !areBothEnds(p.Bounds):
			return false
		default:
			met += len(p.Bounds)
		}
	}
	return met == len(all)
}

// areBothEnds reports whether bounds of a column are one at each end at most.
func areBothEnds(bounds []Compare) bool {
	var lower, upper int
	for _, c := range bounds {
		switch c.Op {
		case Less, LessEqual:
			upper++
		case Greater, GreaterEqual:
			lower++
		}
	}
	return lower <= 1 && upper <= 1
}
