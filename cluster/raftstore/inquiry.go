package raftstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/farmsql/farmsql/rdma"
)

// hedgeTicks is how long a client waits for a machine of the store before it asks the next one
// as well: 100 ms. A machine that works answers sooner: an answer takes five or six round
// trips, three of them for a new connection with TLS, and the syncs of a majority's disks.
// Where sites are further apart than 15 ms, a second machine is asked in vain, which costs a
// copy in the log. And 100 ms are little beside the lease of 800 ms that has run out when a
// configuration manager asks.
const hedgeTicks = 2

// An inquiry is one call of a client, of which several machines may get a copy.
type inquiry struct {
	client  *Client
	call    call
	reasons map[rdma.MachineID]error // why each machine has not carried out the call
	isLost  bool                     // a machine that has not answered may have carried out its copy
}

// A reply is the outcome of one copy of the call.
type reply struct {
	machine rdma.MachineID
	result  result
	isSent  bool            // the machine may have got the call
	isLost  bool            // the machine may have carried out a copy whose answer was lost
	suspect *rdma.MachineID // the suspect that the call told of
	err     error
}

// round asks each machine at most once, until the call is carried out, and returns nil if it
// was not. If a machine says "moved on" and no other says better, that is the result. It asks the next machine when one has failed, and also when nobody has answered for
// a while: a machine that is cut off would otherwise hold up the call for its share of the
// patience. round waits twice as long each time, because during an election all are silent, and
// each copy of a swap goes to all disks.
//
// When it returns, it waits for no copy any more, and has closed the connections to machines
// that have not answered.
func (q *inquiry) round(ctx context.Context) (last *result) {
	asking, cancel := context.WithCancel(ctx)
	left := q.client.order()
	replies := make(chan reply, len(left))
	var copies sync.WaitGroup
	defer copies.Wait()
	defer cancel()
	next, wait := time.NewTimer(0), q.hedge()
	defer next.Stop()
	for open := 0; open > 0 || len(left) > 0; {
		select {
		case <-next.C:
			m := left[0]
			left, open = left[1:], open+1
			copies.Go(func() { replies <- q.client.try(asking, m, q.call) })
			if len(left) > 0 {
				next.Reset(wait)
				wait *= 2
			}
		case r := <-replies:
			open--
			q.isLost = q.isLost || r.isLost
			switch {
			case r.err != nil || r.result.outcome == outcomeFailed:
				q.note(ctx, r)
			case r.result.outcome == outcomeMovedOn:
				// Another machine may have carried out its copy of the swap. It will say so,
				// unless it is silent: then nobody knows, and the caller should load the
				// configuration again before the machine's share of the patience ends. Asking
				// more machines would not help: they can only say the same.
				if last == nil && open > 0 {
					late := time.AfterFunc(q.client.cfg.linger, cancel)
					defer late.Stop()
				}
				last, left = &r.result, nil
			default:
				q.client.prefer(r.machine)
				if q.call.needsLeader() && r.result.outcome == outcomeDone { // a machine needs no leader to refuse a change, or to say that the configuration has moved
					q.client.trust(r.suspect)
				}
				return &r.result
			}
			if ctx.Err() != nil {
				left = nil
			}
			if len(left) > 0 {
				next.Reset(0)
			} else {
				next.Stop() // nobody is left to be asked
			}
		}
	}
	return last
}

// hedge returns how long to wait for an answer before a second machine is asked as well. A
// change of the founders waits: nobody is in a hurry, and a second copy may be refused because
// the first was carried out.
func (q *inquiry) hedge() time.Duration {
	if q.call.operation == operationChange {
		return q.client.cfg.Patience
	}
	return q.client.cfg.hedge
}

// note remembers why a machine has not done what was asked, and whether it may do so nevertheless.
func (q *inquiry) note(ctx context.Context, r reply) {
	if r.err == nil {
		r.err = fmt.Errorf("answers: %s", r.result.content)
	}
	q.isLost = q.isLost || (r.isSent && q.call.changes())
	if q.reasons[r.machine] == nil || ctx.Err() == nil { // a try that was cut short replaces no reason
		q.reasons[r.machine] = r.err
	}
}
