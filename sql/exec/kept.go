package exec

import (
	"io"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/plan"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// A kept reads the rows of a join's table once, and keeps them by the values of some columns. The
// values are encoded as in an index's keys, so that equal values have equal keys.
type kept struct {
	r    *run
	t    *plan.JoinTable
	keys []keptKey
	// findsAll is set if there are no keys: all rows belong to each row of the earlier tables.
	findsAll bool
	// isRead is set once the rows have been read. all has the rows of a set, and rows kept without
	// keys, in the order in which they came.
	isRead bool
	all    []gms.Row
	byKey  map[string][]gms.Row
	taken  int64
	room   []byte // memory for the next key
}

// A keptKey is a column by which rows are kept. own is its position in these rows. outer is the
// position of the equal column in rows of the earlier tables.
type keptKey struct {
	own, outer int
	codec      *row.KeyCodec
}

// keptBytes is about the memory of a kept row, beyond its values and its key.
const keptBytes = 64

func (r *run) newKept(t *plan.JoinTable, keys []keptKey) *kept {
	k := &kept{r: r, t: t, keys: keys, findsAll: len(keys) == 0}
	if t.IsSet && k.findsAll { // keeps each row of a set once
		k.keys = []keptKey{{own: 0, codec: t.Codec(0)}}
	}
	return k
}

// find returns the rows that belong to a row of the earlier tables, and perhaps others.
func (k *kept) find(ctx *gms.Context, outer gms.Row) ([]gms.Row, error) {
	if err := k.read(ctx); err != nil {
		return nil, err
	}
	if k.findsAll {
		return k.all, nil
	}
	key, ok, err := k.keyOf(outer, func(k *keptKey) int { return k.outer })
	if !ok {
		return nil, err
	}
	return k.byKey[string(key)], nil
}

// keyOf encodes the columns at the given places of a row as a key, which is valid until the next
// call. It returns false for NULL, and for a value that the column cannot hold: no key equals
// these. For a value of an unexpected Go type the error is ErrPlan.
func (k *kept) keyOf(row gms.Row, place func(*keptKey) int) ([]byte, bool, error) {
	key := k.room[:0]
	for i := range k.keys {
		v, ok := inTypeOf(k.keys[i].codec, row[place(&k.keys[i])])
		if !ok {
			return nil, false, nil
		}
		if key, ok = k.keys[i].codec.AppendNative(key, v); !ok {
			return nil, false, ErrPlan
		}
	}
	k.room = key
	return key, true, nil
}

// read reads the rows, unless they have been read.
func (k *kept) read(ctx *gms.Context) error {
	if k.isRead {
		return nil
	}
	rows, err := k.r.source(ctx, k.t)
	if err != nil {
		return err
	}
	k.byKey = make(map[string][]gms.Row)
	for n := 0; ; n++ {
		row, err := rows.Next(ctx)
		if err == io.EOF {
			break
		}
		if err == nil && n%store.RowsBetweenLooks == 0 {
			err = ctx.Err()
		}
		if err == nil {
			err = k.add(row)
		}
		if err != nil {
			_ = rows.Close(ctx) // the first error is the one to return
			return err
		}
	}
	k.isRead = true
	return rows.Close(ctx)
}

// add keeps a row. It drops a row whose key nothing can equal, and a row that the set already has.
func (k *kept) add(row gms.Row) error {
	key, ok, err := k.keyOf(row, func(k *keptKey) int { return k.own })
	if !ok {
		return err
	}
	if k.t.IsSet && len(k.byKey[string(key)]) > 0 {
		return nil
	}
	n := store.RowMemory(row) + int64(len(key)) + keptBytes
	if err := k.r.s.Holding.Take(n); err != nil {
		return err
	}
	k.taken += n
	if k.t.IsSet || len(k.keys) == 0 {
		k.all = append(k.all, row)
	}
	if len(k.keys) > 0 {
		k.byKey[string(key)] = append(k.byKey[string(key)], row)
	}
	return nil
}

// give gives back the memory of the rows.
func (k *kept) give() {
	k.r.s.Holding.Give(k.taken)
	k.taken, k.all, k.byKey = 0, nil, nil
}

// source returns the rows of a JoinTable with a Source, or of a table, that meet its condition.
func (r *run) source(ctx *gms.Context, t *plan.JoinTable) (gms.RowIter, error) {
	if t.Source == nil {
		number := 0
		if len(t.Access) > 1 {
			number = r.cheapest(ctx, t.Scan)
		}
		whole := *t.Scan
		whole.Whole = true
		return r.scanBy(ctx, &whole, accessOf(t.Scan, number))
	}
	passes, ok := (&compiler{t.Scan.Place, t.Codec, r.values}).compile(whereOf(t.Scan))
	if !ok {
		return nil, ErrPlan
	}
	rows, err := r.open(ctx, t.Source)
	if err != nil {
		return nil, err
	}
	return &passed{rows, passes}, nil
}

// A passed returns the rows for which a test is true.
type passed struct {
	gms.RowIter
	test test
}

// Next implements gms.RowIter.
func (p *passed) Next(ctx *gms.Context) (gms.Row, error) {
	for {
		row, err := p.RowIter.Next(ctx)
		if err != nil {
			return nil, err
		}
		v, err := p.test(ctx, row)
		if err != nil || v == isTrue {
			return row, err
		}
	}
}

// A keptRows returns all kept rows.
type keptRows struct {
	*kept
	at int
}

// Next implements gms.RowIter.
func (k *keptRows) Next(ctx *gms.Context) (gms.Row, error) {
	if err := k.read(ctx); err != nil {
		return nil, err
	}
	if k.at == len(k.all) {
		return nil, io.EOF
	}
	k.at++
	return k.all[k.at-1], nil
}

// Close implements gms.RowIter.
func (k *keptRows) Close(*gms.Context) error {
	k.give()
	return nil
}

// A rowList returns rows of a list.
type rowList struct{ rows []gms.Row }

// Next implements gms.RowIter.
func (l *rowList) Next(*gms.Context) (gms.Row, error) {
	if len(l.rows) == 0 {
		return nil, io.EOF
	}
	row := l.rows[0]
	l.rows = l.rows[1:]
	return row, nil
}

// Close implements gms.RowIter.
func (*rowList) Close(*gms.Context) error { return nil }
