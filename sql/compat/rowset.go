package compat

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/hash"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/sql/row"
)

// This file compares rows as = does, strings by their collation; go-mysql-server compares
// bytes for DISTINCT, UNION, INTERSECT and EXCEPT.

var (
	_ gms.RowIter = (*DistinctRows)(nil)
	_ gms.RowIter = (*CommonRows)(nil)
)

// Memory counts the bytes that a statement keeps.
type Memory interface {
	// Take counts n bytes more, or returns an error and does not count them.
	Take(n int64) error
	// Give undoes Take.
	Give(n int64)
}

// A RowSet counts rows; rows that are equal by = count as one.
type RowSet struct {
	schema gms.Schema
	counts map[uint64]int
	memory Memory // counts the memory of the set; may be nil
	// weights has the collation's weights for each string column; weighed is the schema of rows with
	// weights in place of strings.
	weights []*row.Weights
	weighed gms.Schema
	// row and text are buffers for the current row.
	row  gms.Row
	text []byte
}

// countedBytes is the memory of a row in a RowSet.
const countedBytes = 40

// NewRowSet returns an empty set of rows of a schema. memory, if not nil, counts its memory.
func NewRowSet(memory Memory, schema gms.Schema) *RowSet {
	s := &RowSet{memory: memory, schema: schema, counts: make(map[uint64]int), weights: make([]*row.Weights, len(schema)), weighed: schema.Copy()}
	for i, c := range s.weighed {
		if s.weights[i] = row.WeightsOfType(c.Type); s.weights[i] != nil {
			c.Type = types.Int64 // the weights' bytes are hashed unchanged
		}
	}
	return s
}

// Key returns the same key for equal rows. A truth value is a number in MySQL.
func (s *RowSet) Key(ctx *gms.Context, row gms.Row) (uint64, error) {
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
			return hash.HashOf(ctx, s.schema, row) // reports the error
		}
		s.row[i] = s.text[start:len(s.text):len(s.text)]
	}
	return hash.HashOf(ctx, s.weighed, s.row)
}

// Add adds a row, and reports whether no equal row was in the set.
func (s *RowSet) Add(ctx *gms.Context, row gms.Row) (bool, error) {
	key, err := s.Key(ctx, row)
	if err != nil {
		return false, err
	}
	if s.counts[key]++; s.counts[key] > 1 {
		return false, nil
	}
	if s.memory == nil {
		return true, nil
	}
	return true, s.memory.Take(countedBytes)
}

// forget empties the set, and gives back its memory.
func (s *RowSet) forget() {
	if s != nil {
		if s.memory != nil {
			s.memory.Give(countedBytes * int64(len(s.counts)))
		}
		clear(s.counts)
	}
}

// take reports whether a row is in the set, and removes it if remove is set.
func (s *RowSet) take(ctx *gms.Context, row gms.Row, remove bool) (bool, error) {
	key, err := s.Key(ctx, row)
	if err != nil || s.counts[key] == 0 {
		return false, err
	}
	if remove {
		s.counts[key]--
	}
	return true, nil
}

// DistinctRows leaves out the rows that are equal to an earlier one.
type DistinctRows struct {
	rows gms.RowIter
	seen *RowSet
}

// NewDistinctRows returns an iterator over the distinct rows of rows, which it closes.
func NewDistinctRows(memory Memory, rows gms.RowIter, schema gms.Schema) *DistinctRows {
	return &DistinctRows{rows: rows, seen: NewRowSet(memory, schema)}
}

// Next implements gms.RowIter.
func (i *DistinctRows) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := i.rows.Next(ctx)
		if err != nil {
			return nil, err
		}
		if first, err := i.seen.Add(ctx, row); err != nil || first {
			return row, err
		}
	}
}

// Close implements gms.RowIter.
func (i *DistinctRows) Close(ctx *gms.Context) error {
	i.seen.forget()
	return i.rows.Close(ctx)
}

// CommonRows returns the rows on the left that are on the right too or, with Except, those
// that are not. Without Distinct each row on the right matches one on the left.
type CommonRows struct {
	Left, Right gms.RowIter // the CommonRows closes both
	// Except selects the rows that are not on the right. With Distinct, a row on the right
	// matches any number on the left.
	Except, Distinct bool
	Schema           gms.Schema
	Memory           Memory  // counts the memory of rows; may be nil
	rows             *RowSet // the right side's, once read
}

// Next implements gms.RowIter.
func (i *CommonRows) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows == nil {
		if err := i.read(ctx); err != nil {
			return nil, err
		}
	}
	for {
		row, err := i.Left.Next(ctx)
		if err != nil {
			return nil, err
		}
		common, err := i.rows.take(ctx, row, !i.Distinct)
		if err != nil || common != i.Except {
			return row, err
		}
	}
}

// read reads all rows of the right side into a set.
func (i *CommonRows) read(ctx *gms.Context) error {
	rows := NewRowSet(i.Memory, i.Schema)
	for {
		row, err := i.Right.Next(ctx)
		if err == io.EOF {
			i.rows = rows
			return nil
		}
		if err != nil {
			return err
		}
		if _, err = rows.Add(ctx, row); err != nil {
			return err
		}
	}
}

// Close implements gms.RowIter.
func (i *CommonRows) Close(ctx *gms.Context) error {
	i.rows.forget()
	err := i.Left.Close(ctx)
	if other := i.Right.Close(ctx); err == nil {
		err = other
	}
	return err
}
