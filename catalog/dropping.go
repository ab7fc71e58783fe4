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
	"github.com/farmsql/farmsql/txn/outcome"
)

// Drop lists storage for the sweeper to free once the transaction has committed.
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
		c.m.Frees(true) // tidy ends this when it has freed everything
		c.Wake()
	})
	return c.insert(t, id, p)
}

// Sweep frees the listed storage that this machine must free (see Lives), in bounded
// transactions. If an error or a crash stops it, the next call resumes it. Only one sweep runs
// at a time: other calls wait.
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

// nextDropped returns the first entry of the list that this machine must free. key is nil if
// there is none.
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

// destroy frees one structure, with its rows if it owns any.
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

// finishDrop removes the entry of a dropping, unless another machine already has.
func (c *Catalog) finishDrop(ctx context.Context, key []byte, entry region.Ptr) error {
	return c.m.Run(ctx, func(t *txn.Tx) error {
		t.ToFree()
		if ok, err := c.names.Delete(t, key); err != nil || !ok {
			return err
		}
		return t.Free(entry)
	})
}

// A sweeper frees dropped storage in the background, and ends orphaned and abandoned
// alterations.
type sweeper struct {
	// livesChanged is set when lives may have ended, and so may have left orphaned alterations.
	livesChanged atomic.Bool
	wake         clock.Event
	sweeping     struct {
		lockrank.Mutex[lockrank.Leaf]
		turn
	}

	// run is held while the sweeper is being started or stopped.
	run      lockrank.Mutex[lockrank.Leaf]
	stop     context.CancelFunc // nil if the sweeper's goroutine does not run
	stopping clock.Event        // set by stopLocked, to end a pause of the goroutine
	ended    clock.Event        // set by the goroutine when it ends
	closed   bool

	abandoned struct {
		lockrank.Mutex[lockrank.Leaf]
		list []abandoned
	}
}

// sweepRetry is the pause of the sweeper after an error.
const sweepRetry = 100 * time.Millisecond

func (s *sweeper) init(c clock.Clock) { s.wake, s.ended = c.NewEvent(), c.NewEvent() }

// begin waits until no sweep runs, and begins a sweep.
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

// PauseSweeping stops the sweeper, if need be in the middle of a structure, so that a caller can
// walk the catalog. resume starts the sweeper again; it must not be called twice.
func (c *Catalog) PauseSweeping() (resume func()) {
	if !c.stopSweeper() {
		return func() {}
	}
	return c.startSweeper
}

// startSweeper starts the sweeper, unless it is already closed, and makes it look for droppings at
// once.
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
		s.loop(ctx, c.tidy)
		s.ended.Set()
	})
	c.Wake()
}

// loop calls tidy, and again whenever the sweeper is woken, until ctx is done. After an error it
// pauses and then tries again, whether woken or not, because a failed attempt may itself wake it.
func (s *sweeper) loop(ctx context.Context, tidy func(context.Context) error) {
	for {
		err := tidy(ctx)
		if err != nil && !errors.Is(err, outcome.ErrClosed) && !errors.Is(err, outcome.ErrEvicted) {
			s.stopping.WaitFor(sweepRetry)
		} else {
			s.wake.Wait()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// tidy ends orphaned and abandoned alterations, and frees dropped storage.
func (c *Catalog) tidy(ctx context.Context) error {
	defer c.m.Frees(false) // after an error, too: the sweeper then pauses
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

// stopSweeper stops the sweeper, waits until it has stopped, and reports whether it was running.
func (c *Catalog) stopSweeper() bool {
	c.m.Clock().Lock(&c.sweeper.run)
	defer c.sweeper.run.Unlock()
	return c.sweeper.stopLocked()
}

// stopLocked stops the sweeper and waits until it has ended. It returns false if the sweeper was
// not running.
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
