package fast

import (
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A join is a SELECT from tables that are each read by a key. Literals give the key, directly or
// through columns that equal those of another table. All tables but the last return at most one
// row, so that the order of the result does not depend on the order of the tables.
type join struct {
	tables []*joinedTable
	// out are the columns of the joined rows, which are returned, or processed further by a plan.
	// names are the columns' names in that plan.
	out   []columnAt
	names []columnRef
}

// A joinedTable is read by a form of its own.
type joinedTable struct {
	form
	joinTable
	// rest are the conditions besides the key.
	rest []residual
}

// A columnAt is a column of one of a join's tables, by their positions.
type columnAt struct{ table, column int }

// A binding collects, while a join is compiled, the literals that columns are equal
// to, and other comparisons of columns.
type binding struct {
	tables []*joinedTable
	equal  map[columnAt]operand
	rest   map[columnAt][]comparison
}

// compileJoin makes the form of a join for one version of its tables. It returns ErrPlan as compile does.
func (c *Compiled) compileJoin(ctx *gms.Context, infos []*store.TableInfo, values []Value) (*form, error) {
	f := &form{info: infos[0], infos: infos, refused: true}
	b, ok := c.shape.join.bind(infos)
	if !ok || !b.lookups() {
		return f, nil
	}
	j := &join{tables: b.tables}
	for _, t := range j.tables {
		if _, _, ok := t.lookup.keys(values); !ok {
			return nil, ErrPlan
		}
	}
	p, err := c.plan(ctx, values, true)
	if err != nil {
		return nil, err
	}
	if p == nil || !j.plannedAs(ctx, p) {
		return f, nil
	}
	f.schema = &Header{Schema: p.root.Schema(ctx)}
	var direct bool
	if j.names, direct = p.outputs(ctx); !direct {
		f.plans = &planPool{idle: []*selectPlan{p}}
	}
	for _, r := range j.names {
		at, ok := b.column(r)
		if !ok {
			return f, nil
		}
		j.out = append(j.out, columnAt{at.table, b.tables[at.table].include(at.column)})
	}
	f.join, f.refused = j, false
	return f, nil
}

// lookup returns the whole unique key that the conditions give for their only table,
// and the other conditions on its row; false if they give none, or comparing keys cannot decide one of them.
func (s *joinShape) lookup(info *store.TableInfo) (lookup, []residual, bool) {
	b, ok := s.bind([]*store.TableInfo{info})
	if !ok || !b.lookups() || !b.tables[0].lookup.isPoint() {
		return lookup{}, nil, false
	}
	t := b.tables[0]
	for i := range t.rest {
		t.rest[i].at = t.columns[t.rest[i].at] // a position in the whole row, which the change reads
	}
	return t.lookup, t.rest, true
}

// bind resolves the columns of the conditions, and finds the literals that they are
// equal to. It returns false if a table has no key of its own or virtual columns, if a column is unknown or ambiguous, or
// if comparing keys cannot decide a condition.
func (s *joinShape) bind(infos []*store.TableInfo) (*binding, bool) {
	b := &binding{equal: make(map[columnAt]operand), rest: make(map[columnAt][]comparison)}
	for i, t := range s.tables {
		if infos[i].HasVirtual || infos[i].IsKeyless() {
			return nil, false
		}
		b.tables = append(b.tables, &joinedTable{form: form{info: infos[i], columns: []int{}}, joinTable: t})
	}
	for _, c := range s.where {
		if at, ok := b.column(c.column); !ok || !b.compare(at, c) {
			return nil, false
		}
	}
	var pairs [][2]columnAt
	for _, p := range s.pairs {
		left, hasLeft := b.column(p[0])
		right, hasRight := b.column(p[1])
		if !hasLeft || !hasRight || !b.sharesLiterals(left, right) {
			return nil, false
		}
		pairs = append(pairs, [2]columnAt{left, right}, [2]columnAt{right, left})
	}
	return b, b.equate(pairs)
}

// column resolves a column's name; false if it is ambiguous or unknown.
func (b *binding) column(r columnRef) (at columnAt, ok bool) {
	for i, t := range b.tables {
		column := t.info.Column(r.column)
		if column < 0 || (r.table != "" && !store.SameName(r.table, t.name)) {
			continue
		}
		if ok { // another table has the column, too
			return at, false
		}
		at, ok = columnAt{i, column}, true
	}
	return at, ok
}

func (b *binding) codec(at columnAt) *row.KeyCodec { return b.tables[at.table].info.Codec(at.column) }

// compare adds a comparison with a literal to the binding; false if comparing keys cannot decide
// it, or the column equals another literal already.
func (b *binding) compare(at columnAt, c comparison) bool {
	k := b.codec(at)
	if c.op != sqlparser.EqualStr {
		b.rest[at] = append(b.rest[at], c)
		return k.IsInteger()
	}
	_, twice := b.equal[at]
	b.equal[at] = c.value
	return k.TakesLiterals() && !twice
}

// sharesLiterals reports whether left = right and left = literal imply right = literal. That holds for
// integers of any width, and for characters of one collation.
func (b *binding) sharesLiterals(left, right columnAt) bool {
	l, r := b.codec(left), b.codec(right)
	if l.IsInteger() || r.IsInteger() {
		return l.IsInteger() && r.IsInteger()
	}
	return row.IsCharacter(l.Kind) && l.TakesLiterals() && l.Kind == r.Kind && l.Collation == r.Collation
}

// equate propagates literals between equal columns, and reports whether both columns
// of each pair then have a literal, the same one.
func (b *binding) equate(pairs [][2]columnAt) bool {
	for again := true; again; {
		again = false
		for _, p := range pairs {
			value, leftIsKnown := b.equal[p[0]]
			if _, rightIsKnown := b.equal[p[1]]; leftIsKnown && !rightIsKnown {
				b.equal[p[1]], again = value, true
			}
		}
	}
	return !slices.ContainsFunc(pairs, func(p [2]columnAt) bool {
		value, known := b.equal[p[0]]
		return !known || b.equal[p[1]] != value
	})
}

// lookups chooses each table's lookup, and moves a table whose lookup may return many rows to the
// end. After that, the tables have other positions than in the columnAts made before. lookups returns
// false if a table has no lookup, or if two lookups may return many rows.
func (b *binding) lookups() bool {
	many := 0
	for i, t := range b.tables {
		if !b.lookup(i) {
			return false
		}
		if !t.lookup.isPoint() {
			many++
		}
		b.addRest(i)
	}
	slices.SortStableFunc(b.tables, func(x, y *joinedTable) int {
		switch {
		case x.lookup.isPoint() == y.lookup.isPoint():
			return 0
		case x.lookup.isPoint():
			return -1
		}
		return 1
	})
	return many <= 1
}

// lookup chooses a whole unique key for a table, or the first parts of the only index
// that its conditions concern; false if there is neither.
func (b *binding) lookup(table int) bool {
	t := b.tables[table]
	found := 0
	for _, k := range append([]*store.KeyInfo{t.info.PrimaryKey}, t.info.Secondary...) {
		l, concerned := b.lookupIn(table, k)
		if l.isPoint() {
			t.lookup = l
			return true
		}
		if concerned {
			t.lookup = l
			found++
		}
	}
	return found == 1 && len(t.lookup.parts) > 0 // if there are several, go-mysql-server chooses by statistics
}

// addRest adds the conditions that the key does not cover, to be checked for each
// row.
func (b *binding) addRest(table int) {
	t := b.tables[table]
	for column := range t.info.Columns {
		at := columnAt{table, column}
		rest := b.rest[at]
		if value, ok := b.equal[at]; ok && !slices.Contains(t.lookup.columns(), column) {
			rest = append(rest, comparison{op: sqlparser.EqualStr, value: value})
		}
		for _, c := range rest {
			t.rest = append(t.rest, residual{comparison: c, codec: b.codec(at), at: t.include(column)})
		}
	}
}

// lookupIn returns the lookup in an index, and whether any condition concerns its
// first column.
func (b *binding) lookupIn(table int, k *store.KeyInfo) (lookup, bool) {
	t := b.tables[table]
	l := lookup{index: k, unique: k == t.info.PrimaryKey || k.Unique, list: -1}
	for i, column := range k.Columns {
		value, ok := b.equal[columnAt{table, column}]
		if !ok || !k.Codecs[i].TakesLiterals() {
			break
		}
		l.parts = append(l.parts, condition{column: t.info.Columns[column].Name, lo: value})
	}
	if k.Access == catalog.AccessHash && len(l.parts) < len(k.Codecs) {
		l.parts = nil
	}
	first := columnAt{table, k.Columns[0]}
	_, equal := b.equal[first]
	return l, equal || len(b.rest[first]) > 0
}

// isPoint reports whether the lookup returns at most one row.
func (l *lookup) isPoint() bool { return l.unique && len(l.parts) == len(l.index.Codecs) }

// columns returns the columns of the key.
func (l *lookup) columns() []int { return l.index.Columns[:len(l.parts)] }

// include adds a column to those read, unless it is one of them, and returns its position among
// them.
func (t *joinedTable) include(column int) int {
	if at := slices.Index(t.columns, column); at >= 0 {
		return at
	}
	t.columns = append(t.columns, column)
	return len(t.columns) - 1
}

// plannedAs reports whether a plan reads the same tables by the same indexes, in
// index order.
func (j *join) plannedAs(ctx *gms.Context, p *selectPlan) bool {
	for _, t := range j.tables {
		n := p.accesses[strings.ToLower(t.name)]
		if n == nil || isReverse(ctx, n) {
			return false
		}
		x, indexIsOurs := n.Index().(*store.Index)
		read, tableIsOurs := unwrapped(n.Table).(*store.IndexedTable)
		if !indexIsOurs || !tableIsOurs || read.Info != t.info || x.Key.Name != t.lookup.index.Name {
			return false
		}
	}
	return len(p.accesses) == len(j.tables)
}

// isReverse reports whether a table is, or may be, read backwards. A table that is looked up for
// each row of another never is.
func isReverse(ctx *gms.Context, n *plan.IndexedTableAccess) bool {
	if !n.IsStatic() {
		return false
	}
	g, _, err := n.GetLookup(ctx, nil)
	return err != nil || g.IsReverse
}

// replannedAs reports whether a plan can process this join's rows, too.
func (j *join) replannedAs(ctx *gms.Context, p *selectPlan) bool {
	names, _ := p.outputs(ctx)
	return slices.Equal(names, j.names) && j.plannedAs(ctx, p)
}

// outputs returns the table columns that a plan returns, if it does nothing else, and
// otherwise those of its leaf.
func (p *selectPlan) outputs(ctx *gms.Context) (out []columnRef, direct bool) {
	if project, ok := p.root.(*plan.Project); ok && project.Child == p.leaf {
		for _, e := range project.Projections {
			if a, ok := e.(*expression.Alias); ok {
				e = a.Child
			}
			if f, ok := e.(*expression.GetField); ok {
				out = append(out, columnRef{f.Table(), f.Name()})
			}
		}
		if len(out) == len(project.Projections) {
			return out, true
		}
	}
	out = nil
	for _, c := range p.leaf.Schema(ctx) {
		out = append(out, columnRef{c.Source, c.Name})
	}
	return out, p.root == p.leaf
}

// run returns the rows that the literals give.
func (j *join) run(ctx *gms.Context, st *store.Store, s *Session, tr *store.Transaction, values []Value) ([]gms.Row, error) {
	ranges, bounds := make([]store.KeyRange, len(j.tables)), make([][][]byte, len(j.tables))
	for i, t := range j.tables {
		var hasKeys, hasBounds bool
		ranges[i], _, hasKeys = t.lookup.keys(values)
		bounds[i], hasBounds = boundsOf(t.rest, values)
		if !hasKeys || !hasBounds {
			return nil, ErrPlan
		}
	}
	found := make([][]gms.Row, len(j.tables))
	for i, t := range j.tables {
		var err error
		if found[i], err = t.rows(ctx, st, s, tr, ranges[i], bounds[i]); err != nil || len(found[i]) == 0 {
			return nil, err
		}
	}
	return j.product(found), nil
}

// product combines the tables' rows. Only the last table may have more than one.
func (j *join) product(found [][]gms.Row) []gms.Row {
	last := len(found) - 1
	rows := make([]gms.Row, len(found[last]))
	for i, row := range found[last] {
		rows[i] = make(gms.Row, len(j.out))
		for k, c := range j.out {
			if c.table == last {
				rows[i][k] = row[c.column]
			} else {
				rows[i][k] = found[c.table][0][c.column]
			}
		}
	}
	return rows
}

// rows returns the rows of a table that meet its conditions.
func (t *joinedTable) rows(ctx *gms.Context, st *store.Store, s *Session, tr *store.Transaction, r store.KeyRange, bounds [][]byte) (rows []gms.Row, err error) {
	if r.High == nil && r.Point {
		rows, err = t.point(s, tr, &r)
	} else {
		rows, err = t.all(ctx, t.scan(st, s, tr, t.columns, r))
	}
	kept := rows[:0]
	for _, row := range rows {
		if meets(t.rest, row, bounds) {
			kept = append(kept, row)
		}
	}
	return kept, err
}

// runJoin returns the rows of a SELECT that is a join.
func (f *form) runJoin(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	rows, err := f.join.run(ctx, c.st, s, tr, values)
	if err == nil && f.plans != nil {
		rows, err = f.runPlan(ctx, c, s, values, func(*selectPlan) gms.RowIter { return gms.RowsToRowIter(rows...) })
	}
	if err != nil {
		return nil, err
	}
	return &Result{Header: f.schema, Rows: rows}, nil
}
