package store

import (
	"bytes"
	"errors"
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/catalog"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

// A table of many rows is rewritten or indexed by a series of transactions, each
// small enough for the logs (catalog's Alteration). Such a statement cannot be part
// of a transaction with others: the open transaction is committed first.

const (
	// bulkRows is the number of rows from which on a table is not altered in the statement's own
	// transaction. In that transaction, several changes of one statement are all or nothing.
	bulkRows = 200
	// bulkBatch is the number of rows for one of many transactions; it halves when
	// the rows do not fit into the logs.
	bulkBatch = 256
)

// large reports whether a table has too many rows, or too long ones, to be
// altered in one transaction: bulkRows rows or more, or as many bytes as bulkRows rows of a 32nd of
// InlineBytesMax.
func (t *Table) large(tr *Transaction) (bool, error) {
	cur := t.Store.Access(&t.Info.Table.Primary).Scan(tr.Tx, nil, nil, false)
	size := 0
	for range bulkRows {
		_, p, ok, err := cur.Next()
		if err != nil || !ok {
			return false, err
		}
		if size += p.Capacity(); size > bulkRows*row.InlineBytesMax/32 {
			return true, nil
		}
	}
	return true, nil
}

// A Bulk is a running alteration of a large table.
type Bulk struct {
	t     *Table
	tr    *Transaction
	owner uint64 // identifies the alteration in the table's descriptor
	batch int    // rows for one transaction
}

// BeginBulk commits what the statement has done so far, and marks the table as being altered.
// build makes the structures that are going to be filled.
func (t *Table) BeginBulk(ctx *gms.Context, tr *Transaction, build func(*txn.Tx) ([]catalog.Storage, error)) (*Bulk, error) {
	if err := tr.Tx.Commit(ctx.Context); err != nil {
		return nil, err
	}
	t.Store.Counters.Add(ctx.Context, tr.rows)
	tr.renew(t.Store.Machine)
	b := &Bulk{t: t, tr: tr, batch: bulkBatch}
	err := t.Store.Machine.Run(ctx.Context, func(tx *txn.Tx) error {
		tbl, err := t.Store.Catalog.Table(tx, t.Info.DB, t.Info.Name)
		isChanged := err == nil && (tbl.ID != t.Info.ID || tbl.Generation != t.Info.Generation)
		if isChanged || errors.Is(err, catalog.ErrNotFound) {
			return myerr.TableChanged.New()
		}
		if err != nil {
			return err
		}
		storage, err := build(tx)
		if err != nil {
			return err
		}
		tbl, err = t.Store.Catalog.BeginAlteration(tx, tbl, storage)
		if err == nil {
			b.owner = tbl.Alteration.Owner
		}
		return err
	})
	if err != nil && b.owner != 0 { // the commit is in doubt: the mark may exist
		return nil, b.abandon(ctx, err)
	}
	if err != nil {
		return nil, err
	}
	t.frozen = b
	return b, nil
}

// renew replaces a finished FaRM transaction by a new one.
func (tr *Transaction) renew(m *txn.Machine) {
	tr.Tx.Abort()
	*tr = Transaction{Tx: m.Begin(), ReadOnly: tr.ReadOnly, ddl: true}
}

// finish replaces the present structures by those that were built, in one transaction. swap makes
// the table's next descriptor from its present one.
func (b *Bulk) finish(ctx *gms.Context, swap func(*txn.Tx, *catalog.Table) (*catalog.Table, error)) error {
	err := b.t.Store.Machine.Run(ctx.Context, func(tx *txn.Tx) error {
		tbl, err := b.t.Store.Catalog.Altered(tx, b.t.Info.DB, b.t.Info.Name, b.owner)
		if err != nil {
			return err
		}
		next, err := swap(tx, tbl.Clone())
		if err != nil {
			return err
		}
		next.Alteration = catalog.Alteration{}
		_, err = b.t.Store.Catalog.UpdateTable(tx, next)
		return err
	})
	if err != nil {
		return b.abandon(ctx, err)
	}
	return b.end(ctx)
}

// abandon drops the structures that were built, and returns cause.
func (b *Bulk) abandon(ctx *gms.Context, cause error) error {
	b.t.frozen = nil
	b.tr.renew(b.t.Store.Machine)
	if err := b.t.Store.Catalog.AbandonAlteration(ctx.Context, b.t.Info.DB, b.t.Info.Name, b.owner); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// end lets the statement continue with the table's present descriptor.
func (b *Bulk) end(ctx *gms.Context) error {
	b.t.frozen = nil
	b.tr.renew(b.t.Store.Machine)
	tbl, err := b.t.latest(ctx, b.tr)
	if err != nil {
		return err
	}
	return b.t.setDescriptor(ctx, b.tr, tbl)
}

// runBatch runs one batch of the work, and halves the batch while it does not fit into a
// transaction. A batch of one row runs in a large transaction.
func (b *Bulk) runBatch(ctx *gms.Context, work func(tx *txn.Tx, rows int) error) error {
	for {
		err := b.t.Store.Machine.Run(ctx.Context, func(tx *txn.Tx) error {
			if b.batch == 1 {
				tx.MayBeLarge()
			}
			return work(tx, b.batch)
		})
		if !errors.Is(err, outcome.ErrTooLarge) || b.batch == 1 {
			return err
		}
		b.batch /= 2
	}
}

// A frozenIter reads all rows of a table, one batch in each transaction. Nobody changes the table
// meanwhile, because it is marked as being altered.
type frozenIter struct {
	b     *Bulk
	start []byte    // the key at which the next batch begins
	rows  []gms.Row // read, and still to be returned
	end   bool      // there is no further batch
}

func (i *frozenIter) Next(ctx *gms.Context) (gms.Row, error) {
	for len(i.rows) == 0 {
		if i.end {
			return nil, io.EOF
		}
		if err := i.fill(ctx); err != nil {
			return nil, myerr.Storage(err)
		}
	}
	row := i.rows[0]
	i.rows = i.rows[1:]
	return row, nil
}

// fill reads the next batch of rows in a transaction of its own.
func (i *frozenIter) fill(ctx *gms.Context) error {
	return i.b.each(ctx, i.start, func(tx *txn.Tx, keys [][]byte, rows []region.Ptr) error {
		i.rows = i.rows[:0]
		for _, p := range rows {
			r, err := row.Load(tx, i.b.t.Info.Rows, p, i.b.t.Columns)
			if err != nil {
				return err
			}
			i.rows = append(i.rows, r)
		}
		i.start, i.end = next(keys)
		return nil
	})
}

func (i *frozenIter) Close(*gms.Context) error { return nil }

// each reads a batch of entries of the primary index, beginning at the key start, and passes it to
// work.
func (b *Bulk) each(ctx *gms.Context, start []byte, work func(*txn.Tx, [][]byte, []region.Ptr) error) error {
	acc := b.t.Store.Access(&b.t.Info.Table.Primary)
	return b.runBatch(ctx, func(tx *txn.Tx, n int) error {
		cur := acc.Scan(tx, start, nil, false)
		var keys [][]byte
		var rows []region.Ptr
		for range n {
			key, p, ok, err := cur.Next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			keys, rows = append(keys, bytes.Clone(key)), append(rows, p)
		}
		tx.ReadAhead(rows)
		return work(tx, keys, rows)
	})
}

// next returns the key at which the batch after keys begins. end is set if keys is empty: then no batch
// follows.
func next(keys [][]byte) (start []byte, end bool) {
	if len(keys) == 0 {
		return nil, true
	}
	return append(keys[len(keys)-1], 0), false // the least key above the last one
}

// fillLarge adds all rows of a large table to a new index, and puts the index to
// use.
func (t *Table) fillLarge(ctx *gms.Context, tr *Transaction, x catalog.Index) error {
	b, err := t.BeginBulk(ctx, tr, func(tx *txn.Tx) (_ []catalog.Storage, err error) {
		x.Anchor, err = CreateAccess(tx, x.Access)
		return []catalog.Storage{{Access: x.Access, Anchor: x.Anchor}}, err
	})
	if err != nil {
		return err
	}
	tbl := t.Info.Table.Clone()
	tbl.Indexes = append(tbl.Indexes, x)
	k, err := newKeyInfo(tbl, &x)
	if err != nil {
		return b.abandon(ctx, err)
	}
	var start []byte
	for end := false; !end; {
		err := b.each(ctx, start, func(tx *txn.Tx, keys [][]byte, rows []region.Ptr) error {
			e, err := t.filler(&Transaction{Tx: tx}, tbl)
			if err != nil {
				return err
			}
			for i, p := range rows {
				if err := e.addEntry(ctx, k, keys[i], p); err != nil {
					return err
				}
			}
			start, end = next(keys)
			return nil
		})
		if err != nil {
			return b.abandon(ctx, err)
		}
	}
	return b.finish(ctx, func(_ *txn.Tx, tbl *catalog.Table) (*catalog.Table, error) {
		tbl.Indexes = append(tbl.Indexes, x)
		return tbl, nil
	})
}

// A bulkRewriter is a rewriter for a large table.
type bulkRewriter struct {
	b    *Bulk
	next *catalog.Table
	info *TableInfo
	rows []gms.Row
	// numbered is the last hidden row number, greatest the largest
	// AUTO_INCREMENT value.
	numbered, greatest uint64
	compute            *Computer
	err                error
}

var _ gms.RowInserter = (*bulkRewriter)(nil)

// rewriteLarge starts to rewrite a large table.
func (t *Table) rewriteLarge(ctx *gms.Context, tr *Transaction, next *catalog.Table) (gms.RowInserter, error) {
	b, err := t.BeginBulk(ctx, tr, func(tx *txn.Tx) ([]catalog.Storage, error) {
		err := createAccesses(tx, next)
		return next.Storage(), err
	})
	if err != nil {
		return nil, err
	}
	info, err := newInfo(ctx, next)
	if err != nil {
		return nil, b.abandon(ctx, err)
	}
	return &bulkRewriter{b: b, next: next, info: info}, nil
}

// StatementBegin implements gms.EditOpenerCloser.
func (w *bulkRewriter) StatementBegin(*gms.Context) {}

// StatementComplete implements gms.EditOpenerCloser.
func (w *bulkRewriter) StatementComplete(*gms.Context) error { return nil }

// DiscardChanges implements gms.EditOpenerCloser.
func (w *bulkRewriter) DiscardChanges(_ *gms.Context, cause error) error {
	w.err = cause
	return nil
}

// Insert implements gms.RowInserter.
func (w *bulkRewriter) Insert(ctx *gms.Context, row gms.Row) error {
	w.rows = append(w.rows, row)
	if len(w.rows) < w.b.batch {
		return nil
	}
	return myerr.Storage(w.flush(ctx))
}

// flush writes the buffered rows.
func (w *bulkRewriter) flush(ctx *gms.Context) error {
	for len(w.rows) > 0 {
		var n int
		numbered, greatest := w.numbered, w.greatest
		err := w.b.runBatch(ctx, func(tx *txn.Tx, rows int) error {
			w.numbered, w.greatest = numbered, greatest // count again if the batch is repeated
			n = min(rows, len(w.rows))
			for _, row := range w.rows[:n] {
				if err := w.insert(ctx, tx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			w.err = err
			return err
		}
		w.rows = w.rows[n:]
	}
	w.rows = nil
	return nil
}

// insert inserts a row into the new primary index, with a row number if the table has no key.
func (w *bulkRewriter) insert(ctx *gms.Context, tx *txn.Tx, row gms.Row) error {
	e := &Editor{Table: &Table{Store: w.b.t.Store, Info: w.info}, tr: &Transaction{Tx: tx}, acc: w.b.t.Store.Access(&w.next.Primary), compute: w.compute}
	defer func() { w.compute = e.compute }()
	var key, number []byte
	if w.info.IsKeyless() {
		w.numbered++
		key = rowNumber(w.numbered)
		number = key
	} else {
		var err error
		if key, err = e.keyOf(ctx, row); err != nil {
			return err
		}
	}
	if n, ok := e.autoValue(ctx, row); ok {
		w.greatest = max(w.greatest, n)
	}
	return e.asDuplicate(ctx, e.insertAt(ctx, row, key, number))
}

// Close implements gms.Closer: the new structures take the place of the old.
func (w *bulkRewriter) Close(ctx *gms.Context) error {
	if w.err == nil {
		w.err = w.flush(ctx)
	}
	if w.err != nil {
		return myerr.Storage(w.b.abandon(ctx, w.err))
	}
	return myerr.Storage(w.b.finish(ctx, w.swap))
}

// swap returns the descriptor of tbl with the new structures and sequences, and drops the old ones.
func (w *bulkRewriter) swap(tx *txn.Tx, tbl *catalog.Table) (*catalog.Table, error) {
	st, next := w.b.t.Store, *w.next
	// Marking the table has changed its descriptor since next was made from it.
	next.Alteration = catalog.Alteration{}
	if err := st.Catalog.Drop(tx, tbl.Storage()); err != nil {
		return nil, err
	}
	result := tbl.Replace(&next)
	tr := &Transaction{Tx: tx}
	if err := st.rewrittenNumbers(tr, tbl, result); err != nil {
		return nil, err
	}
	if err := tr.number(&result.Sequence, w.info.AutoColumn >= 0, w.greatest+1); err != nil {
		return nil, err
	}
	return result, tr.number(&result.RowSequence, !next.Primary.Declared, w.numbered+1)
}
