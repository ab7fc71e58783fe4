package sql

import (
	"io"
	"math"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/hash"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// This file executes DISTINCT, UNION, INTERSECT and EXCEPT, which compare rows
// as = does, strings by their collation. go-mysql-server compares bytes.

var (
	_ gms.RowIter = (*distinctIter)(nil)
	_ gms.RowIter = (*commonIter)(nil)
	_ gms.RowIter = (*offsetIter)(nil)
)

// distinct executes SELECT DISTINCT and the set operations that compare rows;
// nil leaves the node to go-mysql-server.
func (b *builder) distinct(ctx *gms.Context, s *Session, n gms.Node, row gms.Row) (gms.RowIter, error) {
	switch n := n.(type) {
	case *plan.Distinct:
		rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Child, row)
		if err != nil {
			return nil, err
		}
		return newDistinctIter(&s.holding, rows, n.Schema(ctx)), nil
	case *plan.SetOp:
		if n.SetOpType == plan.UnionType && !n.Distinct {
			return b.unionAll(ctx, s, n, row)
		}
		rows, err := b.setOp(ctx, s, n, row)
		if err != nil {
			return nil, err
		}
		return s.limited(ctx, n, rows)
	}
	return nil, nil
}

// unionAll executes a UNION ALL of which rows are sorted: go-mysql-server leaves out those of
// OFFSET before that, and has memory for LIMIT.
func (b *builder) unionAll(ctx *gms.Context, s *Session, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	if len(n.SortFields) == 0 {
		return nil, nil
	}
	all := *n
	all.Limit, all.Offset, all.SortFields = nil, nil, nil
	rows, err := b.ordinary(ctx, s, &all, row)
	if err != nil {
		return nil, err
	}
	return s.limited(ctx, n, rows)
}

// setOp executes a set operation without its ORDER BY and LIMIT.
func (b *builder) setOp(ctx *gms.Context, s *Session, n *plan.SetOp, row gms.Row) (gms.RowIter, error) {
	schema := comparedSchema(ctx, n)
	if n.SetOpType == plan.UnionType {
		all := *n
		all.Distinct, all.Limit, all.Offset, all.SortFields = false, nil, nil, nil
		rows, err := b.ordinary(ctx, s, &all, row)
		if err != nil {
			return nil, err
		}
		return newDistinctIter(&s.holding, rows, schema), nil
	}
	left, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Left(), row)
	if err != nil {
		return nil, err
	}
	right, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n.Right(), row)
	if err != nil {
		_ = left.Close(ctx) // err says what is wrong
		return nil, err
	}
	var rows gms.RowIter = &commonIter{left: left, right: right, except: n.SetOpType == plan.ExceptType, distinct: n.Distinct, schema: schema, h: &s.holding}
	if n.Distinct {
		rows = newDistinctIter(&s.holding, rows, schema)
	}
	return rows, nil
}

// comparedSchema is the schema of a set operation with the collations that its
// strings are compared by; its own have lost them where the two sides differ.
func comparedSchema(ctx *gms.Context, n *plan.SetOp) gms.Schema {
	schema := n.Schema(ctx).Copy()
	for i, c := range schema {
		if types.IsTextOnly(c.Type) {
			c.Type = types.CreateLongText(first(columnCollation(ctx, n, i)))
		}
	}
	return schema
}

func first[A, B any](a A, _ B) A { return a }

// columnCollation returns the collation of a plan's column and how strong it is.
func columnCollation(ctx *gms.Context, n gms.Node, at int) (gms.CollationID, byte) {
	switch n := n.(type) {
	case *plan.SetOp:
		left, l := columnCollation(ctx, n.Left(), at)
		right, r := columnCollation(ctx, n.Right(), at)
		return gms.ResolveCoercibility(left, l, right, r)
	case *plan.Project:
		e := n.Projections[at]
		if a, ok := e.(*expression.Alias); ok {
			e = a.Child
		}
		if c, ok := e.(*expression.Convert); ok {
			e = c.Child // a set operation's own: what it converts to has lost the collation
		}
		if g, ok := e.(*expression.GetField); ok && len(n.Child.Schema(ctx)) > g.Index() && g.Index() >= 0 {
			return columnCollation(ctx, n.Child, g.Index())
		}
		return gms.GetCoercibility(ctx, e)
	}
	const implicit = 2
	if t, ok := n.Schema(ctx)[at].Type.(gms.TypeWithCollation); ok {
		return t.Collation(), implicit
	}
	return gms.Collation_binary, implicit
}

// limited applies the ORDER BY and LIMIT of a set operation.
func (s *Session) limited(ctx *gms.Context, n *plan.SetOp, rows gms.RowIter) (gms.RowIter, error) {
	if len(n.SortFields) > 0 {
		rows = iters.NewSortIter(n.SortFields, s.metered(rows, metering{most: math.MaxInt64}))
	}
	if n.Offset != nil {
		skip, err := iters.GetInt64Value(ctx, n.Offset)
		if err != nil {
			return nil, err
		}
		rows = &offsetIter{RowIter: rows, skip: skip}
	}
	if n.Limit != nil {
		limit, err := iters.GetInt64Value(ctx, n.Limit)
		if err != nil {
			return nil, err
		}
		rows = &iters.LimitIter{Limit: limit, ChildIter: rows}
	}
	return rows, nil
}

// A rowSet counts rows; equal ones, as = has it, are one.
type rowSet struct {
	schema gms.Schema
	counts map[uint64]int
	h      *holding
	// weights are those of the columns that are characters, and weighed is the
	// schema of rows that have weights in their place.
	weights []*row.Weights
	weighed gms.Schema
	// row and text are memory for the row at hand.
	row  gms.Row
	text []byte
}

// countedBytes is what a row takes in a rowSet.
const countedBytes = 40

func newRowSet(h *holding, schema gms.Schema) *rowSet {
	s := &rowSet{h: h, schema: schema, counts: make(map[uint64]int), weights: make([]*row.Weights, len(schema)), weighed: schema.Copy()}
	for i, c := range s.weighed {
		if s.weights[i] = row.WeightsOfType(c.Type); s.weights[i] != nil {
			c.Type = types.Int64 // bytes are hashed as they are, then
		}
	}
	return s
}

// key is the same for rows that are equal. A truth value is a number in MySQL.
func (s *rowSet) key(ctx *gms.Context, row gms.Row) (uint64, error) {
	s.row, s.text = append(s.row[:0], row...), s.text[:0]
	for i, v := range s.row {
		b, isTruth := v.(bool)
		switch {
		case isTruth && b:
			s.row[i] = int8(1)
		case isTruth:
			s.row[i] = int8(0)
		}
	}
	for i, w := range s.weights {
		if w == nil || i >= len(s.row) || s.row[i] == nil {
			continue
		}
		text, ok := s.row[i].(string)
		if !ok {
			var err error
			if text, err = types.ConvertToString(ctx, s.row[i], s.schema[i].Type.(gms.StringType), nil); err != nil {
				return 0, err
			}
		}
		start := len(s.text)
		if s.text, ok = w.Append(s.text, text); !ok {
			return hash.HashOf(ctx, s.schema, row) // which says what is wrong
		}
		s.row[i] = s.text[start:len(s.text):len(s.text)]
	}
	return hash.HashOf(ctx, s.weighed, s.row)
}

// add adds a row, and reports whether it is the first of its kind.
func (s *rowSet) add(ctx *gms.Context, row gms.Row) (bool, error) {
	key, err := s.key(ctx, row)
	if err != nil {
		return false, err
	}
	if s.counts[key]++; s.counts[key] > 1 {
		return false, nil
	}
	return true, s.h.take(countedBytes)
}

// forget gives back what the rows have taken.
func (s *rowSet) forget() {
	if s != nil {
		s.h.give(countedBytes * int64(len(s.counts)))
		clear(s.counts)
	}
}

// take looks for a row, and takes it out if it is there.
func (s *rowSet) take(ctx *gms.Context, row gms.Row, out bool) (bool, error) {
	key, err := s.key(ctx, row)
	if err != nil || s.counts[key] == 0 {
		return false, err
	}
	if out {
		s.counts[key]--
	}
	return true, nil
}

// A distinctIter leaves out the rows that are equal to an earlier one.
type distinctIter struct {
	rows gms.RowIter
	seen *rowSet
}

func newDistinctIter(h *holding, rows gms.RowIter, schema gms.Schema) *distinctIter {
	return &distinctIter{rows: rows, seen: newRowSet(h, schema)}
}

// Next implements gms.RowIter.
func (i *distinctIter) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := i.rows.Next(ctx)
		if err != nil {
			return nil, err
		}
		if first, err := i.seen.add(ctx, row); err != nil || first {
			return row, err
		}
	}
}

// Close implements gms.RowIter.
func (i *distinctIter) Close(ctx *gms.Context) error {
	i.seen.forget()
	return i.rows.Close(ctx)
}

// A commonIter returns the rows on the left that are on the right too, or those
// that are not. Without DISTINCT each on the right stands for one on the left.
type commonIter struct {
	left, right      gms.RowIter
	except, distinct bool
	schema           gms.Schema
	h                *holding
	rows             *rowSet // of the right side, once read
}

// Next implements gms.RowIter.
func (i *commonIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows == nil {
		if err := i.read(ctx); err != nil {
			return nil, err
		}
	}
	for {
		row, err := i.left.Next(ctx)
		if err != nil {
			return nil, err
		}
		common, err := i.rows.take(ctx, row, !i.distinct)
		if err != nil || common != i.except {
			return row, err
		}
	}
}

func (i *commonIter) read(ctx *gms.Context) error {
	rows := newRowSet(i.h, i.schema)
	for {
		row, err := i.right.Next(ctx)
		if err == io.EOF {
			i.rows = rows
			return nil
		}
		if err != nil {
			return err
		}
		if _, err = rows.add(ctx, row); err != nil {
			return err
		}
	}
}

// Close implements gms.RowIter.
func (i *commonIter) Close(ctx *gms.Context) error {
	i.rows.forget()
	err := i.left.Close(ctx)
	if other := i.right.Close(ctx); err == nil {
		err = other
	}
	return err
}

// An offsetIter leaves out the first rows.
type offsetIter struct {
	gms.RowIter
	skip int64
}

// Next implements gms.RowIter.
func (i *offsetIter) Next(ctx *gms.Context) (gms.Row, error) {
	for ; i.skip > 0; i.skip-- {
		if _, err := i.RowIter.Next(ctx); err != nil {
			return nil, err
		}
	}
	return i.RowIter.Next(ctx)
}
