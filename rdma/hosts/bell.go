package hosts

// A Bell calls a worker's bell when it has rung. It has a goroutine of its own, because the function may wait for room in
// a queue, which comes with what the goroutines bring that ring. It may stand for several rings that came before it was called.
type Bell struct {
	call   func()
	rung   chan struct{} // holds one ring for which call has not been called
	closed <-chan struct{}
}

// NewBell returns a bell that calls call until closed is closed. With nil, nobody hears it.
func NewBell(call func(), closed <-chan struct{}) *Bell {
	b := &Bell{call: call, rung: make(chan struct{}, 1), closed: closed}
	if call != nil {
		go b.run()
	}
	return b
}

func (b *Bell) run() {
	for {
		select {
		case <-b.rung:
		case <-b.closed:
			return
		}
		select {
		case <-b.closed: // both had come
			return
		default:
			b.call()
		}
	}
}

// Ring rings. It never waits.
func (b *Bell) Ring() {
	select {
	case b.rung <- struct{}{}:
	default: // it has rung, and the function has not been called since
	}
}
