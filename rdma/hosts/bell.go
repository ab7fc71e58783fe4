package hosts

// A Bell calls a worker's bell after it has rung. One call may stand for several rings. The
// calls run on a goroutine of the Bell: they may wait for room in a queue, and the goroutines
// that ring are the ones that make that room.
type Bell struct {
	call   func()
	rung   chan struct{} // holds one ring for which call has not been called
	closed <-chan struct{}
}

// NewBell returns a Bell that calls call until closed is closed. If call is nil, rings have no
// effect.
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
		case <-b.closed: // the bell has rung, too, but must not call any more
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
	default: // a ring is waiting already
	}
}
