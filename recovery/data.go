package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/region"
)

// A Pace is how hard data recovery works: how much one READ fetches, and within
// what time after one READ the next begins, at a random point (SOSP'15 section
// 5.4). An Interval of 0 does not wait.
type Pace struct {
	Bytes    int
	Interval time.Duration
}

// The paces of the paper: the slow one leaves the foreground work alone; the
// aggressive one is for regions of which one replica is left (section 6.4).
var (
	Slow       = Pace{Bytes: 8 << 10, Interval: 4 * time.Millisecond}
	Aggressive = Pace{Bytes: 32 << 10}
)

// againMax bounds how often data recovery reads a piece in which transactions
// never stop writing. A lock is held for the time of a commit.
const againMax = 10_000

// againDelay is the time between two of these reads.
const againDelay = 100 * time.Microsecond

// ErrNeverQuiet means that an object was locked or half-written each time that
// data recovery looked at it.
var ErrNeverQuiet = errors.New("recovery: an object is never quiet")

// A Refill brings one new backup up to date: it reads the region's objects at the
// primary and keeps what is newer than what the backup has. The backup takes part
// in transactions meanwhile, and its block table is the primary's already.
type Refill struct {
	Backup *region.Region
	// Read is a one-sided READ of the primary's replica.
	Read func(ctx context.Context, off uint64, dst []byte) error
	// Hold keeps the epoch open, so that no block changes its class, until
	// release is called.
	Hold  func() (release func())
	Clock clock.Clock
	Pace  Pace
	// IsSettled says that writes may have been left out at the backup, for want of
	// room: see region.Piece.
	IsSettled bool
	// Bytes counts what has been read, if it is not nil.
	Bytes func(n int)
}

// Run refills the backup. It ends early when ctx does, which is what another
// reconfiguration causes, when the primary cannot be read, or when there is no room
// (nvram.ErrNoSpace).
func (f *Refill) Run(ctx context.Context) error {
	buf := make([]byte, max(f.Pace.Bytes, region.MaxObject))
	for p := range f.Backup.Pieces(f.Pace.Bytes) {
		begin := f.Clock.Now()
		p.IsSettled = f.IsSettled
		err := f.Backup.MakeRoom(p)
		if err == nil {
			err = f.take(ctx, p, buf[:p.Bytes])
		}
		if err != nil {
			return fmt.Errorf("region %d, %d bytes at %#x: %w", f.Backup.ID(), p.Bytes, p.Offset, err)
		}
		if f.Bytes != nil {
			f.Bytes(p.Bytes)
		}
		f.pause(begin)
	}
	return nil
}

// take reads one piece until nobody writes to it meanwhile.
func (f *Refill) take(ctx context.Context, p region.Piece, raw []byte) error {
	for range againMax {
		if err := ctx.Err(); err != nil {
			return err
		}
		release := f.Hold()
		err := f.Read(ctx, p.Offset, raw)
		if err == nil { // what was under way when the next configuration began is not believed
			err = ctx.Err()
		}
		whole := err == nil && f.Backup.Take(p, raw)
		release()
		if err != nil || whole {
			return err
		}
		f.Clock.Sleep(againDelay)
	}
	return ErrNeverQuiet
}

// pause waits for a random part of the interval that began with the last READ.
func (f *Refill) pause(begin time.Time) {
	if f.Pace.Interval == 0 {
		return
	}
	part := time.Duration(f.Clock.Uint64() % uint64(f.Pace.Interval))
	if rest := part - f.Clock.Now().Sub(begin); rest > 0 {
		f.Clock.Sleep(rest)
	}
}
