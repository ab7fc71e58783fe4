package store

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.TableEditor         = (*Editor)(nil)
	_ gms.ForeignKeyEditor    = (*Editor)(nil)
	_ gms.AutoIncrementSetter = (*Editor)(nil)
	_ compat.ReferringEditor  = (*Editor)(nil)
)

// An Editor changes the rows of a table in the session's transaction. Each
// change is all or nothing: one that fails leaves no trace.
type Editor struct {
	*Table
	// s is the session of the client that makes the changes; nil if no client makes them.
	s   *Session
	tr  *Transaction
	acc Access
	// serial is the point in the transaction at which the statement began, 0 outside of
	// one.
	serial int
	err    error
	// compute fills in virtual columns; it is made when first needed.
	compute *Computer
	// constraints are the CHECKs that the editor has to enforce.
	constraints *constrainer
	// sparse are the columns of the rows that UpdateAt and DeleteAt are given; nil for all. See Sparse.
	sparse []int
	// refer checks the references of a stored row; nil if there is nothing to check.
	refer func(ctx *gms.Context, old, row gms.Row) error
}

// Refer implements compat.ReferringEditor.
func (e *Editor) Refer(check func(ctx *gms.Context, old, row gms.Row) error) { e.refer = check }

// referred checks the references of a row that was stored. old is the row before the change, nil if the row is new.
func (e *Editor) referred(ctx *gms.Context, old, row gms.Row) error {
	if e.refer == nil {
		return nil
	}
	return e.refer(ctx, old, row)
}

// editor returns an editor for the context's session.
func (t *Table) editor(ctx *gms.Context) *Editor { return t.EditorFor(ctx, FromContext(ctx)) }

// EditorFor returns an editor for the session of a context. The interface has no room
// for an error, so an error is kept and returned by the editor's methods.
func (t *Table) EditorFor(ctx *gms.Context, s *Session) *Editor {
	e := &Editor{Table: t}
	_ = e.Renew(ctx, s) // the error is kept
	return e
}

// Renew prepares an editor whose statement is over for another statement, of the context's session. The editor keeps
// what it knows of the table and its references. If Renew fails, the editor's methods return the same error.
func (e *Editor) Renew(ctx *gms.Context, s *Session) error {
	e.s, e.tr, e.serial = s, s.Began(ctx), 0
	if e.err = e.join(ctx, e.tr); e.err != nil {
		return e.err
	}
	if e.err = e.tr.Writable(ctx, e.Store); e.err != nil {
		return e.err
	}
	e.acc = e.Store.Access(&e.Info.Table.Primary)
	return nil
}

// StatementBegin implements gms.EditOpenerCloser.
func (e *Editor) StatementBegin(*gms.Context) {
	e.serial = e.tr.mark("")
	e.tr.Editing++
}

// DiscardChanges implements gms.EditOpenerCloser. If the error is ignored, the statement's other
// changes stay; the change that was refused has left no trace.
func (e *Editor) DiscardChanges(_ *gms.Context, cause error) error {
	if _, ignored := cause.(gms.IgnorableError); !ignored && e.serial != 0 {
		e.tr.rollback(e.serial)
	}
	e.end()
	return nil
}

// StatementComplete implements gms.EditOpenerCloser.
func (e *Editor) StatementComplete(ctx *gms.Context) error {
	if err := e.s.failure(); err != nil {
		return errors.Join(err, e.DiscardChanges(ctx, err))
	}
	e.end()
	return nil
}

// end forgets the statement's point in the transaction. The last editor to end also drops the
// strays.
func (e *Editor) end() {
	if e.serial == 0 {
		return
	}
	e.tr.forget(e.serial)
	e.serial = 0
	if e.tr.Editing--; e.tr.Editing == 0 {
		clear(e.tr.strays)
	}
}

// Close implements gms.Closer.
func (e *Editor) Close(*gms.Context) error {
	e.end()
	return myerr.Storage(e.err)
}

// atomically runs one change of a row, and undoes it entirely if it fails.
func (e *Editor) atomically(ctx *gms.Context, change func() error) error {
	if e.err != nil {
		return myerr.Storage(e.err)
	}
	if err := e.s.failure(); err != nil {
		return err
	}
	m := e.tr.Tx.Mark()
	err := change()
	if err != nil {
		e.tr.Tx.Rollback(m)
	}
	return myerr.Storage(err)
}

// Insert implements gms.RowInserter.
func (e *Editor) Insert(ctx *gms.Context, row gms.Row) error {
	return myerr.Storage(e.asDuplicate(ctx, e.insertNew(ctx, row)))
}

// insertNew inserts a row; a clash if its key exists.
func (e *Editor) insertNew(ctx *gms.Context, row gms.Row) error {
	row = e.Info.Rows.Stored(row)
	return e.atomically(ctx, func() error {
		if err := e.constrain(ctx, row); err != nil {
			return err
		}
		if err := e.insert(ctx, row); err != nil {
			return err
		}
		if err := e.referred(ctx, nil, row); err != nil {
			return err
		}
		if r := e.replacingOf(); r != nil {
			r.noteInsert(ctx, e, row)
		}
		e.noteStored(ctx, row, true)
		e.tr.count(e.Info.Counter, 1)
		return e.raise(ctx, row)
	})
}

// insert adds a row to the table's indexes, and checks nothing else. It returns a clash if a unique key exists.
func (e *Editor) insert(ctx *gms.Context, row gms.Row) error {
	key, number, err := e.primaryKey(ctx, row)
	if err != nil {
		return err
	}
	return e.insertAt(ctx, row, key, number)
}

// insertAt stores a row, enters it under key in the primary index, and adds its entries to the
// other indexes. number is the hidden number of a row without a primary key, otherwise nil. It returns a
// clash if a unique key exists.
func (e *Editor) insertAt(ctx *gms.Context, r gms.Row, key, number []byte) error {
	r, err := e.withKeyColumns(ctx, r)
	if err != nil {
		return err
	}
	if err := e.Info.Rows.HasAll(r); err != nil {
		return err
	}
	p, err := row.Store(ctx, e.tr.Tx, e.Info.Rows, r, number, 0)
	if err != nil {
		return err
	}
	if err := e.acc.Insert(e.tr.Tx, key, p); err != nil {
		return clashOf(err, e.Info.PrimaryKey, r, key)
	}
	for _, k := range e.Info.checked {
		if err := e.insertEntry(ctx, k, r, key, p); err != nil {
			return err
		}
	}
	return nil
}

// primaryKey returns the key of a new row. In a table without a primary key, that key is the row's
// hidden number, which primaryKey draws and returns as number, too.
func (e *Editor) primaryKey(ctx *gms.Context, row gms.Row) (key, number []byte, err error) {
	if !e.Info.IsKeyless() {
		key, err := e.keyOf(ctx, row)
		return key, nil, err
	}
	n, err := e.Store.next(ctx, e.tr, e.Info.RowSequence)
	if err != nil {
		return nil, nil, err
	}
	key = rowNumber(n)
	return key, key, nil
}

func (e *Editor) keyOf(ctx *gms.Context, r gms.Row) ([]byte, error) {
	key, _, err := e.Info.PrimaryKey.key(ctx, make([]byte, 0, 32), r)
	if err == nil && len(key) > row.KeyBytesMax {
		err = myerr.KeyTooLong.New()
	}
	return key, err
}

// insertEntry adds a row's entry to a secondary index. It returns a clash if the index is unique and has the key.
func (e *Editor) insertEntry(ctx *gms.Context, k *KeyInfo, row gms.Row, primary []byte, p region.Ptr) error {
	key, isUnique, err := k.Entry(ctx, row, primary)
	if err != nil {
		return err
	}
	return clashOf(e.enterOne(k, indexEntry{key, isUnique}, p), k, row, key)
}

// An indexEntry is the key of a row's entry in an index. asks says that the index has to be asked for it, before it is added or
// removed.
type indexEntry struct {
	key  []byte
	asks bool
}

// enterOne adds an entry to a secondary index. An entry that is not unique ends in the row's primary key: the transaction knows
// that there is no other row with it, so it need not ask.
func (e *Editor) enterOne(k *KeyInfo, is indexEntry, p region.Ptr) error {
	if !is.asks {
		return e.Store.Access(k.Index).Put(e.tr.Tx, is.key, p)
	}
	return e.Store.Access(k.Index).Insert(e.tr.Tx, is.key, p)
}

// text returns a row's key as MySQL prints it.
func (k *KeyInfo) text(ctx *gms.Context, row gms.Row) string {
	parts := make([]string, len(k.Codecs))
	for i := range k.Codecs {
		v := row[k.Columns[i]]
		parts[i] = "NULL"
		if v == nil {
			continue
		}
		if b, ok := v.([]byte); ok {
			parts[i] = printable(b, k.Codecs[i].Prefix)
			continue
		}
		parts[i] = fmt.Sprint(v)
		if s, err := k.Codecs[i].Type.SQL(ctx, nil, v); err == nil {
			parts[i] = s.ToString()
		}
		if r := []rune(parts[i]); k.Codecs[i].Prefix > 0 && len(r) > k.Codecs[i].Prefix {
			parts[i] = string(r[:k.Codecs[i].Prefix])
		}
	}
	return strings.Join(parts, "-")
}

// printable returns binary data as MySQL prints it in an error, cut to limit bytes
// unless limit is 0. It escapes a zero byte, at which some clients and terminals
// would stop.
func printable(b []byte, limit int) string {
	if limit > 0 {
		b = b[:min(limit, len(b))]
	}
	var s strings.Builder
	for _, c := range b {
		if c < ' ' || c > '~' {
			fmt.Fprintf(&s, `\x%02X`, c)
		} else {
			s.WriteByte(c)
		}
	}
	return s.String()
}

// Delete implements gms.RowDeleter. It succeeds for a row that a foreign key's action
// has already deleted.
func (e *Editor) Delete(ctx *gms.Context, values gms.Row) error {
	return e.atomically(ctx, func() error {
		p, key, ok, err := e.find(ctx, values)
		if err != nil || !ok {
			return err
		}
		return e.delete(ctx, p, key, values, false)
	})
}

// DeleteAt is Delete for a row of a table with a primary key, whose address and values the statement has read.
func (e *Editor) DeleteAt(ctx *gms.Context, p region.Ptr, values gms.Row) error {
	return e.atomically(ctx, func() error {
		p, ok := e.tr.follow(p)
		if !ok {
			return nil
		}
		key, err := e.keyOf(ctx, values)
		if err != nil {
			return err
		}
		return e.delete(ctx, p, key, values, true)
	})
}

// delete deletes the row at p, whose key in the primary index is key. isRead says that the statement has read the values there.
func (e *Editor) delete(ctx *gms.Context, p region.Ptr, key []byte, values gms.Row, isRead bool) error {
	values, err := e.withKeyColumns(ctx, values)
	if err != nil {
		return err
	}
	if err := e.removeEntry(e.Info.PrimaryKey, key, true); err != nil {
		return err
	}
	for _, k := range e.Info.Secondary {
		entry, isUnique, err := k.Entry(ctx, values, key)
		if err != nil {
			return err
		}
		if err := e.removeEntry(k, entry, isUnique || !isRead); err != nil {
			return err
		}
	}
	e.tr.move(p, region.Ptr{})
	e.tr.count(e.Info.Counter, -1)
	if r := e.replacingOf(); r != nil {
		if r.deleted++; r.deleted == 1 {
			r.was = values
		}
	}
	return row.Free(e.tr.Tx, p)
}

// removeEntry removes the entry of a row. If asks is not set, it does not look for the entry: the statement has read the row, and
// the entry, which is not unique, belongs to no other.
func (e *Editor) removeEntry(k *KeyInfo, key []byte, asks bool) error {
	if !asks {
		return e.Store.Access(k.Index).Drop(e.tr.Tx, key)
	}
	ok, err := e.Store.Access(k.Index).Remove(e.tr.Tx, key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: it has no entry in index %s of %s", row.ErrCorrupt, k.Name, e.Info.Name)
	}
	return err
}

// find returns the address of a row, and its primary key.
func (e *Editor) find(ctx *gms.Context, r gms.Row) (p region.Ptr, key []byte, ok bool, err error) {
	if !e.Info.IsKeyless() {
		if key, err = e.keyOf(ctx, r); err != nil {
			return p, nil, false, err
		}
		p, ok, err = e.acc.Get(e.tr.Tx, key)
		return p, key, ok, err
	}
	// Mostly, the statement has read the row, and remembers its address.
	if p, ok, err = e.tr.takeStray(ctx, e.Info, r); err == nil && !ok {
		p, ok, err = e.findStray(ctx, r)
	}
	if err != nil || !ok {
		return p, nil, false, err
	}
	key, err = row.NumberOf(e.tr.Tx, p)
	return p, key, err == nil, err
}

// Update implements gms.RowUpdater.
func (e *Editor) Update(ctx *gms.Context, old, r gms.Row) error {
	r = e.Info.Rows.Stored(r)
	return e.atomically(ctx, func() error {
		if err := e.constrain(ctx, r); err != nil {
			return err
		}
		p, key, ok, err := e.find(ctx, old)
		if err != nil || !ok {
			return err
		}
		return e.update(ctx, p, key, old, r)
	})
}

// Sparse says that rows for UpdateAt and DeleteAt have only the values of the given columns, among them those that are
// changed and those of the indexes that are (TableInfo.ChangeNeeds). The values of the other columns stay. There must be nothing to
// check of the rows: no CHECKs, foreign keys or triggers.
func (e *Editor) Sparse(columns []int) { e.sparse = columns }

// UpdateAt is Update for a row of a table with a primary key, whose address and values the statement has read.
func (e *Editor) UpdateAt(ctx *gms.Context, p region.Ptr, old, r gms.Row) error {
	r = e.Info.Rows.Stored(r)
	return e.atomically(ctx, func() error {
		if err := e.constrain(ctx, r); err != nil {
			return err
		}
		p, ok := e.tr.follow(p)
		if !ok {
			return nil
		}
		return e.update(ctx, p, nil, old, r)
	})
}

// update replaces the row at p. key is the row's key in the primary index, or nil if the statement has read the row at p: then
// update has to compute the key, and the stored values that stay the same need not be encoded again.
func (e *Editor) update(ctx *gms.Context, p region.Ptr, key []byte, old, r gms.Row) (err error) {
	if old, err = e.withKeyColumns(ctx, old); err != nil {
		return err
	}
	if r, err = e.withKeyColumns(ctx, r); err != nil {
		return err
	}
	if e.sparse == nil {
		if err := e.Info.Rows.HasAll(r); err != nil {
			return err
		}
	}
	var number []byte // a row without a primary key keeps its hidden number
	if e.Info.IsKeyless() {
		number = key
	}
	var newKey []byte // nil if the row keeps its key
	if !e.Info.IsKeyless() && e.Info.PrimaryKey.differs(old, r) {
		if newKey, err = e.keyOf(ctx, r); err != nil {
			return err
		}
	}
	var newRow region.Ptr
	if key == nil || e.sparse != nil {
		newRow, err = row.Change(ctx, e.tr.Tx, e.Info.Rows, p, old, r)
	} else {
		newRow, err = row.Replace(ctx, e.tr.Tx, e.Info.Rows, p, r, number)
	}
	if err != nil {
		return err
	}
	if newRow != p {
		e.tr.move(p, newRow)
		if old, r, err = e.filled(old, r, newRow); err != nil { // all indexes change
			return err
		}
	}
	if err := e.moveEntries(ctx, key, newKey, old, r, p, newRow, key == nil); err != nil {
		return err
	}
	if err := e.referred(ctx, old, r); err != nil {
		return err
	}
	e.noteUpdated(ctx, old, r)
	if e.Info.AutoColumn >= 0 && newKey != nil {
		return e.raise(ctx, r) // the new key may be beyond the sequence
	}
	return nil
}

// filled returns sparse rows with the values of all columns. p is the address of the changed row.
func (e *Editor) filled(old, r gms.Row, p region.Ptr) (fullOld, full gms.Row, err error) {
	if e.sparse == nil {
		return old, r, nil
	}
	if full, err = row.Load(e.tr.Tx, e.Info.Rows, p, nil); err != nil {
		return nil, nil, err
	}
	fullOld = full.Copy()
	for _, at := range e.sparse {
		fullOld[at] = old[at]
	}
	return fullOld, full, nil
}

// moveEntries updates the indexes for a changed row. key is nil if it is not known, newKey if it is the same as key.
// oldRow and newRow are the addresses of the row before and after the change. isRead says that the statement has read the old values.
func (e *Editor) moveEntries(ctx *gms.Context, key, newKey []byte, old, row gms.Row, oldRow, newRow region.Ptr, isRead bool) (err error) {
	stays := newKey == nil && oldRow == newRow
	differs := func(k *KeyInfo) bool { return k.differs(old, row) }
	if stays && !slices.ContainsFunc(e.Info.Secondary, differs) {
		return nil
	}
	if key == nil {
		if key, err = e.keyOf(ctx, old); err != nil {
			return err
		}
	}
	if newKey == nil {
		newKey = key
	}
	was, is := indexEntry{key, true}, indexEntry{newKey, true}
	if err := e.moveEntry(ctx, e.Info.PrimaryKey, was, is, row, oldRow, newRow); err != nil {
		return err
	}
	for _, k := range e.Info.checked {
		if stays && !k.differs(old, row) {
			continue
		}
		if err := e.updateEntry(ctx, k, old, row, key, newKey, oldRow, newRow, isRead); err != nil {
			return err
		}
	}
	return nil
}

// updateEntry updates the entry of a changed row in a secondary index. oldRow and newRow are the
// addresses of the row before and after the change. isRead says that the statement has read the old values.
func (e *Editor) updateEntry(ctx *gms.Context, k *KeyInfo, old, row gms.Row, oldPrimary, newPrimary []byte, oldRow, newRow region.Ptr, isRead bool) error {
	var was, is indexEntry
	var err error
	if was.key, was.asks, err = k.Entry(ctx, old, oldPrimary); err != nil {
		return err
	}
	was.asks = was.asks || !isRead
	if is.key, is.asks, err = k.Entry(ctx, row, newPrimary); err != nil {
		return err
	}
	return e.moveEntry(ctx, k, was, is, row, oldRow, newRow)
}

// moveEntry updates an index for a changed row, whose entry there has changed from was to is. It writes
// nothing if neither the key nor the row's address has changed.
func (e *Editor) moveEntry(ctx *gms.Context, k *KeyInfo, was, is indexEntry, row gms.Row, oldRow, newRow region.Ptr) error {
	if bytes.Equal(was.key, is.key) {
		if oldRow == newRow {
			return nil
		}
		return e.Store.Access(k.Index).Put(e.tr.Tx, is.key, newRow)
	}
	if err := e.removeEntry(k, was.key, was.asks); err != nil {
		return err
	}
	if err := e.enterOne(k, is, newRow); err != nil {
		return e.asDuplicate(ctx, clashOf(err, k, row, is.key))
	}
	return nil
}

// autoValue returns the row's AUTO_INCREMENT value if the sequence has to continue above
// it.
func (e *Editor) autoValue(ctx *gms.Context, r gms.Row) (uint64, bool) {
	if e.Info.AutoColumn < 0 || r[e.Info.AutoColumn] == nil {
		return 0, false
	}
	if n, ok := row.Signed(r[e.Info.AutoColumn]); ok {
		return uint64(n), n > 0
	}
	v, inRange, err := types.Uint64.Convert(ctx, r[e.Info.AutoColumn])
	if err != nil || inRange != gms.InRange {
		return 0, false
	}
	return v.(uint64), true
}

// raise makes the AUTO_INCREMENT sequence continue above the row's value.
func (e *Editor) raise(ctx *gms.Context, row gms.Row) error {
	n, ok := e.autoValue(ctx, row)
	if !ok {
		return nil
	}
	return e.raiseTo(ctx, n)
}

// raiseTo makes the AUTO_INCREMENT sequence continue above n, unless that is 0.
func (e *Editor) raiseTo(ctx *gms.Context, n uint64) error {
	if n == 0 {
		return nil
	}
	if e.tr.created[e.Info.Sequence] {
		return catalog.SetIn(e.tr.Tx, e.Info.Sequence, n+1, true)
	}
	return e.Store.Catalog.Sequences().Raise(ctx.Context, e.Info.Sequence, n)
}

// SetAutoIncrementValue implements gms.AutoIncrementSetter.
func (e *Editor) SetAutoIncrementValue(ctx *gms.Context, v uint64) error {
	if e.err != nil {
		return myerr.Storage(e.err)
	}
	// No other transaction sees a sequence that this one has created.
	if e.tr.created[e.Info.Sequence] {
		return myerr.Storage(catalog.SetIn(e.tr.Tx, e.Info.Sequence, v, false))
	}
	// InnoDB does not set a sequence below a value in use.
	least, err := e.greatest(ctx)
	if err != nil {
		return myerr.Storage(err)
	}
	return myerr.Storage(e.Store.Catalog.Sequences().Set(ctx.Context, e.Info.Sequence, max(v, least+1)))
}

// greatest returns the largest AUTO_INCREMENT value of the table; 0 if it has no rows, or if no B-tree
// begins with the column.
func (e *Editor) greatest(ctx *gms.Context) (uint64, error) {
	for _, k := range e.Info.Keys() {
		if len(k.Columns) == 0 || k.Columns[0] != e.Info.AutoColumn || k.Access != catalog.AccessBTree {
			continue
		}
		// The last entry of an index that begins with the column has the greatest value.
		_, p, ok, err := e.Store.Access(k.Index).Scan(e.tr.Tx, nil, nil, true).Next()
		if err != nil || !ok {
			return 0, err
		}
		r, err := row.Load(e.tr.Tx, e.Info.Rows, p, []int{e.Info.AutoColumn})
		if err != nil || r[0] == nil {
			return 0, err
		}
		v, _, err := types.Uint64.Convert(ctx, r[0])
		if err != nil {
			return 0, err
		}
		return v.(uint64), nil
	}
	return 0, nil
}

// AcquireAutoIncrementLock implements gms.AutoIncrementSetter: numbers come from
// a sequence that needs no lock, as with innodb_autoinc_lock_mode=2.
func (e *Editor) AcquireAutoIncrementLock(*gms.Context) (func(), error) { return func() {}, nil }
