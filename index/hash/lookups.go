package hash

import "errors"

// The number of lookups that Lookups has under way is a multiple of ConcurrentMin, up to
// ConcurrentMax.
const (
	ConcurrentMin = groups
	ConcurrentMax = groups * groupKeys
)

// Lookups looks up keys that become known one by one, several at a time: it begins later lookups
// before earlier ones are answered, so that their waiting for memory overlaps, as a thread in the
// paper begins operations while others wait for their continuations (NSDI'14 section 3.2, Figure 6).
// LookupMany does the same if all keys are known at the beginning. READs of other machines overlap,
// too: those of a quarter of the lookups under way at a time. Only one goroutine at a time may use a
// Lookups.
type Lookups struct {
	tb    *Table
	visit func(i int, value []byte, ok bool)
	size  int // how many lookups a group has
	// pipeline runs the lookups under way; nil if there are none.
	pipeline *pipeline
	// keys are the keys of the groups under way. The next group has n keys so far.
	keys [groups][groupKeys][]byte
	n    int
	// started counts the keys whose lookups have begun. The operation ends when started is until.
	started, until int
	visiting       bool
}

var errVisiting = errors.New("hash: visit uses the Lookups that call it")

// Lookups returns a Lookups that has concurrent lookups under way, from ConcurrentMin to
// ConcurrentMax; concurrent is rounded down to a multiple of ConcurrentMin.
//
// Each key is answered by a call of visit, with the number of keys that were begun before it.
// visit must not use the Lookups. The value is valid until visit returns, and is right for
// some moment since Start, like that of Table.Lookup.
func (tb *Table) Lookups(concurrent int, visit func(i int, value []byte, ok bool)) *Lookups {
	return &Lookups{tb: tb, visit: visit, size: min(max(1, concurrent/groups), groupKeys)}
}

// Start begins the lookup of a key, whose bytes must not change until it is answered. When Start
// returns, all lookups are answered except the last concurrent-1. Call Finish when there are no
// keys to look up: until then, memory that lookups under way could reach is not reused.
//
// If Start or Finish fails, none of the lookups under way is answered any more; new ones can be
// started then.
func (l *Lookups) Start(key []byte) error {
	switch {
	case l.visiting:
		return errVisiting
	case l.pipeline == nil:
		if err := l.begin(); err != nil {
			return err
		}
	}
	l.keys[l.pipeline.turns%groups][l.n] = key
	l.started++
	if l.n++; l.n < l.size {
		return nil
	}
	if l.started >= l.until {
		return l.Finish()
	}
	return l.turn()
}

// Finish answers all keys whose lookups have begun.
func (l *Lookups) Finish() error {
	switch {
	case l.visiting:
		return errVisiting
	case l.pipeline == nil:
		return nil
	}
	for range groups {
		if err := l.turn(); err != nil {
			return err
		}
	}
	l.end()
	return nil
}

// begin begins an operation.
func (l *Lookups) begin() error {
	o, err := l.tb.open()
	if err != nil {
		return err
	}
	l.pipeline = o.pipelines.Get().(*pipeline)
	l.pipeline.serve(l.tb, o, l.started, l.visit)
	l.pipeline.begin()
	l.until = l.started + keysOfOperation
	return nil
}

// turn starts the next group with the keys that it has, and answers the oldest group.
func (l *Lookups) turn() error {
	p, failed := l.pipeline, true
	keys := l.keys[p.turns%groups][:l.n]
	l.n, l.visiting = 0, true
	defer func() {
		l.visiting = false
		if failed { // visit may have failed or panicked
			l.end()
		}
	}()
	err := p.turn(keys)
	if err == nil {
		err = p.readElsewhere()
	}
	failed = err != nil
	return err
}

// end ends the operation.
func (l *Lookups) end() {
	p := l.pipeline
	p.end()
	p.visit = nil
	p.o.pipelines.Put(p)
	l.pipeline, l.n = nil, 0
	clear(l.keys[:])
}
