package fast

import (
	"slices"
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// An insertion is an INSERT of rows of literals, DEFAULTs and NOW()s. go-mysql-server runs all
// other INSERTs. It also runs INSERTs into a table whose changes are left to it (see change). The
// same holds for a default that is needed, and is neither a plain literal nor the time of the
// statement.
type insertion struct {
	// columns are the positions of the values, and codecs are those of the columns.
	columns []int
	codecs  []*row.KeyCodec
	// given has the defaults of named columns for which the INSERT says DEFAULT. defaults has the
	// defaults of columns that it leaves out.
	given, defaults []columnDefault
	// generated is set if the INSERT does not name the AUTO_INCREMENT column. hasFurtherKey is set if
	// there are unique keys beside the primary key: after a duplicate of one, the statement must not draw
	// a second number.
	generated, hasFurtherKey bool
	// onDuplicate is what is done with a row whose key exists, by the upserters if it is updated; isRisky is set if one may fail.
	onDuplicate onDuplicate
	upserters   []upserter
	touches     touches // set in a row that is updated
	isRisky     bool
	uniques     int // the number of unique keys
	// oneByOne counts the times that rows are still to be inserted one by one.
	oneByOne atomic.Int32
}

// newInsertion returns the insertion for a shape; false if it is left to go-mysql-server.
func newInsertion(info *store.TableInfo, s *shape) (*insertion, bool) {
	if !plainInserts(info) {
		return nil, false
	}
	into := s.into
	if into == nil {
		for _, c := range info.Columns {
			into = append(into, c.Name)
		}
	}
	if len(into) != len(s.rows[0]) {
		return nil, false
	}
	in := &insertion{generated: info.AutoColumn >= 0}
	named := make([]bool, len(info.Columns))
	for _, name := range into {
		at := info.Column(name)
		if at < 0 || named[at] {
			return nil, false
		}
		named[at] = true
		in.generated = in.generated && at != info.AutoColumn
		in.columns, in.codecs = append(in.columns, at), append(in.codecs, info.Codec(at))
	}
	for i := range info.Columns {
		if named[i] || i == info.AutoColumn {
			continue
		}
		d, ok := defaultOf(info, i)
		if !ok {
			return nil, false
		}
		in.defaults = append(in.defaults, d)
	}
	for _, k := range info.Keys() {
		if info.IsUnique(k) {
			in.uniques++
		}
		in.hasFurtherKey = in.hasFurtherKey || (k != info.PrimaryKey && k.Unique)
	}
	return in, in.takesDuplicates(info, s) && in.resolveDefaults(info, s.rows) && in.refers(info)
}

// takesDuplicates notes what is done with duplicates. It returns false if this package does not do it: other tables refer
// to a table of a REPLACE, or an update has further effects, or needs go-mysql-server (upsertersOf).
func (in *insertion) takesDuplicates(info *store.TableInfo, s *shape) (ok bool) {
	switch in.onDuplicate = s.onDuplicate; in.onDuplicate {
	case replaces:
		return len(info.ReferencedBy) == 0
	case updates:
		if in.upserters, ok = upsertersOf(info, s.upserts); !ok {
			return false
		}
		for i := range in.upserters {
			in.isRisky = in.isRisky || in.upserters[i].mayFail(info)
		}
		in.touches, ok = touchesOf(info, func(column int) bool {
			return slices.ContainsFunc(s.upserts, func(u upsertion) bool { return info.Column(u.column) == column })
		})
		return ok
	}
	return true
}

// resolveDefaults sets given. It returns false if a column for which a row says DEFAULT has a default that defaultOf
// does not know, or if a column for which a row says NOW() would not store the time as it is. The DEFAULT of the
// AUTO_INCREMENT column is not in given: it is a number that is drawn.
func (in *insertion) resolveDefaults(info *store.TableInfo, rows [][]operand) bool {
	in.given = make([]columnDefault, len(in.columns))
	for i, at := range in.columns {
		for _, r := range rows {
			switch {
			case r[i].at == nowAt && !takesNow(in.codecs[i]):
				return false
			case r[i].at == defaultAt && at != info.AutoColumn:
				var ok bool
				if in.given[i], ok = defaultOf(info, at); !ok {
					return false
				}
			}
		}
	}
	return true
}

// refers reports whether the rows that the new row refers to can be looked up before
// it is inserted: they are in other tables, and literals give their keys.
func (in *insertion) refers(info *store.TableInfo) bool {
	for i := range info.ForeignKeys {
		f := &info.ForeignKeys[i]
		self := store.SameName(f.ParentDB, info.DB) && store.SameName(f.ParentTable, info.Name)
		isDrawn := info.AutoColumn >= 0 && slices.ContainsFunc(f.Columns, func(name string) bool { return store.SameName(name, info.Columns[info.AutoColumn].Name) })
		if !f.Resolved || self || isDrawn {
			return false
		}
	}
	return true
}

// runInsert inserts the rows that the literals make.
func (f *form) runInsert(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	rows, ok := f.insert.rows(ctx, f.info, c.shape.rows, values)
	if !ok {
		return nil, ErrPlan
	}
	drawn, err := f.insert.draws(ctx, f.info, rows)
	if err != nil {
		return nil, err
	}
	if err := f.writable(c, tr); err != nil {
		return nil, err
	}
	if err := f.parents(ctx, c.st, tr, rows); err != nil {
		return nil, err
	}
	t := &store.Table{Store: c.st, Info: f.info}
	ed := t.EditorFor(ctx, &s.Session)
	run, ok := f.insert.newDuplicating(ctx, f.info, ed, values)
	if !ok {
		return nil, ErrPlan
	}
	if drawn { // after all that returns ErrPlan before a row is inserted: go-mysql-server would draw further numbers
		for _, r := range rows {
			if r[f.info.AutoColumn], err = draw(ctx, t); err != nil {
				return nil, err
			}
		}
	}
	ed.StatementBegin(ctx)
	if err := run.insertAll(ctx, t, rows); err != nil {
		_ = ed.DiscardChanges(ctx, err) // never fails
		if !myerr.IsConflict(err) && ctx.Err() == nil {
			err = ErrPlan // running the plan reports the error
		}
		return nil, err
	}
	return &Result{OK: run.result(s, drawn), Warnings: run.warnings}, ed.Close(ctx)
}

// result returns what the client is told. Its InsertID is the first number that was drawn for a new row or, if none was, the
// number of the last row.
func (d *duplicating) result(s *Session, drawn bool) types.OkResult {
	res := types.OkResult{RowsAffected: d.rowsAffected, InsertID: d.last}
	if drawn && d.first != 0 {
		res.InsertID = d.first
		s.GetLastQueryInfo().LastInsertId.Store(int64(d.first))
	}
	if d.in.onDuplicate == replaces {
		s.Replacing(res.InsertID)
	}
	return res
}

// numberOf returns a number of an AUTO_INCREMENT column.
func numberOf(v any) uint64 {
	if n, ok := row.Signed(v); ok {
		return uint64(n)
	}
	n, _ := row.Unsigned(v)
	return n
}

// draws reports whether the rows get AUTO_INCREMENT numbers. It returns ErrPlan if only some of them do, or if a
// row may turn out to be a duplicate after numbers have been drawn: go-mysql-server would draw others.
func (in *insertion) draws(ctx *gms.Context, info *store.TableInfo, rows []gms.Row) (bool, error) {
	auto, count, hasZero := info.AutoColumn, 0, false // count: the rows that get one
	if in.generated {
		count = len(rows)
	} else if auto >= 0 {
		for _, r := range rows {
			n, ok := row.WholeNumber(r[auto])
			switch {
			case r[auto] == nil:
				count++
			case !ok:
				return false, ErrPlan
			case n == 0:
				count++
				hasZero = true
			}
		}
		if hasZero && gms.LoadSqlMode(ctx).ModeEnabled(gms.NoAutoValueOnZero) {
			return false, ErrPlan
		}
	}
	if count > 0 && ((in.hasFurtherKey && in.onDuplicate == fails) || in.isRisky || count < len(rows)) {
		return false, ErrPlan
	}
	return count > 0, nil
}

// aheadMost is the largest number of rows that are inserted, or whose keys are looked up, together.
const aheadMost = 128

// insertAll inserts rows.
func (d *duplicating) insertAll(ctx *gms.Context, t *store.Table, rows []gms.Row) error {
	for len(rows) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := rows[:min(aheadMost, len(rows))]
		if err := d.insertSome(ctx, t, next); err != nil {
			return err
		}
		rows = rows[len(next):]
	}
	return nil
}

// insertSome inserts up to aheadMost rows: together if none of them exists.
func (d *duplicating) insertSome(ctx *gms.Context, t *store.Table, rows []gms.Row) error {
	if len(rows) > 1 && d.in.mayBeNew() {
		ok, err := d.ed.InsertMany(ctx, rows)
		if err != nil {
			return err
		}
		if ok {
			for _, r := range rows {
				d.noteNew(r)
			}
			return nil
		}
		if d.in.onDuplicate == fails {
			return ErrPlan // running the plan reports the error
		}
		d.in.oneByOne.Store(oneByOneTimes)
	}
	if len(rows) > 1 && t.IsAnyElsewhere() {
		_ = t.InsertAhead(ctx, rows) // an error occurs again when the row is inserted
	}
	for _, r := range rows {
		if err := d.insert(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// oneByOneTimes is how many times rows are inserted one by one after some of them existed: to try to insert them together
// would be in vain each time if a statement mostly finds rows that exist.
const oneByOneTimes = 16

// mayBeNew reports whether it is worth trying to insert rows together.
func (in *insertion) mayBeNew() bool { return in.oneByOne.Load() <= 0 || in.oneByOne.Add(-1) < 0 }

// rows returns the rows that literals make, one for each tuple of operands; false if a column would not store one
// unchanged.
func (in *insertion) rows(ctx *gms.Context, info *store.TableInfo, tuples [][]operand, values []Value) ([]gms.Row, bool) {
	rows := make([]gms.Row, len(tuples))
	var now statementTime
	for i := range tuples {
		var ok bool
		if rows[i], ok = in.row(ctx, info, tuples[i], values, &now); !ok {
			return nil, false
		}
	}
	return rows, true
}

// row returns a row with the literals, and with the defaults of the other columns; false if a
// column would not store one unchanged. A number that will be drawn is nil.
func (in *insertion) row(ctx *gms.Context, info *store.TableInfo, tuple []operand, values []Value, now *statementTime) (gms.Row, bool) {
	row := make(gms.Row, len(info.Columns))
	for i, at := range in.columns {
		var ok bool
		switch tuple[i].at {
		case nowAt:
			row[at], ok = now.stored(ctx, in.codecs[i])
		case defaultAt:
			ok = at == info.AutoColumn
			if !ok {
				row[at], ok = in.given[i].stored(ctx, now)
			}
		default:
			row[at], ok = in.literal(ctx, i, tuple[i], values, at == info.AutoColumn)
		}
		if !ok {
			return nil, false
		}
	}
	for i := range in.defaults {
		var ok bool
		d := &in.defaults[i]
		if row[d.column], ok = d.stored(ctx, now); !ok {
			return nil, false
		}
	}
	return row, true
}

// literal returns the value that an operand gives to the column of number i, which may be the AUTO_INCREMENT column; false
// if the column would not store it unchanged.
func (in *insertion) literal(ctx *gms.Context, i int, o operand, values []Value, isAuto bool) (any, bool) {
	k := in.codecs[i]
	v, ok := o.in(values)
	v = forColumn(k, v)
	if v.IsNull {
		return nil, ok && (isAuto || k.Nullable)
	}
	if !ok || !takes(k, v) {
		return nil, false
	}
	return storedForm(ctx, k, v)
}

// parents returns nil if all rows that new rows refer to exist. If one does not, go-mysql-server
// reports the error.
func (f *form) parents(ctx *gms.Context, st *store.Store, tr *store.Transaction, rows []gms.Row) error {
	for i := range f.info.ForeignKeys {
		fk := &f.info.ForeignKeys[i]
		tbl, err := st.Descriptor(ctx, tr, fk.ParentDB, fk.ParentTable)
		if err != nil {
			if err = myerr.Storage(err); myerr.IsConflict(err) {
				return err
			}
			return ErrPlan
		}
		parent, err := st.Info(ctx, tr, tbl)
		if err != nil {
			return ErrPlan
		}
		for _, r := range rows {
			if err := f.parent(st, tr, fk, parent, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// parent returns nil if the row that a new row refers to by a foreign key exists.
func (f *form) parent(st *store.Store, tr *store.Transaction, fk *catalog.ForeignKey, parent *store.TableInfo, r gms.Row) error {
	index, key, ok := parentKey(f.info, fk, parent, r)
	if !ok {
		return ErrPlan
	}
	if index == nil {
		return nil
	}
	_, found, err := st.Access(index.Index).Get(tr.Tx, key)
	if err != nil {
		return myerr.Storage(err)
	}
	if !found {
		return ErrPlan
	}
	return nil
}

// parentKey returns the unique index and the key of the row that a new row refers to. The index is
// nil if the new row refers to none; ok is false if the key cannot be computed.
func parentKey(info *store.TableInfo, fk *catalog.ForeignKey, parent *store.TableInfo, row gms.Row) (*store.KeyInfo, []byte, bool) {
	for _, name := range fk.Columns {
		if at := info.Column(name); at < 0 || row[at] == nil {
			return nil, nil, at >= 0
		}
	}
	for _, k := range append([]*store.KeyInfo{parent.PrimaryKey}, parent.Secondary...) {
		if (k == parent.PrimaryKey || k.Unique) && len(k.Codecs) == len(fk.Columns) {
			if key, ok := keyIn(info, k, fk, parent, row); ok {
				return k, key, true
			}
		}
	}
	return nil, nil, false
}

// keyIn returns the key in a parent's index from the referring row; false if the
// index has other columns than the foreign key, or other types.
func keyIn(info *store.TableInfo, k *store.KeyInfo, fk *catalog.ForeignKey, parent *store.TableInfo, r gms.Row) ([]byte, bool) {
	key := make([]byte, 0, 32)
	for i, at := range k.Columns {
		n := slices.IndexFunc(fk.ParentColumns, func(name string) bool { return store.SameName(name, parent.Columns[at].Name) })
		if n < 0 {
			return nil, false
		}
		own, codec := info.Column(fk.Columns[n]), &k.Codecs[i]
		if c := info.Codec(own); !codec.TakesLiterals() || c.Kind != codec.Kind || c.Collation != codec.Collation {
			return nil, false
		}
		var ok bool
		if key, ok = codec.AppendNative(append(key, row.KeyValue), r[own]); !ok {
			return nil, false
		}
	}
	return key, len(key) <= row.KeyBytesMax
}

// draw returns the next number of the AUTO_INCREMENT column, in the column's stored form.
func draw(ctx *gms.Context, t *store.Table) (any, error) {
	n, err := t.GetNextAutoIncrementValue(ctx, nil)
	if err != nil {
		return nil, err
	}
	v, in, err := t.Info.Rows.Columns[t.Info.AutoColumn].Type.Convert(ctx, n)
	if err == nil && in != gms.InRange {
		err = gms.ErrValueOutOfRange.New(n, t.Info.Rows.Columns[t.Info.AutoColumn].Type)
	}
	return v, err
}
