package exec

import (
	"errors"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/expression/function/aggregation"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file groups the rows of a scan by columns, and counts and sums columns, on the stored form of rows.

// A storedColumn is a column of a scan's table.
type storedColumn struct {
	at    int // its position in the table
	codec *row.Column
}

// A storedKey is a column whose values have to be told apart.
type storedKey struct {
	storedColumn
	weights *row.Weights // of a text's characters; nil for other columns, equal values of which are stored alike
}

// A groupValue is a column of the result of a GROUP BY: the value in a group's first row, the number of rows or of
// values, or a sum.
type groupValue struct {
	storedColumn
	kind groupKind
	key  storedKey // of the values of which each is counted once
	sum  *compat.ExactAggregate
}

type groupKind uint8

const (
	firstOfGroup    groupKind = iota
	rowsOfGroup               // COUNT(*)
	valuesOfGroup             // COUNT(column)
	distinctOfGroup           // COUNT(DISTINCT column)
	sumOfGroup                // SUM and AVG
)

// A groupPart is a value of a group, as far as it is known.
type groupPart struct {
	first any
	total compat.Total
	seen  map[string]struct{}
}

// A storedGroups has the groups of a scan's rows.
type storedGroups struct {
	r      *run
	scan   *plan.Scan
	by     []storedKey
	values []groupValue
	groups map[string]int
	parts  []groupPart // of all groups, len(values) of each
	key    []byte      // the key of the present row
	taken  int64       // memory, which Close gives back
}

// storedGroups returns the rows of a GROUP BY; nil if it cannot be done on the stored form of rows.
func (r *run) storedGroups(ctx *gms.Context, n *plan.Group) (gms.RowIter, error) {
	scan, ok := n.Child.(*plan.Scan)
	if !ok {
		return nil, nil
	}
	g := &storedGroups{r: r, scan: scan, groups: make(map[string]int)}
	for _, e := range n.By {
		key, ok := g.keyOf(ctx, e)
		if !ok {
			return nil, nil
		}
		g.by = append(g.by, key)
	}
	isGrouped := len(n.By) > 0
	for _, e := range n.Exprs {
		v, ok := g.valueOf(ctx, e)
		if !ok || (v.kind == firstOfGroup && !isGrouped) {
			return nil, nil
		}
		g.values = append(g.values, v)
	}
	g.parts = make([]groupPart, 0, groupsGuessed*len(g.values))
	if err := g.read(ctx); err != nil {
		g.give()
		if errors.Is(err, ErrPlan) {
			return nil, nil // package executor groups the rows
		}
		return nil, err
	}
	return &groupRows{rowList{g.rows()}, g}, nil
}

// groupRows are the rows of a GROUP BY, whose memory is given back in the end.
type groupRows struct {
	rowList
	groups *storedGroups
}

// Close implements gms.RowIter.
func (g *groupRows) Close(*gms.Context) error {
	g.groups.give()
	return nil
}

// take counts memory.
func (g *storedGroups) take(n int) error {
	err := g.r.s.Holding.Take(int64(n))
	if err == nil {
		g.taken += int64(n)
	}
	return err
}

// give gives the memory back.
func (g *storedGroups) give() {
	g.r.s.Holding.Give(g.taken)
	g.taken = 0
}

// column returns the column that an expression is; false for other expressions.
func (g *storedGroups) column(ctx *gms.Context, e gms.Expression) (storedColumn, bool) {
	f, ok := e.(*expression.GetField)
	if !ok {
		return storedColumn{}, false
	}
	at := f.Index()
	if g.scan.Columns != nil {
		at = g.scan.Columns[at]
	}
	c := storedColumn{at, &g.scan.Table.Rows.Columns[at]}
	return c, !c.codec.Virtual && f.Type(ctx).Equals(c.codec.Type)
}

// keyOf returns the key that an expression is; false if its values cannot be told apart by their stored form.
func (g *storedGroups) keyOf(ctx *gms.Context, e gms.Expression) (storedKey, bool) {
	c, ok := g.column(ctx, e)
	if !ok {
		return storedKey{}, false
	}
	switch c.codec.Kind {
	case catalog.KindDecimal, catalog.KindDate, catalog.KindDatetime, catalog.KindEnum:
		return storedKey{c, nil}, true
	}
	if !c.codec.IsDirect() {
		return storedKey{}, false
	}
	if !row.IsCharacter(c.codec.Kind) {
		return storedKey{c, nil}, true
	}
	w := row.WeightsOfType(c.codec.Type)
	return storedKey{c, w}, w != nil
}

// valueOf returns the value that an expression is; false if it cannot be computed on the stored form of rows.
func (g *storedGroups) valueOf(ctx *gms.Context, e gms.Expression) (v groupValue, ok bool) {
	switch e := e.(type) {
	case *expression.GetField:
		v.storedColumn, ok = g.column(ctx, e)
		return v, ok
	case *aggregation.Count:
		if v.kind = rowsOfGroup; isNeverNull(ctx, e.Children()[0]) {
			return v, true
		}
		v.kind = valuesOfGroup
		v.storedColumn, ok = g.column(ctx, e.Children()[0])
		return v, ok
	case *aggregation.CountDistinct:
		if len(e.Children()) != 1 {
			return v, false
		}
		v.kind = distinctOfGroup
		v.key, ok = g.keyOf(ctx, e.Children()[0])
		v.storedColumn = v.key.storedColumn
		return v, ok
	case *compat.DistinctAggregate:
		if inner, isCount := e.Aggregation.(*aggregation.CountDistinct); isCount && e.Counts {
			return g.valueOf(ctx, inner)
		}
	case *compat.ExactAggregate:
		v.kind, v.sum = sumOfGroup, e
		v.storedColumn, ok = g.column(ctx, e.Child)
		return v, ok && e.IsPlain() && (v.codec.IsSummed() || v.codec.Kind == catalog.KindDecimal)
	}
	return v, false
}

// read reads the rows of the scan. It returns ErrPlan for a value that is not as values are stored.
func (g *storedGroups) read(ctx *gms.Context) error {
	rows, err := g.r.scan(ctx, g.scan)
	if err != nil {
		return err
	}
	if len(g.by) == 0 { // there is one group, even without rows
		if _, err := g.group(); err != nil {
			return err
		}
	}
	for _, branch := range branchesOf(rows) {
		table, ok := branch.(storeRows)
		if !ok {
			return ErrPlan
		}
		for {
			v, err := table.NextStored(ctx)
			if err != nil {
				return err
			}
			if v == nil {
				break
			}
			if err := g.add(table, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// stored returns the stored value of a column in a row; nil for NULL.
func (c *storedColumn) stored(from storeRows, v *row.View) ([]byte, error) {
	b, isOut, err := v.Slot(c.codec.Slot)
	if err == nil && isOut {
		return from.StoredValue(v, c.at)
	}
	return b, err
}

// append appends the key of a value: of equal values the same bytes, and none that another value's key begins with.
func (k *storedKey) append(dst, value []byte) ([]byte, bool) {
	const isNull, isValue = 0, 1
	if value == nil {
		return append(dst, isNull), true
	}
	dst = append(dst, isValue)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0) // the length
	ok := true
	if k.weights != nil {
		dst, ok = k.weights.Append(dst, string(value))
	} else {
		dst = append(dst, value...)
	}
	n := len(dst) - at
	dst[at], dst[at+1], dst[at+2], dst[at+3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return dst, ok
}

// groupsGuessed is the number of groups for which memory is allocated at first.
const groupsGuessed = 16

// Memory of a group, and of one of its values, as far as it is not the value's own.
const storedGroupBytes, groupPartBytes = 64, 96

// add adds a row to its group.
func (g *storedGroups) add(from storeRows, v *row.View) error {
	g.key = g.key[:0]
	for i := range g.by {
		value, err := g.by[i].stored(from, v)
		if err != nil {
			return err
		}
		var ok bool
		if g.key, ok = g.by[i].append(g.key, value); !ok {
			return ErrPlan
		}
	}
	at, ok := g.groups[string(g.key)]
	if !ok {
		var err error
		if at, err = g.group(); err != nil {
			return err
		}
	}
	for i := range g.values {
		if err := g.values[i].add(g, &g.parts[at+i], from, v, !ok && len(g.by) > 0); err != nil {
			return err
		}
	}
	return nil
}

// group makes the group of the present key, and returns the number of its first part.
func (g *storedGroups) group() (int, error) {
	at := len(g.parts)
	for range g.values {
		g.parts = append(g.parts, groupPart{})
	}
	g.groups[string(g.key)] = at
	return at, g.take(storedGroupBytes + len(g.key) + len(g.values)*groupPartBytes)
}

// add adds a row to a value of its group. isFirst is set for the first row of a group.
func (v *groupValue) add(g *storedGroups, p *groupPart, from storeRows, view *row.View, isFirst bool) error {
	switch {
	case v.kind == rowsOfGroup:
		p.total.Rows++
		return nil
	case v.kind == firstOfGroup && !isFirst:
		return nil
	}
	b, err := v.stored(from, view)
	if err != nil || b == nil {
		return err
	}
	switch v.kind {
	case firstOfGroup:
		if p.first, err = v.codec.Decode(b); err == nil {
			err = g.take(int(store.ValueMemory(p.first)))
		}
		return err
	case valuesOfGroup:
		p.total.Rows++
	case distinctOfGroup:
		return v.addDistinct(g, p, b)
	case sumOfGroup:
		return v.addNumber(p, b)
	}
	return nil
}

// addDistinct counts a value, unless an equal one has been counted.
func (v *groupValue) addDistinct(g *storedGroups, p *groupPart, b []byte) error {
	var room [64]byte
	key, ok := v.key.append(room[:0], b)
	if !ok {
		return ErrPlan
	}
	if _, ok := p.seen[string(key)]; ok {
		return nil
	}
	if p.seen == nil {
		p.seen = make(map[string]struct{})
	}
	p.seen[string(key)] = struct{}{}
	p.total.Rows++
	return g.take(storedGroupBytes + len(key))
}

// addNumber adds a number to a sum: of a decimal its units.
func (v *groupValue) addNumber(p *groupPart, b []byte) error {
	if v.codec.Kind != catalog.KindDecimal {
		if !v.codec.IsSound(b) {
			return row.ErrCorrupt
		}
		p.total.AddStored(&v.codec.ValueCodec, b)
		return nil
	}
	units, ok := row.ReadInt(b)
	if !ok {
		return ErrPlan
	}
	p.total.Rows++
	p.total.AddInt(units)
	return nil
}

// rows returns the groups' rows.
func (g *storedGroups) rows() []gms.Row {
	width := len(g.values)
	all := make([]gms.Row, 0, len(g.groups))
	values := make(gms.Row, len(g.parts))
	for i := range g.parts {
		values[i] = g.values[i%width].of(&g.parts[i])
	}
	for ; len(values) > 0; values = values[width:] {
		all = append(all, values[:width:width])
	}
	return all
}

// of returns the value of a group.
func (v *groupValue) of(p *groupPart) any {
	switch v.kind {
	case firstOfGroup:
		return p.first
	case sumOfGroup:
		sum := p.total.Sum()
		if v.codec.Kind == catalog.KindDecimal {
			sum = sum.Shift(-v.codec.Scale)
		}
		return v.sum.Result(sum, p.total.Rows)
	}
	return p.total.Rows
}
