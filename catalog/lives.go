package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/txn"
)

// Lives says which machines are at work on an instance, each from its start to its end:
// a life. What one has dropped it frees itself, and only it ends the alterations that it
// has begun; what lives have left behind that are over, the leader takes care of. So no
// two machines free the same, but while the leader changes, which costs conflicts only.
type Lives interface {
	// Own is this machine's life. 32 bits have to tell lives apart.
	Own() uint32
	// Has says whether a life is not over.
	Has(life uint32) bool
	// Leads says whether this machine is the leader. There may be none for a while.
	Leads() bool
}

// onlyLife is the life of a machine with which nobody else is at work.
type onlyLife uint32

func (l onlyLife) Own() uint32          { return uint32(l) }
func (l onlyLife) Has(life uint32) bool { return life == uint32(l) }
func (l onlyLife) Leads() bool          { return true }

// newMark draws a number that nobody has drawn before, and that says whose life it is of.
func (c *Catalog) newMark() uint64 {
	return uint64(c.lives.Own())<<32 | c.m.Clock().Uint64()&(1<<32-1) | 1
}

// isOrphan says whether what a mark stands at was left behind by a life that is over.
func (c *Catalog) isOrphan(mark uint64) bool {
	return !c.lives.Has(uint32(mark>>32)) && !sabotage.Heritage.Skipped()
}

// isOurs says whether this machine is to free what was dropped under a name.
func (c *Catalog) isOurs(name []byte) bool {
	if len(name) != 9 {
		return c.lives.Leads()
	}
	mark := binary.BigEndian.Uint64(name[1:])
	return uint32(mark>>32) == c.lives.Own() || c.lives.Leads() && c.isOrphan(mark)
}

// Inherit tells the sweeper that lives may be over, or that this machine may lead now.
func (c *Catalog) Inherit() {
	c.sweeper.inherits.Store(true)
	c.Wake()
}

// inherit ends the alterations that have been left behind: what they were building is
// dropped, and the tables are released.
func (c *Catalog) inherit(ctx context.Context) error {
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

// orphans returns the tables whose alterations have been left behind.
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
		if owner := binary.LittleEndian.Uint64(b[16:]); owner == 0 || !c.isOrphan(owner) {
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

// An abandoned alteration could not be ended by who has begun it.
type abandoned struct {
	db, name string
	owner    uint64
}

// AbandonAlteration is EndAlteration for who has begun it. If it fails, because machines
// do not answer or ctx is done, the sweeper tries it again until it succeeds: nobody else
// would as long as this machine lives.
func (c *Catalog) AbandonAlteration(ctx context.Context, db, name string, owner uint64) error {
	err := c.EndAlteration(ctx, db, name, owner)
	if err == nil {
		return nil
	}
	c.abandon(abandoned{db, name, owner})
	c.Wake()
	return fmt.Errorf("what was being built for table %s.%s is dropped later: %w", db, name, err)
}

func (c *Catalog) abandon(more ...abandoned) {
	c.sweeper.abandoned.Lock()
	defer c.sweeper.abandoned.Unlock()
	c.sweeper.abandoned.list = append(c.sweeper.abandoned.list, more...)
}

// takeAbandoned returns what is on the list, which is empty then.
func (c *Catalog) takeAbandoned() []abandoned {
	c.sweeper.abandoned.Lock()
	defer c.sweeper.abandoned.Unlock()
	all := c.sweeper.abandoned.list
	c.sweeper.abandoned.list = nil
	return all
}

// endAbandoned ends the alterations that have been abandoned.
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
