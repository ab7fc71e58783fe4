package trigger

import (
	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// BuildRowIter implements gms.ExecBuilderNode.
func (u *updates) BuildRowIter(ctx *gms.Context, b gms.NodeExecBuilder, row gms.Row) (gms.RowIter, error) {
	tables, err := u.tables(ctx)
	if err != nil {
		return nil, err
	}
	source := u.Child
	if join, ok := source.(*plan.UpdateJoin); ok {
		source = join.Child
	}
	rows, err := b.Build(ctx, source, row)
	if err != nil {
		return nil, err
	}
	i := &updatesIter{RowIter: rows, tables: tables, width: len(u.Schema(ctx))}
	if u.isJoin {
		i.joined, i.rows = newRowsOf(ctx, rows, sections(tables)), repeated(tables)
	}
	return i, nil
}

// repeated has an entry for each table that is in a join under several names.
func repeated(tables []updated) map[tableName]map[uint64]gms.Row {
	out, count := make(map[tableName]map[uint64]gms.Row), make(map[tableName]int)
	for _, t := range tables {
		if count[t.name]++; count[t.name] > 1 {
			out[t.name] = make(map[uint64]gms.Row)
		}
	}
	return out
}

func sections(tables []updated) (all []section) {
	for _, t := range tables {
		all = append(all, t.section)
	}
	return all
}

// An updatesIter returns the rows that an UPDATE changes, before and after the change, as the BEFORE
// triggers have made them.
type updatesIter struct {
	gms.RowIter
	joined *rowsOf // nil if it is no join
	tables []updated
	width  int
	// rows are the present rows, by their former values, of the tables that the join has under several names.
	rows map[tableName]map[uint64]gms.Row
}

// Next implements gms.RowIter. It runs the BEFORE triggers and, if the row does not change, the AFTER triggers. Columns
// of the join's other tables do not change.
func (i *updatesIter) Next(ctx *gms.Context) (gms.Row, error) {
	row, at, err := gms.Row(nil), 0, error(nil)
	if i.joined != nil {
		at, row, err = i.joined.Next(ctx)
	} else {
		row, err = i.RowIter.Next(ctx)
	}
	if err != nil {
		return nil, err
	}
	t := &i.tables[at]
	old, changed, err := i.change(ctx, t, t.of(row[:i.width]), t.of(row[i.width:]))
	if err != nil {
		return nil, err
	}
	out := append(row[:i.width:i.width], row[:i.width]...)
	copy(t.of(out), old)
	copy(t.of(out[i.width:]), changed)
	return out, nil
}

// Close implements gms.RowIter.
func (i *updatesIter) Close(ctx *gms.Context) error {
	if i.joined != nil {
		return i.joined.Close(ctx)
	}
	return i.RowIter.Close(ctx)
}

// change returns two rows: the present row of a table, and that row as the UPDATE and its BEFORE triggers make it.
func (i *updatesIter) change(ctx *gms.Context, t *updated, old, changed gms.Row) (_, _ gms.Row, err error) {
	known, isRepeated := i.rows[t.name]
	key := uint64(0)
	if isRepeated {
		if key, err = compat.NewRowSet(nil, t.columns).Key(ctx, old); err != nil {
			return nil, nil, err
		}
		if present, ok := known[key]; ok {
			if old, changed, err = t.onto(ctx, present, old, changed); err != nil {
				return nil, nil, err
			}
		}
	}
	if i.joined != nil {
		if changed, err = t.withAssigned(ctx, old, changed); err != nil {
			return nil, nil, err
		}
	}
	width := len(old)
	both, err := t.fire(ctx, t.before, append(old[:width:width], changed...))
	if err != nil {
		return nil, nil, err
	}
	if both, err = regenerate(ctx, t.regenerators, both); err != nil {
		return nil, nil, err
	}
	old, changed = both[:width], both[width:]
	if isRepeated {
		if err := i.joined.held.Take(store.RowMemory(changed)); err != nil {
			return nil, nil, err
		}
		known[key] = changed
	}
	isSame, err := old.Equals(ctx, changed, t.columns)
	if err == nil && isSame { // for a row that differs the updater fires them
		_, err = t.fire(ctx, t.after, both)
	}
	return old, changed, err
}

// onto returns row, which the UPDATE has changed already under another name of the table, and row with the columns that
// differ between old and changed.
func (t *updated) onto(ctx *gms.Context, row, old, changed gms.Row) (_, _ gms.Row, err error) {
	out := row.Copy()
	for at, c := range t.columns {
		differs, err := c.Type.Compare(ctx, old[at], changed[at])
		if err != nil {
			return nil, nil, err
		}
		if differs != 0 {
			out[at] = changed[at]
		}
	}
	return row, out, nil
}
