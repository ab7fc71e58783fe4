package sql

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/store"
)

// A lookAhead makes lookups for several rows together, before the node above makes the same
// lookups row by row.
type lookAhead interface {
	// first returns the number of rows to read the first time.
	first() int
	// lookUp makes the lookups for rows. parent is the row with which the node above was built.
	lookUp(ctx *gms.Context, rows []gms.Row, parent gms.Row) error
}

// noteAhead notes that the rows of a node, once it is built, are to be read a few at a time.
func (s *Session) noteAhead(n gms.Node, a lookAhead) {
	if !store.CanNote(n) {
		return
	}
	if s.running.ahead == nil {
		s.running.ahead = make(map[gms.Node]lookAhead)
	}
	s.running.ahead[n] = a
}

// takeAhead removes and returns the lookAhead that noteAhead has noted for a node. It returns nil if there is none.
func (s *Session) takeAhead(n gms.Node) lookAhead {
	if len(s.running.ahead) == 0 || !store.CanNote(n) {
		return nil
	}
	a := s.running.ahead[n]
	delete(s.running.ahead, n)
	return a
}

// buildAhead builds a node whose rows are to be read a few at a time.
func (b *builder) buildAhead(ctx *gms.Context, a lookAhead, n gms.Node, row gms.Row) (gms.RowIter, error) {
	rows, err := b.e.gms.Analyzer.ExecBuilder.Build(ctx, n, row)
	if err != nil || plan.IsEmptyIter(rows) {
		return rows, err
	}
	return &aheadIter{RowIter: rows, lookAhead: a, parent: row, together: a.first()}, nil
}

// aheadMost is the largest number of rows that are read together. Each read takes twice as many
// rows as the one before, up to aheadMost.
const aheadMost = 128

// An aheadIter reads rows a few at a time, and makes the lookups for them together.
type aheadIter struct {
	gms.RowIter
	lookAhead
	parent gms.Row
	// rows have been read but not returned yet. failed is the error to return after them, once.
	rows     []gms.Row
	failed   error
	together int // the number of rows to read next
}

// Next implements gms.RowIter.
func (i *aheadIter) Next(ctx *gms.Context) (gms.Row, error) {
	if len(i.rows) == 0 && i.failed == nil {
		if err := i.read(ctx); err != nil {
			return nil, err
		}
	}
	if len(i.rows) == 0 {
		err := i.failed
		if err != io.EOF {
			i.failed = nil
		}
		return nil, err
	}
	row := i.rows[0]
	i.rows = i.rows[1:]
	return row, nil
}

// read reads the next rows, up to an error, and makes the lookups for them.
func (i *aheadIter) read(ctx *gms.Context) error {
	rows := make([]gms.Row, 0, i.together)
	for len(rows) < cap(rows) {
		row, err := i.RowIter.Next(ctx)
		if err != nil {
			i.failed = err
			break
		}
		rows = append(rows, row)
	}
	i.rows, i.together = rows, min(2*i.together, aheadMost)
	if len(rows) < 2 {
		return nil // a single row is looked up where it is used
	}
	if err := i.lookUp(ctx, rows, i.parent); err != nil {
		return ctx.Err() // any other error occurs again when the node above uses the row
	}
	return nil
}
