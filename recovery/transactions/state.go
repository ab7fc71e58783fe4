package transactions

import "github.com/farmsql/farmsql/internal/invariant"

// A state is how far a run has come. A run goes through all of them in this order, one
// after the other, unless the next configuration ends it: then it stays where it is.
//
//	frozen   -> drained   Drain has processed all logs. The evidence of this machine is fixed
//	                      from here on: a record found later would be missing from a vote that
//	                      has been cast. Only now does the machine answer the others, and
//	                      connect to them, which empties logs.
//	drained  -> active    This machine's primaries have locked the objects that recovering
//	                      transactions write, by the evidence of all replicas: no other
//	                      transaction may read or lock them before they are decided.
//	active   -> voted     All backups have noted the evidence that the votes rest on
//	                      (REPLICATE-TX-STATE): otherwise, if the only replica with that
//	                      evidence failed, the next recovery would decide differently. The
//	                      answer to REQUEST-VOTE is final, too, so it is not given earlier.
//	voted    -> decided   All members have voted. The decisions have been carried out at all
//	                      replicas, and only then truncated there: a replica that truncated
//	                      before another knew the outcome would have forgotten its vote.
//	decided  -> settled   All members have decided theirs (DECIDED). Until now a coordinator
//	                      could ask for a vote. Only from here on may evidence be freed, and
//	                      connections be made that replace logs with evidence.
type state uint8

const (
	frozen state = iota
	drained
	active
	voted
	decided
	settled
)

var stateNames = [...]string{"frozen", "drained", "active", "voted", "decided", "settled"}

func (s state) String() string { return stateNames[s] }

// enter moves the run to the next state, s.
func (r *run) enter(s state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.enterLocked(s)
}

func (r *run) enterLocked(s state) {
	if invariant.Enabled && s != r.mu.state+1 {
		invariant.Violated("a recovery of transactions enters one state after the other", s, r.mu.state+1)
	}
	r.mu.state = s
}

// has reports whether the run has entered a state.
func (r *run) has(s state) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.state >= s
}
