package worker

// gatherFrom is how many goroutines must be waiting for operations of a worker before others gather
// their posts. With fewer, no other is likely to post, and giving way wakes a processor for nothing.
const gatherFrom = 2

// GatherLocked must be followed by unlocking the worker and then, in any case, by Await or
// AwaitWithin. If a flush costs a system call for each machine, and other goroutines wait for
// operations of this worker, too, GatherLocked leaves the flush to Await. Await first lets
// other goroutines run: they add their posts to the batch, and do not flush either
// (endBatchLocked). So all of them share the system calls.
//
// No operation waits for another because of that: before it flushes, Await only yields.
func (w *Worker) GatherLocked() {
	if w.m.gathers && w.isUnflushed && w.waiting.Load() >= gatherFrom {
		w.gathering.Store(true)
	}
}

// endBatchLocked sends what was posted, unless a goroutine gathers posts: then that sends it.
func (w *Worker) endBatchLocked() {
	if !w.gathering.Load() {
		w.flushLocked()
	}
}

// beginAwait counts a goroutine that begins to wait. If posts are being gathered, maybe by this
// goroutine, it gives way once and then sends them.
func (w *Worker) beginAwait() {
	if !w.m.gathers {
		return
	}
	w.waiting.Add(1)
	if w.gathering.Load() {
		w.m.cfg.Clock.Yield()
	}
	if w.gathering.Load() {
		w.Lock()
		w.flushLocked()
		w.Unlock()
	}
}

// endAwait counts a goroutine that waits no longer.
func (w *Worker) endAwait() {
	if w.m.gathers {
		w.waiting.Add(-1)
	}
}
