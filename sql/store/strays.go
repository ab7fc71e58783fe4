package store

import (
	"encoding/binary"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/row"
)

// This file finds strays: rows of tables without a primary key. go-mysql-server
// identifies a row to be changed by its contents; the statement's scan remembers
// the addresses of the rows that it has returned.

// strayKey identifies a row by its table and contents. Rows that are equal in all
// columns are interchangeable.
func strayKey(ctx *gms.Context, info *TableInfo, row gms.Row) (string, error) {
	img, err := info.Rows.Image(ctx, row)
	if err != nil {
		return "", err
	}
	return string(img.Append(binary.LittleEndian.AppendUint64(nil, info.ID))), nil
}

// rememberStray keeps the address of a row that a scan has returned, for takeStray.
func (tr *Transaction) rememberStray(ctx *gms.Context, info *TableInfo, row gms.Row, p region.Ptr) error {
	key, err := strayKey(ctx, info, row)
	if err != nil {
		return err
	}
	if tr.strays == nil {
		tr.strays = make(map[string][]region.Ptr)
	}
	tr.strays[key] = append(tr.strays[key], p)
	return nil
}

// takeStray returns the address of a row with these contents, each address once.
func (tr *Transaction) takeStray(ctx *gms.Context, info *TableInfo, row gms.Row) (region.Ptr, bool, error) {
	key, err := strayKey(ctx, info, row)
	if err != nil {
		return region.Ptr{}, false, err
	}
	for s := tr.strays[key]; len(s) > 0; {
		p := s[len(s)-1]
		s = s[:len(s)-1]
		tr.strays[key] = s
		if p, ok := tr.follow(p); ok {
			return p, true, nil
		}
	}
	return region.Ptr{}, false, nil
}

// findStray scans the whole table for a row equal to r, whose address no scan of the statement has
// remembered.
func (e *Editor) findStray(ctx *gms.Context, r gms.Row) (region.Ptr, bool, error) {
	want, err := strayKey(ctx, e.Info, r)
	if err != nil {
		return region.Ptr{}, false, err
	}
	cur := e.acc.Rows(e.tr.Tx, nil, nil, false, rowsAtFirst)
	for {
		_, p, ok, err := cur.Next()
		if err != nil || !ok {
			return p, false, err
		}
		have, err := row.Load(e.tr.Tx, e.Info.Rows, p, nil)
		if err != nil {
			return p, false, err
		}
		got, err := strayKey(ctx, e.Info, have)
		if err != nil {
			return p, false, err
		}
		if got == want {
			return p, true, nil
		}
	}
}

// follow returns the present address of a row that was found at p; false if the
// transaction has deleted it.
func (tr *Transaction) follow(p region.Ptr) (region.Ptr, bool) {
	for {
		to, moved := tr.moved[p]
		if !moved {
			return p, true
		}
		if to.IsNil() {
			return to, false
		}
		p = to
	}
}

// move remembers that the transaction has moved a row or, if to is nil, deleted it.
func (tr *Transaction) move(from, to region.Ptr) {
	if tr.moved == nil {
		tr.moved = make(map[region.Ptr]region.Ptr)
	}
	tr.moved[from] = to
	tr.Tx.OnRollback(func() { delete(tr.moved, from) })
}
