package call

import "time"

// A watch is the function that is called for silent machines, and the time after which it is
// called.
type watch struct {
	patience time.Duration
	silent   func(Peer)
}

// Watch makes the endpoint report silent machines: it calls silent for each life that has sent
// nothing for patience while a call to it is pending, neither an answer nor "running". (A life sends
// "running" for as long as its handler runs.) It calls silent again after each further patience.
// Calls to AnyLife do not count, because there may be no life. silent must not wait.
func (e *Endpoint) Watch(patience time.Duration, silent func(Peer)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.watch = watch{patience, silent}
}

// Patience returns the patience passed to Watch, or 0.
func (e *Endpoint) Patience() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.watch.patience
}

// pauseMax returns the longest time before a call is sent again: retryMax, or less with Watch. It is short
// enough for "running", which answers repetitions, to come within Watch's patience.
func (e *Endpoint) pauseMax() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.mu.watch.patience; p > 0 {
		return min(retryMax, p/3)
	}
	return retryMax
}

// reportSilence calls Watch's function if the machine that a call waits for has been silent too long.
func (e *Endpoint) reportSilence(p *pending) {
	e.mu.Lock()
	now, w := e.clock.Now(), e.mu.watch
	isSilent := w.silent != nil && !p.done && p.to.Incarnation != AnyLife && now.Sub(p.heard) >= w.patience
	if isSilent {
		p.heard = now
	}
	e.mu.Unlock()
	if isSilent {
		w.silent(p.to)
	}
}
