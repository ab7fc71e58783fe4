package fast

import (
	"bytes"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
	"github.com/farmsql/farmsql/sql/store"
)

// This file looks up the keys that an IN list gives together. The statement's literals give one whole
// unique key for each value of the list.

// isList reports whether the lookup is of a list of keys.
func (l *lookup) isList() bool { return l.index != nil && l.list >= 0 }

// listed returns the keys of a list without duplicates, in the order of the index, as go-mysql-server
// reads them; false if the literals are not plain values of their columns.
func (l *lookup) listed(values []Value) (keys [][]byte, ok bool) {
	list := l.parts[l.list].list
	keys = make([][]byte, 0, len(list))
	room := make([]byte, 0, 16*len(list)*len(l.parts))
	for _, value := range list {
		start := len(room)
		for i := range l.parts {
			v := l.parts[i].lo
			if i == l.list {
				v = value
			}
			if room, ok = v.key(room, &l.index.Codecs[i], values); !ok {
				return nil, false
			}
		}
		if len(room)-start > row.KeyBytesMax {
			return nil, false
		}
		keys = append(keys, room[start:len(room):len(room)])
	}
	slices.SortFunc(keys, bytes.Compare)
	return slices.CompactFunc(keys, bytes.Equal), true
}

// pointsOf returns a range for each of unique keys.
func pointsOf(keys [][]byte) []store.KeyRange {
	ranges := make([]store.KeyRange, len(keys))
	for i, key := range keys {
		ranges[i] = store.KeyRange{Low: key, Point: true}
	}
	return ranges
}

// runList returns the rows of a list of keys.
func (f *form) runList(ctx *gms.Context, c *Compiled, s *Session, tr *store.Transaction, values []Value) (*Result, error) {
	keys, ok := f.lookup.listed(values)
	switch {
	case !ok:
		return nil, ErrPlan
	case f.direct.isDirect(ctx, s, tr):
		run := f.newDirectRun(s, tr)
		defer run.room.clear()
		if err := run.readKeys(ctx, s.Store.Access(f.lookup.index.Index), keys); err != nil {
			return nil, myerr.Storage(err)
		}
		return run.result(f.schema)
	case f.columns == nil, len(keys) > compiledRowsMax:
		return nil, ErrPlan // a plan with the list would take too much memory to keep
	}
	rows, err := f.all(ctx, f.scan(c.st, s, tr, f.columns, pointsOf(keys)...))
	if err != nil {
		return nil, err
	}
	return &Result{Header: f.schema, Rows: rows}, nil
}

// keysTogether is the largest number of keys of a list that are looked up together.
const keysTogether = 128

// readKeys reads the rows of unique keys, which are looked up together.
func (d *directRun) readKeys(ctx *gms.Context, index store.Access, keys [][]byte) error {
	if !d.sums && len(keys) > compiledRowsMax {
		return ErrPlan
	}
	var room [keysTogether]region.Ptr
	for len(keys) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(len(keys), keysTogether)
		rows, err := index.GetMany(d.tx, keys[:n], room[:0])
		if err != nil {
			return err
		}
		if err := d.takeMany(rows); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// takeMany takes the rows at the given pointers, and reads them ahead together; a nil pointer is
// skipped.
func (d *directRun) takeMany(rows []region.Ptr) error {
	ahead := 0
	for i, p := range rows {
		if i == ahead {
			ahead += max(1, d.tx.ReadAhead(rows[i:]))
		}
		if p.IsNil() {
			continue
		}
		if err := d.take(p); err != nil {
			return err
		}
		if d.room.text > compiledBytesMax {
			return ErrPlan
		}
	}
	return nil
}
