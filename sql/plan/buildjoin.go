package plan

import (
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"

	"github.com/farmsql/farmsql/sql/row"
)

// This file makes a Join of go-mysql-server's joins, each of which has two sides.

// joinedMax bounds the tables of a join, because the search for orders tries each of them as the outermost.
const joinedMax = 12

// A joinBuilder collects the tables of a join and its conditions.
type joinBuilder struct {
	*builder
	*Join
	// inner has the conditions that all rows meet. on[t] has the conditions that decide which rows of
	// table t belong to rows of the earlier tables; it is empty if t is joined by an inner join.
	inner []gms.Expression
	on    map[int][]gms.Expression
	// sets has the conditions in inner that a column is in a set.
	sets []Condition
	// allowsSemi is set if EXISTS and IN of subqueries become semi-joins where they can; otherwise they become values.
	allowsSemi bool
}

// join returns the plan of a join. where is the condition above it; nil if there is none. If
// allowsSemi is set, semi-joins become tables of the join, otherwise values.
func (b *builder) join(n gms.Node, where gms.Expression, allowsSemi bool) (Node, scope, error) {
	j := &joinBuilder{b, &Join{}, nil, make(map[int][]gms.Expression), nil, allowsSemi}
	s, err := j.flatten(n)
	if err != nil {
		return nil, scope{}, err
	}
	if s, err = j.where(where, s); err != nil {
		return nil, scope{}, err
	}
	if len(j.Tables) > joinedMax {
		return nil, scope{}, refused("a join of %d tables", len(j.Tables))
	}
	inner, err := b.conjunction(j.inner, s)
	if err != nil {
		return nil, scope{}, err
	}
	on := make([][]Condition, len(j.Tables))
	for t := range on {
		if on[t], err = b.conjunction(j.on[t], s); err != nil {
			return nil, scope{}, err
		}
	}
	return j.Join, s, j.placeAll(b.ctx, j.innerJoins(append(inner, j.sets...), on), on)
}

// conjunction returns the conditions that the expressions of a conjunction stand for.
func (b *builder) conjunction(all []gms.Expression, s scope) (out []Condition, err error) {
	for _, e := range all {
		c, err := b.condition(e, s)
		if err != nil {
			return nil, err
		}
		out = append(out, conjuncts(Simplify(c))...)
	}
	return out, nil
}

// flatten adds the tables and conditions of a node, and returns its scope. The right side of a LEFT
// JOIN must be a single table, so that its rows depend only on the rows of the earlier tables. The
// sides of a RIGHT JOIN are exchanged.
func (j *joinBuilder) flatten(n gms.Node) (scope, error) {
	switch n := n.(type) {
	case *gmsplan.JoinNode:
		left, right := n.Left(), n.Right()
		switch {
		case n.Op.IsInner():
		case n.Op == gmsplan.JoinTypeLeftOuter:
		case n.Op.IsRightOuter():
			left, right = right, left
		default:
			return scope{}, refused("%s", n.Op)
		}
		s, err := j.flatten(left)
		if err != nil {
			return scope{}, err
		}
		t := len(j.Tables)
		more, err := j.flatten(right)
		if err != nil {
			return scope{}, err
		}
		all := expression.SplitConjunction(j.ctx, n.Filter)
		if n.Op.IsInner() {
			j.inner = append(j.inner, all...)
		} else {
			if len(j.Tables) > t+1 {
				return scope{}, refused("%s of a join", n.Op)
			}
			j.Tables[t].Kind, j.on[t] = Left, all
		}
		return scope{slices.Concat(s.ids, more.ids), slices.Concat(s.codecs, more.codecs)}, nil
	case *gmsplan.ResolvedTable, *gmsplan.TableAlias:
		return j.table(n)
	case *gmsplan.SubqueryAlias:
		return j.source(n)
	}
	return scope{}, refused("a join of %T", n)
}

// source adds the rows of a node that is not a table, and returns their scope.
func (j *joinBuilder) source(n gms.Node) (scope, error) {
	node, s, err := j.node(n)
	if err != nil {
		return scope{}, err
	}
	if s.codecs == nil {
		s.codecs = make([]*row.KeyCodec, len(s.ids))
	}
	columns := make([]int, len(s.ids))
	for i := range columns {
		columns[i] = i
	}
	j.add(JoinTable{Scan: &Scan{Columns: columns}, Source: node, codecs: s.codecs})
	return s, nil
}

// add appends a table.
func (j *joinBuilder) add(t JoinTable) {
	if len(j.Tables) > 0 {
		last := &j.Tables[len(j.Tables)-1]
		t.First = last.First + last.count()
	}
	j.Tables = append(j.Tables, t)
}

// table adds a table, and returns its scope.
func (j *joinBuilder) table(n gms.Node) (scope, error) {
	node, s, err := j.node(n)
	if err != nil {
		return scope{}, err
	}
	scan, ok := node.(*Scan)
	if !ok {
		return scope{}, refused("a join of no table")
	}
	j.add(JoinTable{Scan: scan})
	return s, nil
}

// innerJoins turns a LEFT JOIN into an inner join if another condition is never true for its rows
// of NULLs. It returns all conditions that hold for every row. It leaves the conditions of the
// remaining LEFT JOINs in on.
func (j *Join) innerJoins(inner []Condition, on [][]Condition) []Condition {
	for i := 0; i < len(inner); i++ { // also visits the conditions that it appends
		for _, column := range refusesNull(inner[i]) {
			if t := j.tableOf(column); j.Tables[t].Kind == Left {
				j.Tables[t].Kind = Inner
				inner, on[t] = append(inner, on[t]...), nil
			}
		}
	}
	return inner
}

// refusesNull returns columns that cannot be NULL if a condition is true.
func refusesNull(c Condition) []int {
	switch c := c.(type) {
	case Compare:
		return []int{c.Column}
	case In:
		if c.Not && c.hasList() { // true if the list is empty
			return nil
		}
		return []int{c.Column}
	case Like:
		return []int{c.Column}
	case Same:
		return []int{c.Left, c.Right}
	case IsNull:
		if c.Not {
			return []int{c.Column}
		}
	}
	return nil
}

// placeAll gives each condition to the scan of the only table that it uses, otherwise to the join.
// A condition of WHERE on a table of a LEFT JOIN belongs to the join, because the table may have no
// row.
func (j *Join) placeAll(ctx *gms.Context, inner []Condition, on [][]Condition) error {
	for _, c := range inner {
		t, err := j.onlyTable(ctx, c)
		if err != nil {
			return err
		}
		if t < 0 || j.Tables[t].Kind == Left {
			j.Where = append(j.Where, c)
			if err := j.restrictAll(ctx, c); err != nil {
				return err
			}
			continue
		}
		if err := j.Tables[t].restrict(ctx, c); err != nil {
			return err
		}
	}
	for t := range on {
		for _, c := range on[t] {
			only, err := j.onlyTable(ctx, c)
			if err != nil {
				return err
			}
			if only != t {
				j.Tables[t].On = append(j.Tables[t].On, c)
				continue
			}
			if err := j.Tables[t].restrict(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// restrictAll adds to the scan of each table what an OR on several tables implies for it. If a.x =
// 1 AND b.y = 2 OR a.x = 3 AND b.y = 4 is true, then a.x = 1 OR a.x = 3 is true.
func (j *Join) restrictAll(ctx *gms.Context, c Condition) error {
	or, ok := c.(Or)
	if !ok {
		return nil
	}
	for t := range j.Tables {
		if j.Tables[t].Kind != Inner {
			continue
		}
		only, ok, err := j.partsOf(ctx, or, t)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if err := j.Tables[t].restrict(ctx, Simplify(only)); err != nil {
			return err
		}
	}
	return nil
}

// partsOf returns what the parts of an OR imply for one table; false if a part implies nothing. It
// ignores conditions that go-mysql-server evaluates, because they would be evaluated twice.
func (j *Join) partsOf(ctx *gms.Context, or Or, table int) (only Or, ok bool, err error) {
	for _, part := range or {
		var own And
		for _, c := range conjuncts(part) {
			t, err := j.onlyTable(ctx, c)
			if err != nil {
				return nil, false, err
			}
			if t == table && !isOther(c) {
				own = append(own, c)
			}
		}
		if len(own) == 0 {
			return nil, false, nil
		}
		only = append(only, own)
	}
	return only, true, nil
}

// isOther reports whether go-mysql-server evaluates a condition, or a part of it.
func isOther(c Condition) bool {
	switch c := c.(type) {
	case And:
		return slices.ContainsFunc(c, isOther)
	case Or:
		return slices.ContainsFunc(c, isOther)
	case Not:
		return isOther(c.Condition)
	case Other:
		return true
	}
	return false
}

// onlyTable returns the number of the only table that a condition uses; -1 if it uses several tables, or none.
func (j *Join) onlyTable(ctx *gms.Context, c Condition) (int, error) {
	tables, err := j.tablesOf(ctx, c)
	if err != nil || len(tables) != 1 {
		return -1, err
	}
	return tables[0], nil
}

// restrict adds a condition on the joined rows to a table's scan.
func (t *JoinTable) restrict(ctx *gms.Context, c Condition) error {
	c, err := moved(ctx, c, -t.First)
	if t.Where != nil {
		c = And(append(slices.Clone(conjuncts(t.Where)), c))
	}
	t.Where = c
	return err
}

// tablesOf returns the numbers of the tables that a condition uses.
func (j *Join) tablesOf(ctx *gms.Context, c Condition) ([]int, error) {
	columns, err := columnsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	tables := make(map[int]bool)
	for column := range columns {
		tables[j.tableOf(column)] = true
	}
	return slices.Sorted(maps.Keys(tables)), nil
}

// moved returns a condition with offset added to the position of each column.
func moved(ctx *gms.Context, c Condition, offset int) (Condition, error) {
	c, err := eachOther(c, func(e gms.Expression) (gms.Expression, error) {
		return withColumns(ctx, e, func(column int) int { return column + offset })
	})
	return movedColumns(c, offset), err
}

// movedColumns is moved for conditions that are not evaluated by go-mysql-server.
func movedColumns(c Condition, offset int) Condition {
	switch c := c.(type) {
	case And:
		out := make(And, len(c))
		for i, x := range c {
			out[i] = movedColumns(x, offset)
		}
		return out
	case Or:
		out := make(Or, len(c))
		for i, x := range c {
			out[i] = movedColumns(x, offset)
		}
		return out
	case Not:
		return Not{movedColumns(c.Condition, offset)}
	case Compare:
		c.Column += offset
		return c
	case In:
		c.Column += offset
		return c
	case IsNull:
		c.Column += offset
		return c
	case Like:
		c.Column += offset
		return c
	case Same:
		return Same{c.Left + offset, c.Right + offset}
	}
	return c
}

// withColumns returns an expression with its columns at other positions.
func withColumns(ctx *gms.Context, e gms.Expression, place func(int) int) (gms.Expression, error) {
	e, _, err := transform.Expr(ctx, e, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
		if f, ok := e.(*expression.GetField); ok {
			return f.WithIndex(place(f.Index())), transform.NewTree, nil
		}
		return e, transform.SameTree, nil
	})
	return e, err
}
