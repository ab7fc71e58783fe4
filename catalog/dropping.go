package catalog

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
)

// Drop puts storage on the list of what is to be freed once the transaction
// has committed.
func (c *Catalog) Drop(t *txn.Tx, s []Storage) error {
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
	id := binary.BigEndian.AppendUint64([]byte{nameDropped}, c.m.Clock().Uint64())
	t.OnEnd(c.Wake)
	return c.insert(t, id, p)
}

// Sweep frees the memory of everything that is on the list, in bounded
// transactions. Stopped at any point, by an error or a crash, it is resumed by
// the next call. One sweep runs at a time.
func (c *Catalog) Sweep(ctx context.Context) error {
	select {
	case c.sweeper.turn <- struct{}{}:
		defer func() { <-c.sweeper.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		var key []byte
		var entry region.Ptr
		var storage []Storage
		err := c.m.Run(ctx, func(t *txn.Tx) error {
			key = nil
			lo, hi := ofKind(nameDropped)
			cur := c.names.Scan(t, lo, hi, false)
			k, p, ok, err := cur.Next()
			if err != nil || !ok {
				return err
			}
			b, err := get(t, p)
			if err != nil {
				return err
			}
			key, entry = append([]byte(nil), k...), p
			storage, err = decodeStorage(b)
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
		if ok, err := c.names.Delete(t, key); err != nil || !ok {
			return err
		}
		return t.Free(entry)
	})
}

// recover undoes the alterations that were under way when the instance
// stopped: what they were building is dropped, and the tables are released.
func (c *Catalog) recover(ctx context.Context) error {
	var stuck []*Table
	err := c.m.Run(ctx, func(t *txn.Tx) error {
		stuck = nil
		lo, hi := ofKind(nameTable)
		keys, heads, err := c.list(t, lo, hi)
		if err != nil {
			return err
		}
		for i, head := range heads {
			b, err := t.Read(head)
			if err != nil {
				return err
			}
			if binary.LittleEndian.Uint64(b[16:]) == 0 {
				continue
			}
			tbl, err := c.load(t, string(keys[i]), head)
			if err != nil {
				return err
			}
			stuck = append(stuck, tbl)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, tbl := range stuck {
		if err := c.EndAlteration(ctx, tbl.DB, tbl.Name, tbl.Alteration.Owner); err != nil {
			return err
		}
	}
	return nil
}

// sweeper runs Sweep in the background whenever something was dropped.
type sweeper struct {
	wake chan struct{}
	turn chan struct{} // held by the sweep that runs
	done sync.WaitGroup

	mu struct {
		sync.Mutex
		stop   context.CancelFunc // nil: it does not run
		closed bool
	}
}

// sweepRetry is how long the sweeper rests after an error.
const sweepRetry = 100 * time.Millisecond

func (s *sweeper) init() { s.wake, s.turn = make(chan struct{}, 1), make(chan struct{}, 1) }

// Wake tells the sweeper that there is work.
func (c *Catalog) Wake() {
	select {
	case c.sweeper.wake <- struct{}{}:
	default:
	}
}

// PauseSweeping stops the sweeper, in the middle of a structure if need be, so that
// what is there can be walked. resume has it go on; it may not be called twice.
func (c *Catalog) PauseSweeping() (resume func()) {
	if !c.stopSweeper() {
		return func() {}
	}
	return c.startSweeper
}

func (c *Catalog) startSweeper() {
	c.sweeper.mu.Lock()
	defer c.sweeper.mu.Unlock()
	if c.sweeper.mu.closed {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	c.sweeper.mu.stop = stop
	c.sweeper.done.Go(func() { c.sweepUntil(ctx) })
	c.Wake()
}

// sweepUntil sweeps whenever it is woken, until ctx is done.
func (c *Catalog) sweepUntil(ctx context.Context) {
	for {
		err := c.Sweep(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, txn.ErrClosed) {
			timer := c.m.Clock().AfterFunc(sweepRetry, c.Wake)
			defer timer.Stop()
		}
		select {
		case <-c.sweeper.wake:
		case <-ctx.Done():
			return
		}
	}
}

// stopSweeper returns when the sweeper does not run, and reports whether it did.
func (c *Catalog) stopSweeper() bool {
	c.sweeper.mu.Lock()
	defer c.sweeper.mu.Unlock()
	if c.sweeper.mu.stop == nil {
		return false
	}
	c.sweeper.mu.stop()
	c.sweeper.done.Wait()
	c.sweeper.mu.stop = nil
	return true
}

// closeSweeper stops the sweeper for good.
func (c *Catalog) closeSweeper() {
	c.stopSweeper()
	c.sweeper.mu.Lock()
	c.sweeper.mu.closed = true
	c.sweeper.mu.Unlock()
}
