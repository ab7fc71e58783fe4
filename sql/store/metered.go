package store

import (
	"io"
	"math"
	"reflect"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// Some nodes of go-mysql-server keep the rows that they read (sorts, hash tables, caches, windows)
// without counting their memory. So the rows are counted on their way to such a node: before the
// node is built, NoteInputs remembers its children, and their rows are metered. Metering also
// checks whether the statement has been cancelled, which some of these nodes do not.

var (
	_ gms.RowIter = (*meteredIter)(nil)
	_ gms.RowIter = (*subqueryRows)(nil)
)

// A Metering says how the memory of a node's rows is counted.
type Metering struct {
	// Most is the greatest number of rows held at a time.
	Most int64
	// Stays is set if the rows are held until the statement ends, and not only while they are
	// read.
	Stays bool
	// Again is set if the node is built more than once.
	Again bool
}

// NoteInputs makes the statement meter the rows of n's children if n keeps them, as a sort or a
// cache does.
func (h *Holding) NoteInputs(ctx *gms.Context, n gms.Node) {
	all, kept := Metering{Most: math.MaxInt64}, Metering{Most: math.MaxInt64, Stays: true}
	switch n := n.(type) {
	case *plan.Sort:
		h.NoteInput(n.Child, all)
	case *plan.Window:
		h.NoteInput(n.Child, all)
	case *plan.Into:
		h.NoteInput(n.Child, all)
	case *plan.TopN:
		if limit, err := iters.GetInt64Value(ctx, n.Limit); err == nil {
			h.NoteInput(n.Child, Metering{Most: limit})
		}
	case *plan.HashLookup:
		h.NoteInput(n.Child, kept)
	case *plan.CachedResults:
		h.NoteInput(n.Child, kept)
	case *plan.RecursiveCte: // the rows that one round finds are the next round's input
		all.Stays = n.Union().Distinct || len(n.Union().SortFields) > 0
		h.NoteInput(n.Left(), all)
		all.Again = true
		h.NoteInput(n.Right(), all)
	case *plan.Concat:
		h.NoteInput(n.Left(), all)
		h.NoteInput(n.Right(), all)
	case *plan.JoinNode:
		if n.Op.IsFullOuter() || n.Op.IsMerge() || n.Op.IsRange() {
			h.NoteInput(n.Left(), all)
			h.NoteInput(n.Right(), all)
		}
	}
}

// NoteInput notes a node whose rows are to be metered once it is built.
func (h *Holding) NoteInput(n gms.Node, m Metering) {
	if !CanNote(n) {
		return
	}
	h.inputs.Lock()
	defer h.inputs.Unlock()
	if h.inputs.of == nil {
		h.inputs.of = make(map[gms.Node]Metering)
	}
	h.inputs.of[n] = m
}

// CanNote reports whether a node can be noted: it must be a pointer. Some nodes of SHOW statements
// are not pointers; they have few rows.
func CanNote(n gms.Node) bool { return reflect.TypeOf(n).Kind() == reflect.Pointer }

// TakeInput reports whether a node has been noted, and removes the note.
func (h *Holding) TakeInput(n gms.Node) (Metering, bool) {
	h.inputs.Lock()
	defer h.inputs.Unlock()
	if len(h.inputs.of) == 0 || !CanNote(n) {
		return Metering{}, false
	}
	m, ok := h.inputs.of[n]
	delete(h.inputs.of, n)
	return m, ok
}

// forgetInputs removes what NoteInputs has noted for a statement that has ended.
func (h *Holding) forgetInputs() {
	if len(h.inputs.of) == 0 {
		return
	}
	h.inputs.Lock()
	defer h.inputs.Unlock()
	clear(h.inputs.of)
}

// Metered wraps rows that the caller keeps, so that their memory is counted (see Metering).
func (h *Holding) Metered(rows gms.RowIter, m Metering) gms.RowIter {
	if plan.IsEmptyIter(rows) {
		return rows
	}
	return &meteredIter{RowIter: rows, h: h, Metering: m}
}

// A meteredIter counts the rows that it passes on.
type meteredIter struct {
	gms.RowIter
	Metering
	h       *Holding
	rows    int64
	bytes   int64 // counted by h
	pending int64 // bytes not counted yet: h is called once for many rows
}

// meteredBytes is the number of bytes after which a meteredIter reports to its Holding.
const meteredBytes = 8 << 10

// Next implements gms.RowIter.
func (i *meteredIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows%RowsBetweenLooks == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	row, err := i.RowIter.Next(ctx)
	if err != nil {
		return row, err
	}
	if i.rows++; i.rows > i.Most {
		return row, nil // the node drops a row for each further one
	}
	if i.pending += RowMemory(row); i.pending >= meteredBytes {
		if err := i.h.Take(i.pending); err != nil {
			return nil, err
		}
		if i.Stays {
			i.h.staying.Add(i.pending)
		}
		i.bytes, i.pending = i.bytes+i.pending, 0
	}
	return row, nil
}

// RowsBetweenLooks is the number of rows after which an iterator checks whether the statement
// has been cancelled.
const RowsBetweenLooks = 64

// Close implements gms.RowIter.
func (i *meteredIter) Close(ctx *gms.Context) error {
	if !i.Stays {
		i.h.Give(i.bytes)
		i.bytes = 0
	}
	return i.RowIter.Close(ctx)
}

// A WantedIter ends when the statement's context does.
type WantedIter struct {
	gms.RowIter
	rows int
}

// Next implements gms.RowIter.
func (i *WantedIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows++; i.rows%RowsBetweenLooks == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return i.RowIter.Next(ctx)
}

// MeteredSubquery executes a subquery by build, and counts the memory of its rows. If stays is set, they and all that
// nodes in the subquery keep are counted until the statement ends. Else they are counted until the rows are closed: the
// subquery is executed anew, with new nodes, for each row around it.
func (h *Holding) MeteredSubquery(stays bool, build func() (gms.RowIter, error)) (gms.RowIter, error) {
	s := &subqueryRows{h: h, stays: stays, around: h.staying.Swap(0)}
	rows, err := build()
	if err != nil || plan.IsEmptyIter(rows) {
		s.end()
		return rows, err
	}
	s.RowIter = h.Metered(rows, Metering{Most: math.MaxInt64, Stays: stays})
	return s, nil
}

// subqueryRows are the rows of a subquery.
type subqueryRows struct {
	gms.RowIter
	h      *Holding
	stays  bool
	around int64 // Holding.staying of what is around the subquery
}

// Close implements gms.RowIter.
func (s *subqueryRows) Close(ctx *gms.Context) error {
	err := s.RowIter.Close(ctx)
	s.end()
	return err
}

// end gives back what nodes in the subquery have kept, unless it stays.
func (s *subqueryRows) end() {
	if kept := s.h.staying.Swap(s.around); !s.stays {
		s.h.Give(kept)
	}
}

// ReadAll reads rows to their end and counts them until the statement ends.
func (h *Holding) ReadAll(ctx *gms.Context, iter gms.RowIter) ([]gms.Row, error) {
	iter = h.Metered(iter, Metering{Most: math.MaxInt64, Stays: true})
	var rows []gms.Row
	for {
		row, err := iter.Next(ctx)
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
}
