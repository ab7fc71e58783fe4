package store

import (
	"errors"
	"fmt"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/sql/myerr"
	"github.com/farmsql/farmsql/sql/row"
)

// A Duplicate is a row that keeps another one out, because both have the same key of a unique index.
type Duplicate struct {
	Row  gms.Row
	Text string // MySQL's message
}

// InsertOrFind inserts a row as Insert does, or returns the row that keeps it out.
func (e *Editor) InsertOrFind(ctx *gms.Context, row gms.Row) (*Duplicate, error) {
	err := e.insertNew(ctx, row)
	c, ok := err.(*clash)
	if !ok {
		return nil, err
	}
	existing, err := e.existing(ctx, c)
	if err != nil {
		return nil, myerr.Storage(err)
	}
	return &Duplicate{existing, c.text(ctx, e.Info.Name)}, nil
}

// A clash says that a row's key in a unique index exists.
type clash struct {
	index *KeyInfo
	row   gms.Row
	key   []byte
}

// Error implements error.
func (c *clash) Error() string { return "sql: key exists in " + c.index.Name }

// clashOf turns errExists of an index into a clash.
func clashOf(err error, index *KeyInfo, row gms.Row, key []byte) error {
	if errors.Is(err, errExists) {
		return &clash{index, row, key}
	}
	return err
}

// asDuplicate turns a clash into MySQL's 1062, with the existing row: REPLACE and ON DUPLICATE KEY UPDATE continue from
// it. Other errors stay as they are.
func (e *Editor) asDuplicate(ctx *gms.Context, err error) error {
	c, ok := err.(*clash)
	if !ok {
		return err
	}
	existing, err := e.existing(ctx, c)
	if err != nil {
		return err
	}
	return gms.NewUniqueKeyErr(c.text(ctx, e.Info.Name), c.index == e.Info.PrimaryKey, existing)
}

// text returns MySQL's message for a clash in a table.
func (c *clash) text(ctx *gms.Context, table string) string {
	return "Duplicate entry '" + c.index.text(ctx, c.row) + "' for key '" + table + "." + c.index.Name + "'"
}

// existing returns the row with which another one clashes.
func (e *Editor) existing(ctx *gms.Context, c *clash) (gms.Row, error) {
	p, ok, err := e.Store.Access(c.index.Index).Get(e.tr.Tx, c.key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: index %s changed while it was asked", row.ErrCorrupt, c.index.Name)
	}
	r, err := row.Load(e.tr.Tx, e.Info.Rows, p, nil)
	if err != nil {
		return nil, err
	}
	if r, err = e.complete(ctx, r); err != nil { // ON DUPLICATE KEY UPDATE may read any column
		return nil, err
	}
	if e.Info.IsKeyless() {
		if err := e.tr.rememberStray(ctx, e.Info, r, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}
