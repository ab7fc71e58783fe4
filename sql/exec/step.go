package exec

import (
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/store"
)

// A step joins the rows of the earlier tables with the rows of a table that it looks up for them.
type step struct {
	gms.RowIter
	r      *run
	table  *store.Table
	lookup *lookup
	// kept has the table's rows, if there is no lookup. spare becomes kept after spareAt lookups; it may be nil.
	kept    *kept
	spare   *kept
	spareAt int
	passes  func(*gms.Context, gms.Row) (bool, error)
	// on decides whether a row of the table belongs to a row of the earlier tables. where decides
	// whether the joined row is returned.
	on, where test
	at, width int
	// kind says what happens to a row of the earlier tables. matched is set if a row belongs to the
	// present one.
	kind    plan.JoinKind
	matched bool
	// first is the number of rows that each lookup needs to return; 0 if it is not known.
	first int
	// reverse is set if the lookup reads backwards, isUnique if it finds one row at most.
	reverse, isUnique bool
	changes           bool // whether the statement changes rows of the table
	// outer is the present row of the earlier tables; nil if there is none. It has room for the
	// table's columns, which are those of the row tested last. found returns the rows looked up for
	// outer.
	outer gms.Row
	found gms.RowIter
	looks int // rows of the earlier tables so far
	// taken has the next rows of the earlier tables. together is how many are taken at a time. isFar
	// is set if their keys are looked up together, because they are at another machine.
	taken    []takenRow
	together int
	isFar    bool
}

// step returns the rows of a step; false if a value is not plain.
func (r *run) step(ctx *gms.Context, n *plan.Join, s *plan.JoinStep, outer gms.RowIter) (gms.RowIter, bool) {
	if s.IsKept {
		return r.keptStep(n, s, outer)
	}
	t := &n.Tables[s.Table]
	own := compiler{t.Scan.Place, t.Table.Codec, r.values}
	passes, hasPasses := own.compile(whereOf(t.Scan))
	where, hasWhere := r.joinTest(n, s.Where)
	on, hasOn := joinCompiler(n, r.values).compile(plan.And(t.On))
	l, hasLookup := r.newLookup(n, s)
	table := &store.Table{Store: r.s.Store, Info: t.Table, Columns: t.Columns}
	first := 0
	if !t.Kind.Adds() {
		first = 1
	}
	isUnique := s.Lookup.IsUnique(t.Table)
	isFar := isUnique && r.tr.Editing == 0 && table.IsElsewhere(s.Lookup.Index)
	var spare *kept
	spareAt := 0
	if !isFar {
		spare, spareAt = r.spareOf(ctx, n, s)
	}
	return &step{
		RowIter: outer, r: r, table: table, lookup: l, passes: passing(passes), on: on, where: where, at: t.Offset, width: t.Width(), kind: t.Kind, reverse: s.Reverse,
		first: first, changes: r.changes(t.Table), isUnique: isUnique, together: 1, isFar: isFar,
		spare: spare, spareAt: spareAt,
	}, hasPasses && hasWhere && hasOn && hasLookup
}

// keptStep is step for rows that are kept.
func (r *run) keptStep(n *plan.Join, s *plan.JoinStep, outer gms.RowIter) (gms.RowIter, bool) {
	t := &n.Tables[s.Table]
	where, hasWhere := r.joinTest(n, s.Where)
	on, hasOn := joinCompiler(n, r.values).compile(plan.And(t.On))
	var keys []keptKey
	for _, k := range s.Keys {
		keys = append(keys, keptKey{t.Scan.Place(k.Column), n.Place(k.Outer), t.Codec(k.Column)})
	}
	return &step{
		RowIter: outer, r: r, kept: r.newKept(t, keys), on: on, where: where, at: t.Offset, width: t.Width(), kind: t.Kind,
		isUnique: n.IsUnique(s), together: 1,
	}, hasWhere && hasOn
}

// Close implements gms.RowIter.
func (s *step) Close(ctx *gms.Context) error {
	if s.kept != nil {
		s.kept.give()
	}
	return s.RowIter.Close(ctx)
}

// Next implements gms.RowIter. It returns outer with each row that belongs to it; without any, an outer join
// returns outer with NULLs. A semi-join or an anti-join returns outer itself, once.
func (s *step) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		if s.outer == nil {
			if err := s.next(ctx); err != nil {
				return nil, err
			}
		}
		isLast, err := s.match(ctx)
		if err != nil {
			return nil, err
		}
		outer := s.outer
		switch {
		case !s.kind.Adds():
			s.outer = nil
			if isLast == (s.kind == plan.Semi) { // a Semi needs a row that belongs to outer, an Anti must have none
				continue
			}
		case isLast:
			s.outer = nil
			if s.kind == plan.Inner || s.matched {
				continue
			}
			clear(outer[s.at : s.at+s.width])
		}
		comesNoMore := isLast || !s.kind.Adds() // so outer need not be copied
		v, err := s.where(ctx, outer)
		switch {
		case err != nil:
			return nil, err
		case v != isTrue:
		case comesNoMore:
			return outer, nil
		case s.isUnique:
			s.outer = nil
			return outer, nil
		default:
			return slices.Clone(outer), nil
		}
	}
}

// match joins the present row of the earlier tables with the next row that belongs to it; isLast is
// set if there is none.
func (s *step) match(ctx *gms.Context) (isLast bool, err error) {
	for {
		row, err := s.found.Next(ctx)
		if err != nil {
			return err == io.EOF, unlessEnd(err)
		}
		copy(s.outer[s.at:], row)
		v, err := s.on(ctx, s.outer)
		if err != nil || v == isTrue {
			s.matched = true
			return false, err
		}
	}
}

// unlessEnd returns an error that is not the end of rows.
func unlessEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// next takes the next row of the earlier tables, and looks up the rows that belong to it.
func (s *step) next(ctx *gms.Context) error {
	if s.looks++; s.looks%store.RowsBetweenLooks == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if s.spare != nil && s.looks > s.spareAt {
		if err := s.keep(ctx); err != nil {
			return err
		}
	}
	if len(s.taken) == 0 {
		if err := s.take(ctx); err != nil {
			return err
		}
	}
	t := s.taken[0]
	s.taken = s.taken[1:]
	s.outer, s.matched = t.row, false
	if s.kept != nil {
		rows, err := s.kept.find(ctx, t.row)
		s.found = &rowList{rows: rows}
		return err
	}
	s.found = gms.RowsToRowIter()
	if t.hasKeys {
		s.found = s.table.Rows(s.r.s, s.r.tr, &store.Scan{
			Index: s.lookup.index, Ranges: []store.KeyRange{t.keys}, Reverse: s.reverse, Passes: s.passes, First: s.first, Changes: s.changes,
		})
	}
	return nil
}

// A takenRow is a row of the earlier tables, with the keys to look up for it.
type takenRow struct {
	row     gms.Row
	keys    store.KeyRange
	hasKeys bool
}

// takenMax bounds the rows whose keys are looked up together.
const takenMax = 128

// take takes the next row of the earlier tables. If each lookup would wait for another machine, it
// takes several rows, twice as many each time. With a LIMIT, at most about twice the needed rows
// are then read.
func (s *step) take(ctx *gms.Context) error {
	s.taken = s.taken[:0]
	for range s.together {
		row, err := s.RowIter.Next(ctx)
		if err == io.EOF && len(s.taken) > 0 {
			break
		}
		if err != nil {
			return err
		}
		if s.kept != nil {
			s.taken = append(s.taken, takenRow{row: row})
			continue
		}
		keys, ok, err := s.lookup.rangeFor(row)
		if err != nil {
			return err
		}
		s.taken = append(s.taken, takenRow{row, keys, ok})
	}
	if !s.isFar {
		return nil
	}
	s.together = min(2*s.together, takenMax)
	var keys []store.KeyRange
	for i := range s.taken {
		if s.taken[i].hasKeys {
			keys = append(keys, s.taken[i].keys)
		}
	}
	return s.table.GetAhead(s.r.tr, s.lookup.index, keys)
}
