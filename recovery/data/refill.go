// Package data brings replicas up to date after a reconfiguration, at a pace that leaves
// the foreground work alone: a Refill copies what a backup lacks from the primary
// (SOSP'15 section 5.4), and Scan rebuilds the free lists of a region that this machine
// has become the primary of (section 5.5). Both begin when all regions are active, and
// end early when the next configuration begins.
package data

import (
	"cmp"
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
var ErrNeverQuiet = errors.New("data: an object is never quiet")

// A Refill brings one backup up to date: it reads at the primary what is stale, and keeps
// what is newer than what the backup has. The backup takes part in transactions
// meanwhile, and its block table is the primary's already. A new backup has nothing;
// one that was away learns first what has changed.
type Refill struct {
	Stale *region.Stale
	// Read is a one-sided READ of the primary's replica.
	Read func(ctx context.Context, off uint64, dst []byte) error
	// Marked asks the primary which chunks have changed in configuration since or later;
	// false if it cannot tell.
	Marked func(ctx context.Context, since uint32) (region.ChunkSet, bool, error)
	// Sums asks the primary for the checksums of n chunks from the given one on.
	Sums func(ctx context.Context, chunk, n int) ([]uint64, error)
	// Hold keeps the epoch open, so that no block changes its class, until
	// release is called.
	Hold  func() (release func())
	Clock clock.Clock
	Pace  Pace
	// Bytes counts what has been read, if it is not nil.
	Bytes func(n int)
}

// sumsAtOnce is of how many chunks the primary computes checksums for one call: of up to
// 16 MB, whose headers it looks at in some milliseconds.
const sumsAtOnce = 256

var (
	errNotCompared = errors.New("data: the primary's block table has not come yet")
	errBadSums     = errors.New("data: checksums of other chunks than were asked for")
)

// Run refills the backup. It ends early when ctx does, which is what another
// reconfiguration causes, when the primary cannot be read, or when there is no room
// (nvram.ErrNoSpace). What has been read is not stale any more, whatever comes.
func (f *Refill) Run(ctx context.Context) error {
	backup := f.Stale.Region()
	if f.Stale.Pending() {
		return fmt.Errorf("%w: region %d", errNotCompared, backup.ID())
	}
	if err := f.learn(ctx); err != nil {
		return fmt.Errorf("region %d: what has changed since configuration %d: %w", backup.ID(), f.Stale.Since(), err)
	}
	buf := make([]byte, max(f.Pace.Bytes, region.MaxObject))
	for chunk := range f.Stale.Chunks() {
		for p := range f.Stale.Pieces(chunk, f.Pace.Bytes) {
			begin := f.Clock.Now()
			if err := f.copy(ctx, p, buf[:p.Bytes]); err != nil {
				return fmt.Errorf("region %d, %d bytes at %#x: %w", backup.ID(), p.Bytes, p.Offset, err)
			}
			f.pause(begin)
		}
		f.Stale.Clear(chunk)
	}
	return nil
}

// AskMarks finds out which chunks have changed since the machine was a member, if the
// primary's marks tell. Once they do, it does nothing. Run asks, too; but what changes
// now commits bring to the backup, and it is marked all the same: a replica that is long
// in being filled, after others, would be told to read it.
func (f *Refill) AskMarks(ctx context.Context) error {
	since := f.Stale.Since()
	if since == 0 || f.Stale.Pending() {
		return nil
	}
	set, ok, err := f.Marked(ctx, since)
	if err = cmp.Or(err, ctx.Err()); err != nil || !ok {
		return err
	}
	if err = f.Stale.Add(set); err == nil {
		f.Stale.Learned()
	}
	return err
}

// learn finds out which chunks have changed since the machine was a member: from the
// marks of the primary, or, if these do not reach back so far, by comparing checksums.
func (f *Refill) learn(ctx context.Context) error {
	if err := f.AskMarks(ctx); err != nil || f.Stale.Since() == 0 {
		return err
	}
	err := f.compare(ctx)
	if err == nil {
		f.Stale.Learned()
	}
	return err
}

// compare compares checksums of the chunks that hold anything.
func (f *Refill) compare(ctx context.Context) error {
	chunks := f.Stale.Region().Chunks()
	for chunk := 0; chunk < chunks; chunk += sumsAtOnce {
		n := min(sumsAtOnce, chunks-chunk)
		if !f.Stale.InUse(chunk, n) {
			continue
		}
		begin := f.Clock.Now()
		if err := f.compareSome(ctx, chunk, n); err != nil {
			return err
		}
		f.pause(begin)
	}
	return nil
}

func (f *Refill) compareSome(ctx context.Context, chunk, n int) error {
	release := f.Hold()
	defer release()
	sums, err := f.Sums(ctx, chunk, n)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case len(sums) != n:
		return fmt.Errorf("%w: %d of %d", errBadSums, len(sums), n)
	}
	f.Stale.Differ(chunk, sums)
	return nil
}

// copy makes room for one piece and reads it.
func (f *Refill) copy(ctx context.Context, p region.Piece, raw []byte) error {
	backup := f.Stale.Region()
	if err := backup.MakeRoom(p); err != nil {
		return err
	}
	p.IsSettled = backup.Missed(p)
	if err := f.take(ctx, p, raw); err != nil {
		return err
	}
	if f.Bytes != nil {
		f.Bytes(p.Bytes)
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
		whole := err == nil && f.Stale.Region().Take(p, raw)
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
