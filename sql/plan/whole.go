package plan

import (
	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/store"
)

// findWhole tells each scan whether all of its rows are read, and marks the accesses that cover its
// condition. whole is set if all rows of n are read. Only nodes that read all rows of their
// children pass it on.
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

// findCovers marks the accesses of a scan that read only rows that meet its condition.
func (s *Scan) findCovers() {
	for i := range s.Access {
		if a := &s.Access[i]; len(a.Branches) == 1 {
			a.Covers = covers(s.Table, &a.Branches[0], conjuncts(s.Where))
		}
	}
}

// covers reports whether a branch's parts express all conditions of a conjunction, on columns whose
// different values always have different keys. The range for some values may still be wide.
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

// areBothEnds reports whether the bounds of a column are at most one lower and one upper bound.
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
