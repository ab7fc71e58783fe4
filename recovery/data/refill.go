// Package data brings replicas up to date after a reconfiguration, at a pace that does not slow
// down transactions: a Refill copies from the primary what a backup lacks (SOSP'15 section
// 5.4), and Scan rebuilds the free lists of regions whose primary this machine has become
// (section 5.5). Both begin when all regions are active, and end early when the next
// configuration begins.
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

// A Pace is the speed of data recovery: one READ fetches Bytes, and the next READ begins at a random
// time within Interval after that (SOSP'15 section 5.4). With an Interval of 0, data recovery does
// not wait.
type Pace struct {
	Bytes    int
	Interval time.Duration
}

// The paces of the paper: Slow does not slow down transactions; Aggressive is for a region that has
// only one complete replica (section 6.4).
var (
	Slow       = Pace{Bytes: 8 << 10, Interval: 4 * time.Millisecond}
	Aggressive = Pace{Bytes: 32 << 10}
)

// againMax bounds how many times data recovery reads a piece again because transactions keep
// writing to it.
const againMax = 10_000

// againDelay is the time between two such reads: a commit holds its locks for less.
const againDelay = 100 * time.Microsecond

// ErrNeverQuiet means that an object was locked or half-written each time that data recovery read
// it.
var ErrNeverQuiet = errors.New("data: an object is never quiet")

// A Refill brings one backup up to date: it reads the stale chunks from the primary, and stores those
// objects that are newer than the backup's own. Meanwhile the backup takes part in transactions; its
// block table equals the primary's already. For a new backup every chunk is stale. A backup that was
// away first asks the primary which chunks have changed.
type Refill struct {
	Stale *region.Stale
	// Read is a one-sided READ of the primary's replica.
	Read func(ctx context.Context, off uint64, dst []byte) error
	// Marked asks the primary which chunks have changed in configuration `since` or later. It
	// returns false if the primary's marks do not reach back that far.
	Marked func(ctx context.Context, since uint32) (region.ChunkSet, bool, error)
	// Sums asks the primary for the checksums of n chunks from the given one on.
	Sums func(ctx context.Context, chunk, n int) ([]uint64, error)
	// Hold keeps the epoch open, so that no block changes its class, until
	// release is called.
	Hold  func() (release func())
	Clock clock.Clock
	Pace  Pace
	// Bytes, if not nil, is called with the number of bytes read.
	Bytes func(n int)
}

// sumsAtOnce is the number of chunks whose checksums one call asks of the primary: up to 16 MB of
// objects. The primary reads their headers in some milliseconds.
const sumsAtOnce = 256

var (
	errNotCompared = errors.New("data: the primary's block table has not come yet")
	errBadSums     = errors.New("data: checksums of other chunks than were asked for")
)

// Run refills the backup. It fails when ctx ends (at the next reconfiguration), when the primary
// cannot be read, or when there is no room (nvram.ErrNoSpace). Chunks that it has copied by then stay
// up to date: the next Run does not read them again.
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

// AskMarks asks the primary for its marks: the chunks that have changed since this machine was last a
// member. After one success, further calls do nothing. Run calls it, too, but a replica that has to
// wait for its turn to be filled should call it early: meanwhile commits write to this backup
// directly, and also mark the chunks at the primary, which this backup would then read needlessly.
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

// learn determines which chunks have changed since this machine was last a member: from the
// primary's marks, or, if the marks do not reach back so far, by comparing checksums.
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

// compare compares the checksums of the chunks that hold objects.
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

// compareSome compares the checksums of n chunks. Meanwhile it keeps the epoch open, so that no block
// changes its class.
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

// copy reserves room for one piece and reads it.
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

// take reads one piece, again and again until no transaction writes to it meanwhile.
func (f *Refill) take(ctx context.Context, p region.Piece, raw []byte) error {
	for range againMax {
		if err := ctx.Err(); err != nil {
			return err
		}
		release := f.Hold()
		err := f.Read(ctx, p.Offset, raw)
		if err == nil { // bytes read after the next configuration began are not used
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
