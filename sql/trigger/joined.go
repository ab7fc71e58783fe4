package trigger

import (
	"io"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// A section is where the columns of a table are in the rows of a join.
type section struct {
	start, end int
	// table is the number of the table in the FROM clause.
	table   gms.TableId
	columns gms.Schema
	// isKeyed is set if the table has a primary key. Without one, equal rows may be different rows.
	isKeyed bool
}

// sectionOf finds the columns of a table by the name that it has in a join; they are the whole row if
// the name is empty.
func sectionOf(ctx *gms.Context, columns gms.Schema, name string, table *plan.ResolvedTable) (section, error) {
	s := section{end: len(columns), table: table.Id()}
	if name != "" {
		isOurs := func(c *gms.Column) bool { return strings.EqualFold(c.Source, name) }
		s.start = slices.IndexFunc(columns, isOurs)
		if s.start < 0 {
			return s, plan.ErrUpdateForTableNotSupported.New(name)
		}
		if n := slices.IndexFunc(columns[s.start:], func(c *gms.Column) bool { return !isOurs(c) }); n >= 0 {
			s.end = s.start + n
		}
	}
	s.columns = columns[s.start:s.end]
	s.isKeyed = slices.ContainsFunc(table.Schema(ctx), func(c *gms.Column) bool { return c.PrimaryKey })
	return s, nil
}

// of returns the table's part of a row of the join.
func (s *section) of(row gms.Row) gms.Row { return row[s.start:s.end] }

// isMissing reports whether an outer join has found no row of the table: all columns are NULL.
func (s *section) isMissing(row gms.Row) bool {
	return s.isKeyed && !slices.ContainsFunc(s.of(row), func(v any) bool { return v != nil })
}

// rowsOf are the rows of a join, once for each table: all of the first table of the FROM clause, then
// all of the second and so on, and each row of a table only once. This is the order in which MySQL
// changes them.
type rowsOf struct {
	rows   gms.RowIter
	tables []section
	at     int // the table whose rows are being returned
	seen   []*compat.RowSet
	later  [][]gms.Row // by table: what the join has returned while at was 0
	held   *held
}

func newRowsOf(ctx *gms.Context, rows gms.RowIter, tables []section) *rowsOf {
	r := &rowsOf{rows: rows, tables: tables, later: make([][]gms.Row, len(tables)), held: &held{Holding: store.HoldingOf(ctx)}}
	for _, t := range tables {
		r.seen = append(r.seen, compat.NewRowSet(r.held, t.columns))
	}
	return r
}

// Next returns a row of the join, and the number of the table that it is returned for. A row of an UPDATE's join has
// all columns twice: before and after the change.
func (r *rowsOf) Next(ctx *gms.Context) (table int, row gms.Row, err error) {
	for r.at == 0 {
		row, err := r.rows.Next(ctx)
		if err == io.EOF {
			r.at = 1
			break
		}
		if err != nil {
			return 0, nil, err
		}
		isNewInFirst, err := r.keep(ctx, row)
		if err != nil || isNewInFirst {
			return 0, row, err
		}
	}
	for ; r.at < len(r.tables); r.at++ {
		if rest := r.later[r.at]; len(rest) > 0 {
			r.later[r.at] = rest[1:]
			return r.at, rest[0], nil
		}
	}
	return 0, nil, io.EOF
}

// keep looks for the tables whose part of a row of the join is new. It keeps the row for each of them but the first, and
// reports whether the first table's part is new.
func (r *rowsOf) keep(ctx *gms.Context, row gms.Row) (isNewInFirst bool, err error) {
	isKept := false
	for i := range r.tables {
		t := &r.tables[i]
		if t.isMissing(row) {
			continue
		}
		isNew := true
		if t.isKeyed {
			if isNew, err = r.seen[i].Add(ctx, t.of(row)); err != nil {
				return false, err
			}
		}
		switch {
		case !isNew:
		case i == 0:
			isNewInFirst = true
		default:
			r.later[i], isKept = append(r.later[i], row), true
		}
	}
	if isKept {
		err = r.held.Take(store.RowMemory(row))
	}
	return isNewInFirst, err
}

// Close closes the rows of the join.
func (r *rowsOf) Close(ctx *gms.Context) error {
	r.later = nil
	r.held.free()
	return r.rows.Close(ctx)
}
