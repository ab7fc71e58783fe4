package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Drop lists storage that is to be freed once the transaction has committed.
func (c *Catalog) Drop(t *txn.Tx, s []Storage) error {
	t.ToFree()
	kept := s[:0:0]
	for _, x := range s {
		if !x.Anchor.IsNil() {
			kept = append(kept, x)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	p, err := put(t, region.Ptr{}, encodeStorage(kept))
	if err != nil {
		return err
	}
	id := binary.BigEndian.AppendUint64([]byte{nameDropped}, c.newMark())
	t.OnEnd(func() {
		c.m.Frees(true) // until Sweep has found nothing more
		c.Wake()
	})
	return c.insert(t, id, p)
}

// Sweep frees the memory of everything on the list that this machine is to free (see
// Lives), in bounded transactions. Stopped at any point, by an error or a crash, it is
// resumed by the next call. One sweep runs at a time.
func (c *Catalog) Sweep(ctx context.Context) error {
	if err := c.sweeper.begin(ctx, c.m.Clock()); err != nil {
		return err
	}
	defer c.sweeper.end()
	c.m.Frees(true)
	for {
		var key []byte
		var entry region.Ptr
		var storage []Storage
		err := c.m.Run(ctx, func(t *txn.Tx) (err error) {
			key, entry, storage, err = c.nextDropped(t)
			return err
		})
		if err != nil || key == nil {
			return err
		}
		for _, s := range storage {
			if err := c.destroy(ctx, s); err != nil {
				return err
			}
		}
		if err := c.finishDrop(ctx, key, entry); err != nil {
			return err
		}
	}
}

// nextDropped returns the first entry of the list that this machine is to free; its key
// is nil if there is none.
func (c *Catalog) nextDropped(t *txn.Tx) (key []byte, entry region.Ptr, storage []Storage, err error) {
	lo, hi := ofKind(nameDropped)
	for cur := c.names.Scan(t, lo, hi, false); ; {
		k, p, ok, err := cur.Next()
		if err != nil || !ok {
			return nil, region.Ptr{}, nil, err
		}
		if !c.isOurs(k) {
			continue
		}
		key = slices.Clone(k)
		b, err := get(t, p)
		if err != nil {
			return nil, region.Ptr{}, nil, err
		}
		storage, err = decodeStorage(b)
		return key, p, storage, err
	}
}

// destroy frees one structure, and the rows that it owns with it.
func (c *Catalog) destroy(ctx context.Context, s Storage) error {
	defer c.forgetHandle(s)
	free := func(t *txn.Tx, p region.Ptr) error {
		if !s.Rows {
			return nil
		}
		return c.freeRow(t, p)
	}
	if s.Access == AccessHash {
		return c.Hash(s.Anchor).Destroy(ctx, func(t *txn.Tx, _, value []byte) error {
			p, err := region.DecodePtr(value)
			if err != nil {
				return err
			}
			return free(t, p)
		})
	}
	return c.Tree(s.Anchor).Destroy(ctx, func(t *txn.Tx, _ []byte, p region.Ptr) error { return free(t, p) })
}

func (c *Catalog) finishDrop(ctx context.Context, key []byte, entry region.Ptr) error {
	return c.m.Run(ctx, func(t *txn.Tx) error {
		t.ToFree()
		if ok, err := c.names.Delete(t, key); err != nil || !ok {
			return err
		}
		return t.Free(entry)
	})
}

// sweeper frees in the background what was dropped or orphaned.
type sweeper struct {
	// livesChanged says that lives may be over, so that there may be orphans.
	livesChanged atomic.Bool
	wake         clock.Event
	sweeping     struct {
		lockrank.Mutex[lockrank.Leaf]
		turn
	}

	// run is held while the sweeper is being started or stopped.
	run      lockrank.Mutex[lockrank.Leaf]
	stop     context.CancelFunc // nil: it does not run
	stopping clock.Event        // of who runs, by stop
	ended    clock.Event        // by who runs, after stop
	closed   bool

	abandoned struct {
		lockrank.Mutex[lockrank.Leaf]
		list []abandoned
	}
}

// sweepRetry is how long the sweeper rests after an error.
const sweepRetry = 100 * time.Millisecond

func (s *sweeper) init(c clock.Clock) { s.wake, s.ended = c.NewEvent(), c.NewEvent() }

// begin waits until no sweep runs, and begins one.
func (s *sweeper) begin(ctx context.Context, c clock.Clock) error {
	for {
		s.sweeping.Lock()
		over := s.sweeping.takeLocked(c)
		s.sweeping.Unlock()
		if over == nil {
			return nil
		}
		if err := waitFor(ctx, over); err != nil {
			return err
		}
	}
}

func (s *sweeper) end() {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.sweeping.endLocked()
}

// Wake tells the sweeper that there is work.
func (c *Catalog) Wake() { c.sweeper.wake.Set() }

// PauseSweeping stops the sweeper, if need be in the middle of a structure, so that the
// catalog can be walked. resume starts it again; it may not be called twice.
func (c *Catalog) PauseSweeping() (resume func()) {
	if !c.stopSweeper() {
		return func() {}
	}
	return c.startSweeper
}

func (c *Catalog) startSweeper() {
	s := &c.sweeper
	c.m.Clock().Lock(&s.run)
	defer s.run.Unlock()
	if s.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.stopping = c.m.Clock().NewEvent()
	c.m.Clock().Go(func() {
		s.until(ctx, c.tidy)
		s.ended.Set()
	})
	c.Wake()
}

// until calls tidy whenever it is woken, until ctx is done. After an error it pauses before it
// can be woken again, because a failed attempt may itself wake it.
func (s *sweeper) until(ctx context.Context, tidy func(context.Context) error) {
	for {
		err := tidy(ctx)
		if err != nil && !errors.Is(err, txn.ErrClosed) && !errors.Is(err, txn.ErrEvicted) {
			s.stopping.WaitFor(sweepRetry)
		} else {
			s.wake.Wait()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// tidy ends orphaned and abandoned alterations, and frees what was dropped.
func (c *Catalog) tidy(ctx context.Context) error {
	defer c.m.Frees(false) // also if it fails, and nothing more is freed for a while
	if err := c.endAbandoned(ctx); err != nil {
		return err
	}
	if c.sweeper.livesChanged.Swap(false) {
		if err := c.endOrphans(ctx); err != nil {
			c.sweeper.livesChanged.Store(true)
			return err
		}
	}
	return c.Sweep(ctx)
}

// stopSweeper returns when the sweeper does not run, and reports whether it did.
func (c *Catalog) stopSweeper() bool {
	c.m.Clock().Lock(&c.sweeper.run)
	defer c.sweeper.run.Unlock()
	return c.sweeper.stopLocked()
}

func (s *sweeper) stopLocked() bool {
	if s.stop == nil {
		return false
	}
	s.stop()
	s.wake.Set()
	s.stopping.Set()
	s.ended.Wait()
	s.stop = nil
	return true
}

// closeSweeper stops the sweeper for good.
func (c *Catalog) closeSweeper() {
	c.m.Clock().Lock(&c.sweeper.run)
	defer c.sweeper.run.Unlock()
	c.sweeper.stopLocked()
	c.sweeper.closed = true
}
