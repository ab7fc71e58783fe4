package transactions

import "github.com/farmsql/farmsql/internal/invariant"

// A state is how far a run has come. A run goes through all of them in this order, one
// after the other, unless the next configuration ends it: then it stays where it is.
//
//	frozen   -> drained   Drain has processed all logs. What this machine has seen is fixed
//	                      from here on: a record that was found later would be missing from
//	                      a vote that has been cast. So only now are others answered, and
//	                      connected to, which empties logs.
//	drained  -> active    What recovering transactions write is locked at this machine's
//	                      primaries, by the evidence of all replicas: nobody may read or
//	                      lock it before they are decided.
//	active   -> voted     All backups have noted the evidence that the votes rest on
//	                      (REPLICATE-TX-STATE): with the only witness gone, the next recovery
//	                      would decide otherwise. A vote that is asked for is final, too, so
//	                      REQUEST-VOTE is not answered earlier.
//	voted    -> decided   The votes of all members are in, what follows from them is carried
//	                      out at all replicas, and then truncated there: a replica that
//	                      truncates before another knows the outcome has forgotten its vote.
//	decided  -> settled   All members have decided theirs (DECIDED). Only now does evidence go,
//	                      and may connections be made whose logs were still evidence: until
//	                      then a coordinator may ask for a vote.
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
