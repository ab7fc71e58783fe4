package call

import "time"

// A watch has the function that is called for silent machines, and the time after which it is.
type watch struct {
	patience time.Duration
	silent   func(Peer)
}

// Watch calls silent for each life of a machine that has sent nothing for patience while a
// call waits for it: neither an answer, nor a sign that the handler runs, which may take any
// time. It calls silent again after each further patience. Calls of AnyLife do not count,
// because there may be no life. silent must not wait.
func (e *Endpoint) Watch(patience time.Duration, silent func(Peer)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.watch = watch{patience, silent}
}

// Patience is what Watch was given, or 0.
func (e *Endpoint) Patience() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.watch.patience
}

// retryMax is how long a call waits before it is sent again: so that signs of life, which
// answer repetitions, come in time.
func (e *Endpoint) retryMax() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.mu.watch.patience; p > 0 {
		return min(retryMax, p/3)
	}
	return retryMax
}

// look tells of a call's silence.
func (e *Endpoint) look(p *pending) {
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
