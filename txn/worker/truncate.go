package worker

import (
	"slices"

	"github.com/farmsql/farmsql/internal/invariant"
	"github.com/farmsql/farmsql/internal/sabotage"
	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/ring"
	"github.com/farmsql/farmsql/txn/outcome"
	"github.com/farmsql/farmsql/txn/record"
	"github.com/farmsql/farmsql/txn/step"
)

// Truncation is lazy (SOSP'15 section 4): the next record to a participant names the transactions
// that have finished. If no record goes there for truncateDelay, or when a log is full, the worker
// writes an explicit TRUNCATE record.

// takeTruncatedLocked returns the transactions that the next record to p must name as truncated. It
// leaves out two kinds: transactions below the low bound, since the record carries the bound, and
// transactions far above it, for which ledgers have no place yet. It releases the log space
// reserved for naming the returned transactions; the record may reserve 8 bytes for each.
func (w *Worker) takeTruncatedLocked(p *peer) []uint64 {
	w.named = w.named[:0]
	w.bringNearLocked(p)
	rest := p.truncated[:0]
	for _, seq := range p.truncated {
		switch {
		case seq < w.window.Low: // the record names it by its low bound
		case seq-w.window.Low >= record.LedgerNames && !sabotage.FarTruncations.Skipped():
			p.far = append(p.far, seq)
			continue
		case len(w.named) < record.TruncatedMax:
			w.named = append(w.named, seq)
		default:
			rest = append(rest, seq)
			continue
		}
		p.log.Release(TruncateReserve) // the record names the transaction, or says it by its low bound
	}
	p.truncated = rest
	return w.named
}

// bringNearLocked checks again the transactions that were too far above the low bound. It does so
// only once the bound has moved, not for each record, since there may be many.
func (w *Worker) bringNearLocked(p *peer) {
	if p.farFrom != w.window.Low {
		p.truncated = append(p.truncated, p.far...)
		p.far, p.farFrom = p.far[:0], w.window.Low
	}
}

// flushTruncationsLocked tells every peer of its truncations now.
func (w *Worker) flushTruncationsLocked() {
	if w.frozen {
		return
	}
	for _, p := range w.peers {
		if p == nil || p.broken != nil || p.log == nil {
			continue
		}
		w.bringNearLocked(p)
		if len(p.truncated) > 0 || p.unrung > 0 {
			w.ringLocked(p)
		}
		for w.hasNearLocked(p) && p.broken == nil {
			w.writeTruncateLocked(p)
		}
		if len(p.truncated)+len(p.far) > 0 {
			w.startTimerLocked()
		}
	}
}

// hasNearLocked reports whether a record to p could name or imply a truncation now.
func (w *Worker) hasNearLocked(p *peer) bool {
	return slices.ContainsFunc(p.truncated, func(seq uint64) bool { return seq < w.window.Low+record.LedgerNames })
}

func (w *Worker) writeTruncateLocked(p *peer) {
	named := w.takeTruncatedLocked(p)
	n := record.HeaderBytes(len(named), 0)
	if !p.log.Reserve(ring.Space(n)) {
		invariant.Violated("room for a TRUNCATE record", ring.Space(n), p.log.Available())
	}
	id := record.ID{Config: w.config, Machine: w.m.cfg.ID, Worker: w.ID}
	record.AppendHeader(p.log.Stage(n)[:0], record.Truncate, id, w.window.Low, named, nil, 0)
	w.stats.records.Add(1)
	if _, _, err := p.log.PostReserved(rdma.Unsignalled); err != nil {
		w.fenceLocked(p, err)
	}
	w.m.Replicas.Reached(step.Truncate)
}

// startTimerLocked starts a timer that flushes the truncations after truncateDelay.
func (w *Worker) startTimerLocked() {
	if w.timer == nil && !w.stopped && !sabotage.TruncateTimer.Skipped() {
		w.timer = w.m.cfg.Clock.AfterFunc(truncateDelay, w.onTimer)
	}
}

func (w *Worker) onTimer() {
	w.Lock()
	w.timer = nil
	if !w.stopped {
		w.flushTruncationsLocked()
		w.RingPeersLocked()
	}
	w.Unlock()
}

// stop ends the worker: it does not step any more, and all waits for it fail.
func (w *Worker) stop() {
	w.Lock()
	defer w.Unlock()
	w.stopped = true
	w.failAllLocked(outcome.ErrClosed)
	if w.timer != nil {
		w.timer.Stop()
	}
	for _, p := range w.peers {
		if p != nil {
			w.failWaitsLocked(p.id, outcome.ErrClosed)
		}
	}
}

// A quiescence is a point in a worker's sequence of commits. It is reached once all commits before the
// point are truncated everywhere.
type quiescence struct {
	next     uint64
	releases uint64
	// ends are the ends of the peers' logs, by machine, at the moment when all transactions before
	// next had been truncated here; nil until then.
	ends []logEnd
}

// A logEnd is the position at which a log ended. It means nothing once the log has been replaced.
type logEnd struct {
	log  *ring.Sender
	tail uint64
}

// quiescence returns the current point in the worker's sequence: it is reached once the commits that
// have begun so far are truncated everywhere.
func (w *Worker) quiescence() *quiescence {
	w.Lock()
	defer w.Unlock()
	return &quiescence{next: w.window.Next, releases: w.releases}
}

// reached drives truncation forward and reports whether the point has been reached.
func (q *quiescence) reached(w *Worker) bool {
	w.Lock()
	defer w.Unlock()
	defer w.RingPeersLocked()
	w.flushTruncationsLocked()
	if w.frozen || w.m.recovery.IsGoing() {
		return false
	}
	if w.window.Low < q.next || w.released < q.releases {
		return false
	}
	if q.ends == nil { // the records up to here must be freed, but no records that are written from now on
		q.ends = make([]logEnd, len(w.peers))
		for i, p := range w.peers {
			if p != nil && p.log != nil {
				q.ends[i] = logEnd{p.log, p.log.Tail()}
			}
		}
	}
	done := true
	for i, end := range q.ends {
		p := w.peers[i]
		if p == nil || p.log == nil || p.log != end.log || p.broken != nil || p.log.Head() >= end.tail {
			continue
		}
		w.ringLocked(p)
		w.refreshLocked(p)
		done = done && p.log.Head() >= end.tail
	}
	return done
}

// refreshLocked reads from a peer's log how much has been freed: the peer reports it by itself only
// after half of the log.
func (w *Worker) refreshLocked(p *peer) {
	if p.broken != nil || p.refreshing {
		return
	}
	tag := w.ops.add(pendingOp{refresh: p})
	done, err := p.log.Refresh(tag)
	if done || err != nil {
		w.ops.drop(tag)
	} else {
		p.refreshing = true
	}
}
