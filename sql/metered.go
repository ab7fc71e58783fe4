package sql

import (
	"io"
	"math"
	"reflect"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/iters"
	"github.com/dolthub/go-mysql-server/sql/plan"
)

// Nodes of go-mysql-server that keep the rows that they are given (sorts, hash tables,
// caches, windows) ask nobody for memory. So what their children return is counted on its
// way to them: when such a node is about to be built, its children are noted, and the rows
// of a child that has been noted are metered. On the same way it is seen whether the
// statement is still wanted: some of these nodes would not find out by themselves.

var (
	_ gms.RowIter = (*meteredIter)(nil)
)

// A metering says how the rows of a node are counted.
type metering struct {
	// most is how many of them are held at a time.
	most int64
	// stays says that they are held until the statement ends, and not only as long as they
	// are being read.
	stays bool
	// again says that the node is built more than once.
	again bool
}

// noteInputs notes the children of a node that keeps what they return.
func (h *holding) noteInputs(ctx *gms.Context, n gms.Node) {
	all, kept := metering{most: math.MaxInt64}, metering{most: math.MaxInt64, stays: true}
	switch n := n.(type) {
	case *plan.Sort:
		h.noteInput(n.Child, all)
	case *plan.Window:
		h.noteInput(n.Child, all)
	case *plan.Into:
		h.noteInput(n.Child, all)
	case *plan.TopN:
		if limit, err := iters.GetInt64Value(ctx, n.Limit); err == nil {
			h.noteInput(n.Child, metering{most: limit})
		}
	case *plan.HashLookup:
		h.noteInput(n.Child, kept)
	case *plan.CachedResults:
		h.noteInput(n.Child, kept)
	case *plan.RecursiveCte: // what one round finds goes into the next
		all.stays = n.Union().Distinct || len(n.Union().SortFields) > 0
		h.noteInput(n.Left(), all)
		all.again = true
		h.noteInput(n.Right(), all)
	case *plan.Concat:
		h.noteInput(n.Left(), all)
		h.noteInput(n.Right(), all)
	case *plan.JoinNode:
		if n.Op.IsFullOuter() || n.Op.IsMerge() || n.Op.IsRange() {
			h.noteInput(n.Left(), all)
			h.noteInput(n.Right(), all)
		}
	}
}

func (h *holding) noteInput(n gms.Node, m metering) {
	if !isNoted(n) {
		return
	}
	h.inputs.Lock()
	defer h.inputs.Unlock()
	if h.inputs.of == nil {
		h.inputs.of = make(map[gms.Node]metering)
	}
	h.inputs.of[n] = m
}

// isNoted reports whether a node is one of many that could be noted. Those of SHOW statements
// that are no pointers cannot be, and have few rows.
func isNoted(n gms.Node) bool { return reflect.TypeOf(n).Kind() == reflect.Pointer }

// takeInput reports whether a node has been noted, once.
func (h *holding) takeInput(n gms.Node) (metering, bool) {
	h.inputs.Lock()
	defer h.inputs.Unlock()
	if len(h.inputs.of) == 0 || !isNoted(n) {
		return metering{}, false
	}
	m, ok := h.inputs.of[n]
	delete(h.inputs.of, n)
	return m, ok
}

// forgetInputs forgets the nodes of a statement that has ended.
func (h *holding) forgetInputs() {
	if len(h.inputs.of) == 0 {
		return
	}
	h.inputs.Lock()
	defer h.inputs.Unlock()
	clear(h.inputs.of)
}

// metered counts rows that somebody is about to keep.
func (h *holding) metered(rows gms.RowIter, m metering) gms.RowIter {
	if plan.IsEmptyIter(rows) {
		return rows
	}
	return &meteredIter{RowIter: rows, h: h, metering: m}
}

// A meteredIter counts the rows that it passes on.
type meteredIter struct {
	gms.RowIter
	metering
	h     *holding
	rows  int64
	bytes int64 // counted by h
	next  int64 // not yet counted: h is not asked for each row
}

// meteredBytes is how many bytes of rows are counted together.
const meteredBytes = 8 << 10

// Next implements gms.RowIter.
func (i *meteredIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows%wantedRows == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	row, err := i.RowIter.Next(ctx)
	if err != nil {
		return row, err
	}
	if i.rows++; i.rows > i.most {
		return row, nil
	}
	if i.next += rowMemory(row); i.next >= meteredBytes {
		if err := i.h.Take(i.next); err != nil {
			return nil, err
		}
		i.bytes, i.next = i.bytes+i.next, 0
	}
	return row, nil
}

// wantedRows is after how many rows an iterator looks whether anybody waits for them.
const wantedRows = 64

// Close implements gms.RowIter.
func (i *meteredIter) Close(ctx *gms.Context) error {
	if !i.stays {
		i.h.Give(i.bytes)
		i.bytes = 0
	}
	return i.RowIter.Close(ctx)
}

// A wantedIter ends when nobody waits for its rows any more.
type wantedIter struct {
	gms.RowIter
	rows int
}

// Next implements gms.RowIter.
func (i *wantedIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows++; i.rows%wantedRows == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return i.RowIter.Next(ctx)
}

// readAll reads rows to their end and counts them until the statement ends.
func (h *holding) readAll(ctx *gms.Context, iter gms.RowIter) ([]gms.Row, error) {
	iter = h.metered(iter, metering{most: math.MaxInt64, stays: true})
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
