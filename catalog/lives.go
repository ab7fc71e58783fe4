package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn"
)

// Lives says which machines work on an instance. A life is a machine from its start to its end.
// Each life frees the structures that it has dropped and ends the alterations that it has begun;
// for lives that are over, the leader does both. So no two machines free the same objects, except
// while the leader changes; this causes conflicts, but no damage.
type Lives interface {
	// Own returns the number of this machine's life. No two lives of the instance's machines may
	// have the same number.
	Own() uint32
	// Has reports whether a life still goes on.
	Has(life uint32) bool
	// Leads reports whether this machine is the leader. There may be times without a leader.
	Leads() bool
}

// onlyLife is the life of a machine that works alone.
type onlyLife uint32

func (l onlyLife) Own() uint32          { return uint32(l) }
func (l onlyLife) Has(life uint32) bool { return life == uint32(l) }
func (l onlyLife) Leads() bool          { return true }

// newMark draws a number that is unique and contains this machine's life. It is never 0.
func (c *Catalog) newMark() uint64 {
	return uint64(c.lives.Own())<<32 | (c.m.Clock().Uint64() & (1<<32 - 1)) | 1
}

// isOrphan reports whether a mark was set by a life that is over.
func (c *Catalog) isOrphan(mark uint64) bool {
	return !c.lives.Has(uint32(mark>>32)) && !sabotage.Orphans.Skipped()
}

// isOurs reports whether this machine must free the storage listed under a name.
func (c *Catalog) isOurs(name []byte) bool {
	const markBytes = 8
	if len(name) != 1+markBytes { // the name has no mark
		return c.lives.Leads()
	}
	mark := binary.BigEndian.Uint64(name[1:])
	return uint32(mark>>32) == c.lives.Own() || (c.lives.Leads() && c.isOrphan(mark))
}

// LivesChanged tells the sweeper that lives may be over, or that this machine may have become
// the leader.
func (c *Catalog) LivesChanged() {
	c.sweeper.livesChanged.Store(true)
	c.Wake()
}

// endOrphans ends the alterations of lives that are over: it drops the structures under
// construction and removes the marks from the tables. It does nothing unless this machine is the
// leader.
func (c *Catalog) endOrphans(ctx context.Context) error {
	if !c.lives.Leads() {
		return nil
	}
	var orphans []*Table
	err := c.m.Run(ctx, func(t *txn.Tx) (err error) {
		orphans, err = c.orphans(t)
		return err
	})
	if err != nil {
		return err
	}
	for _, tbl := range orphans {
		if err := c.EndAlteration(ctx, tbl.DB, tbl.Name, tbl.Alteration.Owner); err != nil {
			return err
		}
	}
	return nil
}

// orphans returns the tables with alterations of lives that are over.
func (c *Catalog) orphans(t *txn.Tx) (orphans []*Table, err error) {
	lo, hi := ofKind(nameTable)
	keys, heads, err := c.list(t, lo, hi)
	if err != nil {
		return nil, err
	}
	for i, head := range heads {
		b, err := t.Read(head)
		if err != nil {
			return nil, err
		}
		if owner := binary.LittleEndian.Uint64(b[16:]); owner == 0 || !c.isOrphan(owner) { // see putHead
			continue
		}
		tbl, err := c.load(t, string(keys[i]), head)
		if err != nil {
			return nil, err
		}
		orphans = append(orphans, tbl)
	}
	return orphans, nil
}

// An abandoned alteration is one that this machine began but could not end.
type abandoned struct {
	db, name string
	owner    uint64
}

// AbandonAlteration is like EndAlteration, for the machine that began the alteration. If it fails,
// because machines do not answer or ctx is done, the sweeper tries again until it succeeds: no
// other machine ends the alteration during this machine's life.
func (c *Catalog) AbandonAlteration(ctx context.Context, db, name string, owner uint64) error {
	err := c.EndAlteration(ctx, db, name, owner)
	if err == nil {
		return nil
	}
	c.abandon(abandoned{db, name, owner})
	c.Wake()
	return fmt.Errorf("unfinished structures of table %s.%s are dropped later: %w", db, name, err)
}

// abandon leaves alterations to the sweeper, which drops the unfinished structures later.
func (c *Catalog) abandon(more ...abandoned) {
	c.sweeper.abandoned.Lock()
	defer c.sweeper.abandoned.Unlock()
	c.sweeper.abandoned.list = append(c.sweeper.abandoned.list, more...)
}

// takeAbandoned empties the list of abandoned alterations and returns its former contents.
func (c *Catalog) takeAbandoned() []abandoned {
	c.sweeper.abandoned.Lock()
	defer c.sweeper.abandoned.Unlock()
	all := c.sweeper.abandoned.list
	c.sweeper.abandoned.list = nil
	return all
}

// endAbandoned tries to end the abandoned alterations. Those that it cannot end stay on the list.
func (c *Catalog) endAbandoned(ctx context.Context) error {
	var errs []error
	for _, a := range c.takeAbandoned() {
		if err := c.EndAlteration(ctx, a.db, a.name, a.owner); err != nil {
			c.abandon(a)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
