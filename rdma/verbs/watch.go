package verbs

import (
	"runtime"
	"time"
)

const (
	// quietTime is how long nothing must have come until watch asks for an event and sleeps.
	quietTime = 20 * time.Microsecond
	// glanceTime is how long watch leaves a queue alone that its worker polls by itself.
	glanceTime = 100 * time.Microsecond
)

// watch takes the completions that the worker does not poll for, and rings the bell, until the
// queue is closed. It also supplies the card with receives, and with requests that wait for
// room.
//
// An event for each completion would cost an interrupt and a wake-up of this goroutine. So
// watch asks for an event only when no completion has come for a while. Then it looks once
// more, since a completion that came before it asked causes no event, and sleeps. After the
// event it takes completions without asking again, until none has come for quietTime.
func (q *Queue) watch() {
	defer close(q.watched)
	q.watchUntilClosed()
	<-q.torn
	q.kept = q.closeLane()
}

// watchUntilClosed is watch's loop. After an error it breaks all connections, and only waits for the close.
func (q *Queue) watchUntilClosed() {
	for {
		q.counts.Polls.Add(1)
		err := q.lane.arm()
		if err == nil && q.take() == 0 {
			if err = q.lane.wait(); err == nil {
				q.counts.Wakes.Add(1)
			}
		}
		if err != nil {
			if !q.isClosed() {
				q.breakAll(err)
			}
			<-q.closed
			return
		}
		q.takeUntilQuiet()
	}
}

// takeUntilQuiet takes completions until none has come for quietTime.
func (q *Queue) takeUntilQuiet() {
	polls := q.pollsSoFar()
	for last := time.Now(); time.Since(last) < quietTime; {
		if q.take() > 0 {
			last = time.Now()
		}
		if now := q.pollsSoFar(); now != polls {
			polls = now
			time.Sleep(glanceTime)
			last = time.Now()
			continue
		}
		runtime.Gosched()
	}
}

// take takes completions and rings the bell for them. It returns how many have come.
func (q *Queue) take() (n uint64) {
	q.mu.Lock()
	before := q.mu.progress
	isNews := q.exchangeLocked()
	n = q.mu.progress - before
	q.mu.Unlock()
	if isNews {
		q.bell.Ring()
	}
	return n
}

func (q *Queue) pollsSoFar() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.polls
}

func (q *Queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.closed
}
