package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/farmsql/farmsql/txn"
)

// A large table is rewritten, or indexed, by a series of transactions. Meanwhile
// the table has a mark, and no one else may write to it:
//
//	BeginAlteration  marks the table and lists the structures to be built
//	...              the builder fills the new structures, transaction by transaction
//	last transaction takes the new structures into use and removes the mark
//	EndAlteration    removes the mark and drops the new structures: after a failure, or when the
//	                 leader finds that the builder's machine is gone (see Lives)
//
// The mark changes the head. So a transaction that read the table before cannot commit a change to
// it. Later transactions wait in Await.

// BeginAlteration marks a table. It returns the descriptor with the mark.
func (c *Catalog) BeginAlteration(t *txn.Tx, tbl *Table, build []Storage) (*Table, error) {
	if tbl.Alteration.Owner != 0 {
		return nil, ErrAltering
	}
	tbl = tbl.Clone()
	tbl.Alteration = Alteration{Owner: c.newMark(), Build: build}
	return c.UpdateTable(t, tbl)
}

// EndAlteration removes an alteration's mark and drops the structures it has built. It does nothing if
// the alteration has ended already.
func (c *Catalog) EndAlteration(ctx context.Context, db, name string, owner uint64) error {
	return c.m.Run(ctx, func(t *txn.Tx) error {
		tbl, err := c.Altered(t, db, name, owner)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrAltering) {
			return nil // the table was dropped, or has another alteration by now
		}
		if err != nil || tbl.Alteration.Owner != owner {
			return err
		}
		build := tbl.Alteration.Build
		tbl = tbl.Clone()
		tbl.Alteration = Alteration{}
		if _, err := c.UpdateTable(t, tbl); err != nil {
			return err
		}
		return c.Drop(t, build)
	})
}

// The first and the longest pause between two checks by Await.
const (
	awaitFirst = 200 * time.Microsecond
	awaitLast  = 20 * time.Millisecond
)

// Await waits until a table has no alteration. It returns ErrAltering if the table still
// has one after patience. It checks outside of the caller's transaction.
func (c *Catalog) Await(ctx context.Context, db, name string, patience time.Duration) error {
	clock := c.m.Clock()
	deadline := clock.Now().Add(patience)
	for pause := awaitFirst; ; pause = min(2*pause, awaitLast) {
		altering := false
		err := c.m.Run(ctx, func(t *txn.Tx) error {
			_, err := c.Table(t, db, name)
			if altering = errors.Is(err, ErrAltering); altering || errors.Is(err, ErrNotFound) {
				return nil
			}
			return err
		})
		if err != nil || !altering {
			return err
		}
		if clock.Now().After(deadline) {
			return ErrAltering
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		clock.Sleep(pause)
	}
}
