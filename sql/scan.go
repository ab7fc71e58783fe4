package sql

import (
	"bytes"
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.Partition     = (*scan)(nil)
	_ gms.PartitionIter = (*onePartition)(nil)
	_ gms.RowIter       = (*rowIter)(nil)
)

// A scan says which rows of a table to read, and through which index. It is
// the one partition of every access: rows are spread over regions, not over
// partitions.
type scan struct {
	index   *keyInfo
	ranges  []keyRange
	reverse bool
	// keysOnly says that nobody looks at the rows: that they exist is enough.
	keysOnly bool
}

// Key implements gms.Partition.
func (s *scan) Key() []byte { return []byte(s.index.Name) }

// everything is the scan of a whole index.
func everything(k *keyInfo) *scan { return &scan{index: k, ranges: []keyRange{{}}} }

type onePartition struct{ p gms.Partition }

func (o *onePartition) Next(*gms.Context) (gms.Partition, error) {
	if o.p == nil {
		return nil, io.EOF
	}
	p := o.p
	o.p = nil
	return p, nil
}

func (o *onePartition) Close(*gms.Context) error { return nil }

// A rowIter reads the rows of a scan.
type rowIter struct {
	t     *Table
	s     *storeSession
	tr    *transaction
	scan  *scan
	acc   access
	cur   cursor
	at    int // the range to begin next
	write bool
	// parts is how many rows to come are read for their columns only. It pays in a
	// transaction that stays open for longer than a statement.
	parts int
	// inTurn says that the rows are to be read once it is the transaction's turn.
	inTurn bool
	rows   int // returned
	// found are the rows to come, collected before the first is returned: a
	// statement that changes the table must not meet its own changes.
	found   []region.Ptr
	collect bool
}

// partsMax is how many rows of a scan are read for their columns only. Of many rows
// one is as likely as not to be changed where it matters, and this costs more.
const partsMax = 1000

// rowIter reads the rows of a scan in the transaction of a session.
func (t *Table) rowIter(session *storeSession, tr *transaction, s *scan) *rowIter {
	i := &rowIter{
		t: t, s: session, tr: tr, scan: s, acc: t.e.access(s.index.Index),
		write:   session.forUpdate && !s.keysOnly,
		collect: tr.editing > 0 && !s.keysOnly,
	}
	switch {
	case !session.isOpen():
	case i.write || i.collect:
		i.inTurn = len(s.ranges) == 1
	case tr.editing == 0:
		i.parts = partsMax
	}
	return i
}

// Next implements gms.RowIter.
func (i *rowIter) Next(ctx *gms.Context) (gms.Row, error) {
	if i.rows++; i.rows%wantedRows == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if i.inTurn {
		i.inTurn = false
		i.t.e.turns.await(i.tr, i.scan.index.Index, i.scan.ranges[0].lo)
	}
	if i.collect {
		i.collect = false
		if err := i.collectRows(ctx); err != nil {
			return nil, myerr.Storage(err)
		}
	}
	p, ok, err := i.row(ctx)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	if !ok {
		return nil, io.EOF
	}
	row, err := i.load(ctx, p)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	return row, i.s.holdRead(i.tr)
}

// row returns the address of the next row.
func (i *rowIter) row(ctx *gms.Context) (region.Ptr, bool, error) {
	if i.found == nil {
		return i.advance(ctx)
	}
	for len(i.found) > 0 {
		p := i.found[0]
		i.found = i.found[1:]
		if p, ok := i.tr.follow(p); ok {
			return p, true, nil
		}
	}
	return region.Ptr{}, false, nil
}

func (i *rowIter) collectRows(ctx *gms.Context) error {
	found := []region.Ptr{}
	for {
		p, ok, err := i.advance(ctx)
		if err != nil {
			return err
		}
		if !ok {
			i.found = found
			return nil
		}
		if found = append(found, p); len(found)%wantedRows != 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := i.s.holdRead(i.tr); err != nil {
			return err
		}
	}
}

// advance goes on to the next entry of the index that is in the scan.
func (i *rowIter) advance(ctx *gms.Context) (region.Ptr, bool, error) {
	for {
		p, ok, err := i.entry(ctx)
		if err != nil || !ok {
			return p, false, err
		}
		r := &i.scan.ranges[i.at-1]
		if r.rest == nil && r.check == nil {
			return p, true, nil
		}
		if ok, err = i.passes(ctx, p, r); ok || err != nil {
			return p, ok, err
		}
	}
}

func (i *rowIter) entry(ctx *gms.Context) (region.Ptr, bool, error) {
	for {
		if i.cur != nil {
			if _, p, ok, err := i.cur.Next(); ok || err != nil {
				return p, ok, err
			}
			i.cur = nil
		}
		if i.at == len(i.scan.ranges) {
			return region.Ptr{}, false, nil
		}
		r := &i.scan.ranges[i.at]
		i.at++
		// Asked for one key, the index answers for one key, and nothing that
		// happens around it concerns the transaction.
		if r.point && i.single(r) {
			if p, ok, err := i.point(r); ok || err != nil {
				return p, ok, err
			}
			continue
		}
		if i.exists(r) {
			i.cur = i.acc.keys(i.tr.tx, r.lo, r.hi)
		} else {
			i.cur = i.acc.scan(i.tr.tx, r.lo, r.hi, i.scan.reverse)
		}
		if r.loose && !i.scan.keysOnly {
			if err := i.sort(ctx); err != nil {
				return region.Ptr{}, false, err
			}
		}
	}
}

// sort puts what the cursor has into the order of the values: go-mysql-server
// takes rows of a range to be in order, whatever the index says of itself.
func (i *rowIter) sort(ctx *gms.Context) error {
	k := i.scan.index.whole()
	s := &sortedCursor{}
	for {
		_, p, ok, err := i.cur.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		r, err := row.Load(i.tr.tx, i.t.info.rows, p, k.columns)
		if err != nil {
			return err
		}
		var key []byte
		for j := range k.parts {
			if key, err = k.parts[j].Append(ctx, key, r[j]); err != nil {
				return err
			}
		}
		s.entries = append(s.entries, sortedEntry{key, p})
	}
	slices.SortStableFunc(s.entries, func(a, b sortedEntry) int { return bytes.Compare(a.key, b.key) })
	i.cur = s
	return nil
}

// A sortedCursor goes through entries that were collected.
type sortedCursor struct{ entries []sortedEntry }

type sortedEntry struct {
	key []byte
	row region.Ptr
}

func (s *sortedCursor) Next() (key []byte, row region.Ptr, ok bool, err error) {
	if len(s.entries) == 0 {
		return nil, region.Ptr{}, false, nil
	}
	e := s.entries[0]
	s.entries = s.entries[1:]
	return e.key, e.row, true, nil
}

// point asks the index for the one key of a range.
func (i *rowIter) point(r *keyRange) (region.Ptr, bool, error) {
	if i.exists(r) {
		ok, err := i.acc.has(i.tr.tx, r.lo)
		return region.Ptr{}, ok, err
	}
	return i.acc.get(i.tr.tx, r.lo)
}

// exists reports whether nobody looks at the rows of a range, not even to check
// them.
func (i *rowIter) exists(r *keyRange) bool {
	return i.scan.keysOnly && r.rest == nil && r.check == nil
}

// single reports whether a range's key is all of an entry's: one that is not
// unique, or has a NULL in it, goes on with the primary key.
func (i *rowIter) single(r *keyRange) bool {
	return i.scan.index == i.t.info.primary || i.scan.index.Unique && !r.hasNull
}

func (i *rowIter) load(ctx *gms.Context, p region.Ptr) (gms.Row, error) {
	info := i.t.info
	if i.scan.keysOnly {
		return make(gms.Row, len(i.t.Schema(ctx))), nil
	}
	if i.write {
		if _, err := i.tr.tx.Write(p); err != nil {
			return nil, err
		}
	}
	if i.parts > 0 {
		i.parts--
		return row.LoadPart(i.tr.tx, info.rows, p, i.t.columns)
	}
	r, err := row.Load(i.tr.tx, info.rows, p, i.t.columns)
	if err == nil && i.tr.editing > 0 && info.keyless() && i.t.columns == nil {
		err = i.tr.rememberStray(ctx, info, r, p)
	}
	return r, err
}

// passes checks a row against what the bounds of its range leave open.
func (i *rowIter) passes(ctx *gms.Context, p region.Ptr, r *keyRange) (bool, error) {
	k := i.scan.index
	values, err := row.Load(i.tr.tx, i.t.info.rows, p, k.columns)
	if err != nil {
		return false, err
	}
	for j, part := range r.rest {
		b, err := k.parts[r.restAt+j].Append(ctx, nil, values[r.restAt+j])
		if err != nil || !part.Hold(b) {
			return false, err
		}
	}
	for j, c := range r.check {
		// What cannot be compared is not equal to anything; whether it is less
		// or greater is left to go-mysql-server's filter.
		if !k.parts[j].Holds(ctx, c, values[j], !i.scan.keysOnly) {
			return false, nil
		}
	}
	return true, nil
}

// Close implements gms.RowIter.
func (i *rowIter) Close(*gms.Context) error { return nil }
