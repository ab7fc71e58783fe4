package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/store"
)

// An Access is a way to read a table: by ranges of one index or, for an OR, by ranges of several indexes.
type Access struct {
	// Branches are read one after the other. If a row meets the conditions of several branches,
	// only the first of them returns it.
	Branches []Branch
	// Ordered is set if the rows come in the wanted order. Reverse is set if the index must be read backwards for that.
	Ordered, Reverse bool
	// Covers is set if all rows that the access reads meet the scan's condition, except in ranges with IsWide set
	// (store.KeyRange).
	Covers bool
}

// A Branch reads ranges of an index.
type Branch struct {
	Index *store.KeyInfo
	// Parts bound the first columns of the index. All but the last give single values.
	Parts []Part
	// Alternatives replace Parts if the branch reads the rows of several conditions, all by the same index.
	Alternatives []Branch
	// Condition is the condition that the branch's rows meet; set if there are several branches.
	Condition Condition
}

// A Part bounds a column of an index: by Values, by NULL, by a column of an earlier table of the
// join (Outer), or by Bounds and Likes together.
type Part struct {
	Column int
	Values []Operand
	Null   bool
	Outer  *int // number of the column in the join's rows; nil if not set
	Bounds []Compare
	Likes  []Like
}

// isPoints reports whether the part gives single values.
func (p *Part) isPoints() bool { return p.isEqual() || p.Null }

// isEqual reports whether the part gives single values that are not NULL.
func (p *Part) isEqual() bool { return len(p.Values) > 0 || p.Outer != nil }

// isSingle reports whether the part gives exactly one value, which may be NULL.
func (p *Part) isSingle() bool {
	return (len(p.Values) == 1 && !p.Values[0].IsList) || p.Null || p.Outer != nil
}

// IsUnique reports whether the branch reads whole unique keys without NULL, so that each key has one row at most.
func (b *Branch) IsUnique(table *store.TableInfo) bool {
	isUniqueIndex := (b.Index == table.PrimaryKey && !table.IsKeyless()) || b.Index.Unique
	return isUniqueIndex && len(b.Parts) > 0 && len(b.Parts) >= len(b.Index.Columns) &&
		!slices.ContainsFunc(b.Parts, func(p Part) bool { return !p.isEqual() })
}

// String returns the access as plans show it.
func (a *Access) String() string {
	var s []string
	for i := range a.Branches {
		s = append(s, a.Branches[i].String())
	}
	text := strings.Join(s, ", then ")
	if a.Ordered {
		text += ", in order"
	}
	if a.Reverse {
		text += ", backwards"
	}
	return text
}

// String returns the branch as plans show it.
func (b *Branch) String() string {
	s := b.Index.Name
	for _, p := range b.Parts {
		s += " " + p.String()
	}
	for i := range b.Alternatives {
		if i > 0 {
			s += " or"
		}
		s += strings.TrimPrefix(b.Alternatives[i].String(), b.Index.Name)
	}
	return s
}

// String returns the part as plans show it.
func (p Part) String() string {
	switch {
	case p.Null:
		return IsNull{Column: p.Column}.String()
	case p.Outer != nil:
		return equal{p.Column, *p.Outer}.String()
	case p.isSingle():
		return Compare{p.Column, Equal, p.Values[0]}.String()
	case len(p.Values) > 0:
		return In{Column: p.Column, Values: p.Values}.String()
	}
	var s []string
	for _, c := range p.Bounds {
		s = append(s, c.String())
	}
	for _, c := range p.Likes {
		s = append(s, c.String())
	}
	return fmt.Sprint(strings.Join(s, " "))
}

// accesses returns the ways to read a table for a condition, except those that are certainly worse
// than another. It returns none if no index can be used: the whole table is read then. If each access
// for the AND may turn out to read a whole index, an access to the whole table is added.
func accesses(table *store.TableInfo, where Condition) []Access {
	all := conjuncts(where)
	var list []Access
	for _, b := range branches(table, all) {
		if b.IsUnique(table) {
			return []Access{{Branches: []Branch{b}}}
		}
		list = append(list, Access{Branches: []Branch{b}})
	}
	needsNoScan := len(list) == 0 // only accesses for ORs follow then
	for _, c := range all {
		if or, ok := c.(Or); ok {
			if a, ok := union(table, or); ok {
				list = append(list, a)
			}
		}
	}
	for i := range list {
		needsNoScan = needsNoScan || list[i].isBounded()
	}
	if !needsNoScan { // a pattern may have no bound
		list = append(list, Access{Branches: []Branch{{Index: table.PrimaryKey}}})
	}
	return list
}

// isBounded reports whether an access reads only a part of an index, whatever the values are: no branch begins with
// patterns alone. Alternatives are not looked at.
func (a *Access) isBounded() bool {
	return !slices.ContainsFunc(a.Branches, func(b Branch) bool { return len(b.Parts) > 0 && b.Parts[0].hasPatternsOnly() })
}

// hasPatternsOnly reports whether only patterns bound a column.
func (p *Part) hasPatternsOnly() bool { return !p.isPoints() && len(p.Bounds) == 0 }

// branches returns a branch for each index whose first column a conjunction bounds.
func branches(table *store.TableInfo, all []Condition) []Branch {
	var list []Branch
	for _, k := range table.Keys() {
		b, ok := branch(table, k, all)
		if ok && len(b.Parts) > 0 {
			list = append(list, b)
		}
	}
	return list
}

// branch returns the branch of an index for a conjunction, without Parts if the conjunction does not bound the first
// column. It returns false for an index that no range can be read of: a spatial one, the row numbers of a keyless table,
// or a hash index if a column has no values.
func branch(table *store.TableInfo, k *store.KeyInfo, all []Condition) (Branch, bool) {
	b := Branch{Index: k}
	if k.Spatial || (k == table.PrimaryKey && table.IsKeyless()) {
		return b, false
	}
	for _, column := range k.LookupColumns() {
		p := partOf(column, all)
		if !p.isPoints() && len(p.Bounds)+len(p.Likes) == 0 {
			break
		}
		b.Parts = append(b.Parts, p)
		if !p.isPoints() {
			break
		}
	}
	if k.Access == catalog.AccessHash {
		isWholeKey := len(b.Parts) >= len(k.Columns) && !slices.ContainsFunc(b.Parts, func(p Part) bool { return !p.isEqual() })
		b.Parts = b.Parts[:min(len(b.Parts), len(k.Columns))]
		return b, isWholeKey
	}
	return b, true
}

// partOf returns the part by which a conjunction bounds a column: the first equality or IS NULL, else the IN with the
// fewest values, else all bounds and patterns.
func partOf(column int, all []Condition) Part {
	p := Part{Column: column}
	for _, c := range all {
		switch c := c.(type) {
		case Compare:
			switch {
			case c.Column != column || c.Op == NotEqual:
			case c.Op == Equal:
				return Part{Column: column, Values: []Operand{c.Value}}
			default:
				p.Bounds = append(p.Bounds, c)
			}
		case In:
			if c.Column == column && !c.Not && (p.Values == nil || len(c.Values) < len(p.Values)) {
				p.Values = c.Values
			}
		case IsNull:
			if c.Column == column && !c.Not {
				return Part{Column: column, Null: true}
			}
		case Like:
			if c.Column == column {
				p.Likes = append(p.Likes, c)
			}
		case equal:
			if c.Column == column {
				return Part{Column: column, Outer: &c.Outer}
			}
		}
	}
	if p.Values != nil {
		p.Bounds, p.Likes = nil, nil
	}
	return p
}

// union returns the access for an OR. Of the indexes that a condition of the OR bounds, it takes a unique one or, if there
// is none, the one with the most parts that give single values. It returns false if a condition bounds no index, or if
// several indexes need more than branchesMax branches.
func union(table *store.TableInfo, or Or) (Access, bool) {
	var a Access
	for _, c := range or {
		var best Branch
		for _, b := range branches(table, conjuncts(c)) {
			if best.Index == nil || b.IsUnique(table) || (!best.IsUnique(table) && b.points() > best.points()) {
				best = b
			}
		}
		if best.Index == nil {
			return Access{}, false
		}
		best.Condition = c
		a.Branches = append(a.Branches, best)
	}
	index := a.Branches[0].Index
	if !slices.ContainsFunc(a.Branches, func(b Branch) bool { return b.Index != index }) {
		return Access{Branches: []Branch{{Index: index, Alternatives: a.Branches}}}, true
	}
	return a, len(a.Branches) <= branchesMax
}

// branchesMax bounds the branches of an access, because each row is tested against all earlier branches.
const branchesMax = 32

// points returns the number of parts that give single values.
func (b *Branch) points() int {
	n := 0
	for i := range b.Parts {
		if b.Parts[i].isPoints() {
			n++
		}
	}
	return n
}

// order marks the accesses of list that return rows in the wanted order. For each other index that has this order it adds
// an access. An access with several branches has no order.
func order(table *store.TableInfo, list []Access, where Condition, wanted []Order) []Access {
	known := make(map[*store.KeyInfo]bool)
	for i := range list {
		if len(list[i].Branches) > 1 {
			continue
		}
		b := &list[i].Branches[0]
		known[b.Index] = true
		list[i].Ordered, list[i].Reverse = ordered(table, b, wanted)
		if b.IsUnique(table) && !slices.ContainsFunc(b.Parts, func(p Part) bool { return !p.isSingle() }) {
			list[i].Ordered = true // the access returns one row at most
		}
	}
	for _, k := range table.Keys() {
		if known[k] || len(wanted) == 0 {
			continue
		}
		b, ok := branch(table, k, conjuncts(where))
		if !ok {
			continue
		}
		if isOrdered, reverse := ordered(table, &b, wanted); isOrdered {
			list = append(list, Access{Branches: []Branch{b}, Ordered: true, Reverse: reverse})
		}
	}
	return list
}

// ordered reports whether a branch's rows come in the wanted order, perhaps if the index is read in reverse. It ignores
// columns that have a single value.
func ordered(table *store.TableInfo, b *Branch, wanted []Order) (ok, reverse bool) {
	k := b.Index
	if k.Access == catalog.AccessHash || (k == table.PrimaryKey && table.IsKeyless()) || slices.ContainsFunc(k.Codecs, hasPrefix) {
		return false, false
	}
	columns, single := k.LookupColumns(), make(map[int]bool)
	for i := range b.Parts {
		if b.Parts[i].isSingle() {
			single[b.Parts[i].Column] = true
		}
	}
	at := 0
	skip := func() {
		for at < len(columns) && single[columns[at]] {
			at++
		}
	}
	hasDirection := false // a column has decided the direction
	for _, o := range wanted {
		if o.Column < 0 {
			return false, false
		}
		if single[o.Column] {
			continue
		}
		skip()
		if at == len(columns) {
			return isWhole(table, k), reverse // no two rows are equal in all columns of the entries
		}
		if columns[at] != o.Column || (hasDirection && o.Desc != reverse) {
			return false, false
		}
		hasDirection, reverse = true, o.Desc
		at++
	}
	return true, reverse
}
