package plan

import "slices"

// This file rewrites conditions. Each rewrite keeps the value of a condition for every row: true,
// false or unknown.

// Simplify applies all rewrites.
func Simplify(c Condition) Condition {
	return singleEquals(flatten(sameInAll(flatten(pushNot(c, false)))))
}

// pushNot moves NOT down to the comparisons, by De Morgan's laws, which hold in three-valued logic.
// A NOT stays above a LIKE, an equality of columns, and a condition that go-mysql-server evaluates: these have no
// negated form. not is set if c is below an odd number of NOTs.
func pushNot(c Condition, not bool) Condition {
	switch c := c.(type) {
	case Not:
		return pushNot(c.Condition, !not)
	case And:
		if not {
			return Or(pushNots(c, not))
		}
		return And(pushNots(c, not))
	case Or:
		if not {
			return And(pushNots(c, not))
		}
		return Or(pushNots(c, not))
	}
	if !not {
		return c
	}
	switch c := c.(type) {
	case Compare:
		c.Op = c.Op.negated()
		return c
	case In:
		c.Not = !c.Not
		return c
	case IsNull:
		c.Not = !c.Not
		return c
	}
	return Not{c}
}

func pushNots(all []Condition, not bool) []Condition {
	out := make([]Condition, len(all))
	for i, c := range all {
		out[i] = pushNot(c, not)
	}
	return out
}

// flatten merges an AND within an AND, and an OR within an OR. It replaces an AND or OR of a single
// condition by the condition.
func flatten(c Condition) Condition {
	switch c := c.(type) {
	case And:
		var out And
		for _, x := range c {
			x = flatten(x)
			if inner, ok := x.(And); ok {
				out = append(out, inner...)
				continue
			}
			out = append(out, x)
		}
		if len(out) == 1 {
			return out[0]
		}
		return out
	case Or:
		var out Or
		for _, x := range c {
			x = flatten(x)
			if inner, ok := x.(Or); ok {
				out = append(out, inner...)
				continue
			}
			out = append(out, x)
		}
		if len(out) == 1 {
			return out[0]
		}
		return out
	}
	return c
}

// sameInAll moves equalities of columns that all parts of an OR have out of the OR, because joins
// look rows up by them: a = b AND x OR a = b AND y becomes a = b AND (x OR y).
func sameInAll(c Condition) Condition {
	switch c := c.(type) {
	case And:
		out := make(And, len(c))
		for i, x := range c {
			out[i] = sameInAll(x)
		}
		return out
	case Or:
		if len(c) > 0 {
			return withoutSame(c)
		}
	}
	return c
}

// withoutSame is sameInAll for an OR that has conditions.
func withoutSame(or Or) Condition {
	var all And
	for _, c := range conjuncts(or[0]) {
		same, ok := c.(Same)
		if ok && !slices.ContainsFunc(or, func(part Condition) bool { return !hasSame(part, same) }) {
			all = append(all, same)
		}
	}
	if len(all) == 0 {
		return or
	}
	rest := make(Or, len(or))
	for i, part := range or {
		remaining := slices.DeleteFunc(slices.Clone(conjuncts(part)), func(c Condition) bool {
			same, ok := c.(Same)
			return ok && hasSame(all, same)
		})
		if len(remaining) == 0 {
			return all // x OR (x AND y) equals x
		}
		rest[i] = And(remaining)
	}
	return append(all, rest)
}

// hasSame reports whether an AND contains the condition that two columns are equal.
func hasSame(c Condition, same Same) bool {
	return slices.ContainsFunc(conjuncts(c), func(c Condition) bool {
		return c == Condition(same) || c == Condition(Same{same.Right, same.Left})
	})
}

// singleEquals replaces an IN of one value by =, and an OR of equalities of one column by IN.
func singleEquals(c Condition) Condition {
	switch c := c.(type) {
	case And:
		out := make(And, len(c))
		for i, x := range c {
			out[i] = singleEquals(x)
		}
		return out
	case Or:
		return anyEqual(c)
	case In:
		if len(c.Values) == 1 && !c.Values[0].IsList {
			op := Equal
			if c.Not {
				op = NotEqual
			}
			return Compare{c.Column, op, c.Values[0]}
		}
	}
	return c
}

// anyEqual merges the equalities of an OR: a = 1 OR a = 2 OR a IN (3, 4) becomes a IN (1, 2, 3, 4).
func anyEqual(or Or) Condition {
	var out Or
	at := make(map[int]int) // the index in out of each column's IN
	for _, c := range or {
		c = singleEquals(c)
		in, ok := asIn(c)
		if !ok {
			out = append(out, c)
			continue
		}
		i, seen := at[in.Column]
		if !seen {
			at[in.Column] = len(out)
			out = append(out, in)
			continue
		}
		before := out[i].(In)
		before.Values = append(before.Values[:len(before.Values):len(before.Values)], in.Values...)
		out[i] = before
	}
	for i, c := range out {
		if in, ok := c.(In); ok {
			out[i] = singleEquals(in)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// asIn returns an equality as an IN.
func asIn(c Condition) (In, bool) {
	switch c := c.(type) {
	case Compare:
		return In{Column: c.Column, Values: []Operand{c.Value}}, c.Op == Equal
	case In:
		return c, !c.Not
	}
	return In{}, false
}

// conjuncts returns the conditions of a top-level AND.
func conjuncts(c Condition) []Condition {
	switch c := c.(type) {
	case nil:
		return nil
	case And:
		return c
	}
	return []Condition{c}
}
