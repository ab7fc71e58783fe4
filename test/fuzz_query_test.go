package test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// A fuzzer makes up conditions and statements over some tables.
type fuzzer struct {
	*rand.Rand
	tables  []*fuzzTable
	aliases int
}

func (f *fuzzer) one(of ...string) string { return pick(f.Rand, of) }

// from makes up one table, or several that are joined.
func (f *fuzzer) from() (text string, refs []fuzzRef) {
	text, refs = f.table()
	for range f.IntN(3) {
		table, more := f.table()
		on := f.joinCondition(refs, more)
		join := f.one("join", "left join", "right join", "left join", "cross join")
		refs = append(refs, more...)
		text += " " + join + " " + table
		if join != "cross join" {
			text += " on " + on
		}
	}
	return text, refs
}

func (f *fuzzer) table() (text string, refs []fuzzRef) {
	t := pick(f.Rand, f.tables)
	alias := fmt.Sprintf("a%d", f.aliases)
	f.aliases++
	return t.name + " " + alias, t.refs(alias)
}

func (f *fuzzer) joinCondition(left, right []fuzzRef) string {
	on := f.condition(append(append([]fuzzRef{}, left...), right...), 0)
	for range 10 {
		c := pick(f.Rand, right)
		if same := columnsLike(left, c); len(same) > 0 {
			equal := pick(f.Rand, same).name + f.comparison(c.typ, " = ", " = ", " = ", " <=> ", " <= ") + c.name
			if f.IntN(3) == 0 {
				return equal + " and " + on
			}
			return equal
		}
	}
	return on
}

// condition makes up a condition on columns, with subqueries down to a depth.
func (f *fuzzer) condition(refs []fuzzRef, depth int) string {
	switch n := f.IntN(10); {
	case depth < 3 && n < 2:
		return "(" + f.condition(refs, depth+1) + " and " + f.condition(refs, depth+1) + ")"
	case depth < 3 && n < 4:
		return "(" + f.condition(refs, depth+1) + " or " + f.condition(refs, depth+1) + ")"
	case depth < 3 && n < 5:
		return "not (" + f.condition(refs, depth+1) + ")"
	case depth < 2 && n < 6:
		return f.subquery(refs, depth+1)
	}
	return f.simple(refs)
}

func (f *fuzzer) simple(refs []fuzzRef) string {
	c := pick(f.Rand, refs)
	value := func() string { return pick(f.Rand, c.typ.values) }
	not := f.one("", "", "not ")
	n := f.IntN(9)
	if c.typ.unordered {
		n = 2 + f.IntN(4)
	}
	switch n {
	case 0:
		return c.name + " between " + value() + " and " + value()
	case 1:
		return c.name + " not between " + value() + " and " + value()
	case 2, 3:
		list := []string{orNull(f.Rand, value())}
		for range f.IntN(3) {
			list = append(list, value())
		}
		return c.name + " " + not + "in (" + strings.Join(list, ", ") + ")"
	case 4:
		return c.name + " is " + not + "null"
	case 5:
		if same := columnsLike(refs, c); len(same) > 0 {
			return c.name + f.comparison(c.typ, comparisons...) + pick(f.Rand, same).name
		}
	case 6:
		if c.typ.text {
			return c.name + " " + not + "like " + f.one("'a%'", "'%z'", "'a_'", "'a\\_'", "'a\\%'", "'ab'", "'%'", "'A%'", "'e%'", "'a%c'", "'b%'")
		}
		if c.typ.sql == "int" || c.typ.sql == "decimal(6,2)" {
			return c.name + f.comparison(c.typ, comparisons...) + f.one("'1'", "'2'", "1e0")
		}
	case 7:
		return f.rows(refs, not)
	}
	return c.name + f.comparison(c.typ, comparisons...) + value()
}

var comparisons = []string{" = ", " = ", " <> ", " < ", " <= ", " > ", " >= ", " <=> "}

// comparison makes up a comparison of values of a type.
func (f *fuzzer) comparison(t *fuzzType, of ...string) string {
	c := f.one(of...)
	if t.unordered && c != " <> " && c != " <=> " {
		return " = "
	}
	return c
}

// rows makes up a condition with row constructors.
func (f *fuzzer) rows(refs []fuzzRef, not string) string {
	refs = slices.DeleteFunc(slices.Clone(refs), func(r fuzzRef) bool { return strings.HasPrefix(r.typ.sql, "bit") }) // b'1' is a text to MariaDB here
	a, b := pick(f.Rand, refs), pick(f.Rand, refs)
	row := func() string {
		return "(" + orNull(f.Rand, pick(f.Rand, a.typ.values)) + ", " + pick(f.Rand, b.typ.values) + ")"
	}
	left := "(" + a.name + ", " + b.name + ")"
	if f.IntN(3) == 0 {
		return left + f.one(" = ", " <> ") + row()
	}
	return left + " " + not + "in (" + row() + ", " + row() + ")"
}

func (f *fuzzer) subquery(outer []fuzzRef, depth int) string {
	table, inner := f.table()
	all := inner
	if f.IntN(2) == 0 {
		all = append(append([]fuzzRef{}, inner...), outer...)
	}
	where := " where " + f.condition(all, depth+1)
	c := pick(f.Rand, outer)
	same := columnsLike(inner, c)
	if len(same) == 0 {
		return f.exists(table+where, "count(*)")
	}
	column := pick(f.Rand, same).name
	switch f.IntN(4) {
	case 0:
		if f.IntN(4) == 0 {
			name, _, _ := strings.Cut(table, " ")
			_, key, _ := strings.Cut(column, ".")
			table += " join (select * from " + name + ") d on d." + key + " = " + column
		}
		return f.exists(table+where+" and "+column+" = "+c.name, "max("+column+")")
	case 1:
		if !c.typ.folds && !c.typ.unordered && !strings.HasPrefix(c.typ.sql, "bit") {
			return c.name + f.one(" = ", " < ", " >= ") + "(select " + f.one("max", "min") + "(" + column + ") from " + table + where + ")"
		}
	case 2:
		return f.one("0", "1", "2") + f.one(" = ", " < ") + "(select count(" + f.one("*", column) + ") from " + table + where + ")"
	}
	return c.name + f.one(" in ", " not in ") + "(select " + column + " from " + table + where + ")"
}

// exists makes up EXISTS over the rows of a table, or over an aggregate of them.
func (f *fuzzer) exists(from, aggregate string) string {
	return f.one("", "not ") + "exists (select " + f.one("1", "1", "1", aggregate) + " from " + from + f.one("", "", "", " limit 1", " limit 0") + ")"
}

// exact returns columns whose equal values look the same. Sorting, grouping or DISTINCT by other
// columns may show any of several equal values. MariaDB shows a BIT as a number once it has sorted
// it.
func exact(refs []fuzzRef) (all []string) {
	for _, r := range refs {
		if !r.typ.folds && !strings.HasPrefix(r.typ.sql, "bit") {
			all = append(all, r.name)
		}
	}
	return all
}

// query makes up a statement that returns the same rows on each server. ordered means that the rows
// have a fixed order.
func (f *fuzzer) query() (text string, ordered bool) {
	from, refs := f.from()
	columns := exact(refs)
	a, b := pick(f.Rand, columns), pick(f.Rand, columns)
	where := " from " + from + " where " + f.condition(refs, 0)
	switch f.IntN(7) {
	case 0:
		return "select distinct " + a + where, false
	case 1:
		return "select " + a + ", count(*), count(" + b + "), count(distinct " + b + ")" + where + " group by " + a, false
	case 2:
		return "select " + a + ", count(*)" + where + " group by " + a + " having count(*) > 1 or " + a + " is null", false
	case 3:
		return "select " + a + ", " + b + where + f.one(" union ", " union all ") + "select " + a + ", " + b + where, false
	case 4:
		return "select " + strings.Join(columns, ", ") + where + " order by " + a + f.one("", " desc") + ", " + strings.Join(columns, ", ") + " limit " + f.one("1", "3", "2, 4"), true
	case 5:
		table, inner := f.table()
		return "select " + a + ", (select count(*) from " + table + " where " + f.condition(append(append([]fuzzRef{}, inner...), refs...), 1) + ")" + where, false
	}
	return "select " + strings.Join(columns, ", ") + where, false
}
