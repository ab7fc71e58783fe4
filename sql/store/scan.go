package store

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

var (
	_ gms.Partition     = (*Scan)(nil)
	_ gms.PartitionIter = (*onePartition)(nil)
	_ gms.RowIter       = (*rowIter)(nil)
)

// A Scan says which rows of a table to read, and by what index. A table has a single partition in
// go-mysql-server's sense: its rows are spread over regions instead.
type Scan struct {
	// Index is read in Ranges of its keys, one range after the other, backwards if Reverse.
	Index   *KeyInfo
	Ranges  []KeyRange
	Reverse bool
	// keysOnly is set if only the existence of the rows matters.
	keysOnly bool
	// First is the number of rows asked for, 0 if that is not known.
	First int
	// Passes, if it is not nil, decides which rows are returned. Rows that do not pass are not
	// locked by FOR UPDATE.
	Passes func(*gms.Context, gms.Row) (bool, error)
	// Stored, if it is not nil, decides by a row's stored form whether the row passes.
	Stored func(*row.View) Verdict
	// Whole is set if the caller reads all rows.
	Whole bool
	// Skip is the number of rows to skip at the beginning. It is not used together with Passes.
	Skip int64
	// Changes is set if the caller is about to change the rows that it reads.
	Changes bool
}

// A Verdict says whether a row passes, as far as its stored form tells.
type Verdict int8

// The verdicts. If the verdict is Maybe, Scan.Passes decides.
const (
	Maybe Verdict = iota
	No
	Yes
)

// Key implements gms.Partition.
func (s *Scan) Key() []byte { return []byte(s.Index.Name) }

// everything returns the scan of a whole index.
func everything(k *KeyInfo) *Scan { return &Scan{Index: k, Ranges: []KeyRange{{}}} }

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
	t    *Table
	s    *Session
	tr   *Transaction
	scan *Scan
	acc  Access
	cur  cursor
	at   int // index of the range to scan next
	// points are the addresses of the rows of the next ranges, which are single keys that have been looked up together;
	// nil for a key without a row. together is the number of keys to look up next.
	points   []region.Ptr
	together int
	write    bool
	// parts is the number of further rows of which only the needed columns enter the read
	// set. That pays in a transaction that stays open after the statement.
	parts int
	part  *row.Part
	// inTurn is set if the rows are read only when it is the transaction's turn.
	inTurn bool
	last   region.Ptr // the address of the row that Next has returned last
	rows   int        // number of rows returned
	skip   int64      // number of rows still to be skipped
	// found are the collected rows that are still to be returned. All are collected before the first
	// is returned, because a statement that changes the table must not read its own changes.
	found   []region.Ptr
	collect bool
	// ahead is the number of the next rows, of found, points or batch, that are being read ahead.
	ahead int
	// batch are the next rows of the cursor if the caller reads all rows. Its memory is batchRoom.
	batch, batchRoom []region.Ptr
	// room is memory for rows in their stored form; view is the present one.
	room []byte
	view row.View
	once bool // the caller is done with a row's stored form before it asks for the next row
}

// PartsMax is the number of rows of a scan of which only the needed columns enter the read
// set. Among more rows, a needed column of some row has probably changed anyway, and reading
// columns costs more than reading rows.
const PartsMax = 1000

const (
	// rowsAtFirst is the number of rows that a scan first reads ahead, or of keys that it first looks
	// up together: the caller may ask for no more. Each further lookup is of pointsGrowth times as many
	// keys, up to rowsTogether. For collected rows the number is rowsTogether from the beginning.
	rowsAtFirst  = 8
	rowsTogether = 128
	pointsGrowth = 4
)

// Rows reads the rows of a scan in the transaction of a session.
func (t *Table) Rows(session *Session, tr *Transaction, s *Scan) *rowIter {
	i := &rowIter{
		t: t, s: session, tr: tr, scan: s, acc: t.Store.Access(s.Index.Index),
		write:   session.ForUpdate && !s.keysOnly,
		collect: tr.Editing > 0 && !s.keysOnly,
		skip:    s.Skip,
	}
	i.together = min(max(s.First, rowsAtFirst), rowsTogether)
	if i.collect {
		i.together = rowsTogether
	}
	switch {
	case !session.IsOpen(): // a transaction of one statement is so short that turns and parts would not pay
	case i.write || i.collect || s.Changes:
		i.inTurn = len(s.Ranges) == 1
	case tr.Editing == 0:
		i.parts = PartsMax
	}
	return i
}

// Next implements gms.RowIter.
func (i *rowIter) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := i.next(ctx)
		if err != nil || row != nil {
			return row, err
		}
	}
}

// next returns the next row; nil if it does not pass.
func (i *rowIter) next(ctx *gms.Context) (gms.Row, error) {
	if i.rows++; i.rows%RowsBetweenLooks == 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if err := i.begin(ctx); err != nil {
		return nil, myerr.Storage(err)
	}
	p, ok, err := i.row(ctx)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	if !ok {
		return nil, io.EOF
	}
	i.last = p
	row, err := i.load(ctx, p)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	return row, i.s.holdRead(i.tr)
}

// HasAddresses reports whether the scan's rows can be changed by their addresses: the rows of a table without a primary
// key are changed by their values.
func (i *rowIter) HasAddresses() bool { return !i.t.Info.IsKeyless() && !i.scan.keysOnly }

// Address returns the address of the row that Next has returned last.
func (i *rowIter) Address() region.Ptr { return i.last }

// begin waits for the transaction's turn, collects rows and skips rows, as far as the scan needs this before its first
// row.
func (i *rowIter) begin(ctx *gms.Context) error {
	if i.inTurn {
		i.inTurn = false
		i.t.Store.Turns.Await(i.tr, i.scan.Index.Index, i.scan.Ranges[0].Low)
	}
	if i.collect {
		i.collect = false
		if err := i.collectRows(ctx); err != nil {
			return err
		}
	}
	if i.skip > 0 {
		return i.skipRows(ctx)
	}
	return nil
}

// row returns the address of the next row; false at the end of the scan.
func (i *rowIter) row(ctx *gms.Context) (region.Ptr, bool, error) {
	if i.found == nil { // the scan does not collect its rows
		return i.advance(ctx)
	}
	for len(i.found) > 0 {
		i.readAhead(i.found)
		p := i.found[0]
		i.found = i.found[1:]
		if p, ok := i.tr.follow(p); ok {
			return p, true, nil
		}
	}
	return region.Ptr{}, false, nil
}

// readAhead reads the next rows ahead, unless that has been done.
func (i *rowIter) readAhead(next []region.Ptr) {
	if i.ahead == 0 {
		i.ahead = max(1, i.tr.Tx.ReadAhead(next[:min(len(next), rowsTogether)]))
	}
	i.ahead--
}

// collectRows reads the addresses of all rows of the scan.
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
		found = append(found, p)
		if len(found)%RowsBetweenLooks != 0 {
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

// advance returns the row of the next index entry within the scan; false at its end.
func (i *rowIter) advance(ctx *gms.Context) (region.Ptr, bool, error) {
	for {
		p, ok, err := i.entry(ctx)
		if err != nil || !ok {
			return p, false, err
		}
		r := &i.scan.Ranges[i.at-1] // i.at is the next range already
		if r.Rest == nil && r.Check == nil {
			return p, true, nil
		}
		if ok, err = i.passes(ctx, p, r); ok || err != nil {
			return p, ok, err
		}
	}
}

// entry returns the address of the next row in the scan's index, from one range to the next; false at the end.
func (i *rowIter) entry(ctx *gms.Context) (region.Ptr, bool, error) {
	for {
		if i.cur != nil {
			if p, ok, err := i.following(); ok || err != nil {
				return p, ok, err
			}
			i.cur = nil
		}
		if i.at == len(i.scan.Ranges) {
			return region.Ptr{}, false, nil
		}
		r := &i.scan.Ranges[i.at]
		// For a single key, look it up instead of scanning: then changes to its neighbours do
		// not conflict with the transaction.
		if i.isSingle(r) {
			p, ok, err := i.point(ctx, r)
			if i.at++; ok || err != nil {
				return p, ok, err
			}
			continue
		}
		i.at++
		switch {
		case i.needsOnlyKeys(r):
			i.cur = i.acc.Keys(i.tr.Tx, r.Low, r.High)
		case i.tr.Editing > 0, i.scan.Whole: // no row is read before all keys are collected, or those of a batch
			i.cur = i.acc.Scan(i.tr.Tx, r.Low, r.High, i.scan.Reverse)
		default:
			i.cur = i.acc.Rows(i.tr.Tx, r.Low, r.High, i.scan.Reverse, cmp.Or(i.scan.First, rowsAtFirst))
		}
		if r.Loose && !i.scan.keysOnly {
			if err := i.sort(ctx); err != nil {
				return region.Ptr{}, false, err
			}
		}
	}
}

// sort orders the cursor's entries by their values: go-mysql-server expects the rows of a range in
// order, even if the index says that it is not ordered.
func (i *rowIter) sort(ctx *gms.Context) error {
	k := i.scan.Index.withoutPrefixes()
	s := &sortedCursor{}
	for {
		_, p, ok, err := i.cur.Next()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		r, err := row.Load(i.tr.Tx, i.t.Info.Rows, p, k.Columns)
		if err != nil {
			return err
		}
		var key []byte
		for j := range k.Codecs {
			if key, err = k.Codecs[j].Append(ctx, key, r[j]); err != nil {
				return err
			}
		}
		s.entries = append(s.entries, sortedEntry{key, p})
	}
	slices.SortStableFunc(s.entries, func(a, b sortedEntry) int { return bytes.Compare(a.key, b.key) })
	i.cur = s
	return nil
}

// A sortedCursor returns collected entries.
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

// point returns the row of the next range, which is of a single key; false if there is no such row.
func (i *rowIter) point(ctx *gms.Context, r *KeyRange) (region.Ptr, bool, error) {
	if i.needsOnlyKeys(r) {
		ok, err := i.acc.Has(i.tr.Tx, r.Low)
		return region.Ptr{}, ok, err
	}
	if len(i.points) == 0 {
		next := i.nextPoints()
		if len(next) == 1 {
			return i.acc.Get(i.tr.Tx, r.Low)
		}
		if err := i.getMany(ctx, next); err != nil {
			return region.Ptr{}, false, err
		}
	}
	if i.tr.Editing == 0 { // otherwise no row is read before all keys are collected
		i.readAhead(i.points)
	}
	p := i.points[0]
	if i.points = i.points[1:]; p.IsNil() {
		return p, false, nil
	}
	p, ok := i.tr.follow(p)
	return p, ok, nil
}

// nextPoints returns the next range, which is of a single key, and those ranges after it whose keys to look up together
// with that key.
func (i *rowIter) nextPoints() []KeyRange {
	next := i.scan.Ranges[i.at:]
	n := 1
	for !i.scan.keysOnly && n < min(len(next), i.together) && i.isSingle(&next[n]) {
		n++
	}
	return next[:n]
}

// getMany looks up the keys of ranges together.
func (i *rowIter) getMany(ctx *gms.Context, ranges []KeyRange) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	keys := make([][]byte, len(ranges))
	for k := range ranges {
		keys[k] = ranges[k].Low
	}
	i.together = min(pointsGrowth*i.together, rowsTogether)
	var err error
	i.points, err = i.acc.GetMany(i.tr.Tx, keys, i.points)
	if len(i.points) > 0 {
		// After an error these are the rows of the keys before the one that failed. They come first: that
		// key is looked up again, and meets the error then.
		return nil
	}
	return err
}

// needsOnlyKeys reports whether only the existence of a range's rows matters, and no check of their
// values.
func (i *rowIter) needsOnlyKeys(r *KeyRange) bool {
	return i.scan.keysOnly && r.Rest == nil && r.Check == nil
}

// isSingle reports whether a range is of one key that is a whole entry: in an index that is not
// unique, or with a NULL, the entry continues with the primary key.
func (i *rowIter) isSingle(r *KeyRange) bool {
	return r.Point && (i.scan.Index == i.t.Info.PrimaryKey || (i.scan.Index.Unique && !r.HasNull))
}

// load reads a row into the read set; into the write set if the statement locks its rows.
func (i *rowIter) load(ctx *gms.Context, p region.Ptr) (gms.Row, error) {
	info := i.t.Info
	if i.scan.keysOnly {
		return make(gms.Row, len(i.t.Schema(ctx))), nil
	}
	if i.scan.Passes != nil {
		_, r, err := i.loadPassing(ctx, p, false)
		return r, err
	}
	if i.write {
		if _, err := i.tr.Tx.Write(p); err != nil {
			return nil, err
		}
	}
	if i.parts > 0 {
		i.parts--
		return row.LoadPart(i.tr.Tx, info.Rows, p, i.t.Columns)
	}
	b, err := i.tr.Tx.Read(p)
	if err != nil {
		return nil, err
	}
	r, err := i.decode(b)
	if err == nil && i.tr.Editing > 0 && info.IsKeyless() && i.t.Columns == nil {
		err = i.tr.rememberStray(ctx, info, r, p)
	}
	return r, err
}

// passes reports whether a row meets Rest and Check of its range.
func (i *rowIter) passes(ctx *gms.Context, p region.Ptr, r *KeyRange) (bool, error) {
	k := i.scan.Index
	values, err := row.Load(i.tr.Tx, i.t.Info.Rows, p, k.Columns)
	if err != nil {
		return false, err
	}
	for j, part := range r.Rest {
		b, err := k.Codecs[r.restAt+j].Append(ctx, nil, values[r.restAt+j])
		if err != nil || !part.Hold(b) {
			return false, err
		}
	}
	for j, c := range r.Check {
		// A value that cannot be compared is not equal to any bound; go-mysql-server's filter
		// decides whether it is less or greater. A foreign key's check (keysOnly) has no filter.
		if !k.Codecs[j].Holds(ctx, c, values[j], !i.scan.keysOnly) {
			return false, nil
		}
	}
	return true, nil
}

// Close implements gms.RowIter.
func (i *rowIter) Close(*gms.Context) error { return nil }
