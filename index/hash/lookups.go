package hash

import "errors"

// Lookups has ConcurrentMin lookups under way or a multiple of it up to ConcurrentMax.
const (
	ConcurrentMin = groups
	ConcurrentMax = groups * groupKeys
)

// Lookups looks up keys that are asked for one by one, and has several of them under way:
// a key is answered while later ones are begun, as a thread of the paper's begins
// operations while others wait for their continuations (NSDI'14 section 3.2, Figure 6).
// They wait together, like those of LookupMany, whose keys must all be known at first.
// Of keys whose primaries are other machines the READs wait together, too, a quarter of
// those under way at a time. Lookups are used by one goroutine at a time.
type Lookups struct {
	tb    *Table
	visit func(i int, value []byte, ok bool)
	size  int // of a group
	// pipeline has what is under way; it is nil if that is nothing.
	pipeline *pipeline
	// keys are those of the groups under way, and n how many the next one has so far.
	keys [groups][groupKeys][]byte
	n    int
	// started counts the keys, and until is how many they are when the operation ends.
	started, until int
	visiting       bool
}

var errVisiting = errors.New("hash: visit uses the Lookups that call it")

// Lookups returns lookups of which concurrent are under way, from ConcurrentMin to
// ConcurrentMax. Of numbers that are no multiples the next one below counts, or the least.
//
// What answers a key is visit, which is told how many were begun before that one. It must
// not use the lookups. The value is valid until it returns, and is right for some moment
// since Start, as that of Table.Lookup is.
func (tb *Table) Lookups(concurrent int, visit func(i int, value []byte, ok bool)) *Lookups {
	return &Lookups{tb: tb, visit: visit, size: min(max(1, concurrent/groups), groupKeys)}
}

// Start begins the lookup of a key, which must not change until it is answered. When Start
// returns, all lookups are answered except the last concurrent-1. Call Finish when there is no
// key to look up: memory that lookups under way could reach is not reused before.
//
// If Start or Finish fails, none of the lookups under way is answered; then new ones can be
// started.
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

// Finish answers all keys that have been begun.
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

// turn has the next group enter with the keys that it has, and answers the one that entered
// first.
func (l *Lookups) turn() error {
	p, failed := l.pipeline, true
	keys := l.keys[p.turns%groups][:l.n]
	l.n, l.visiting = 0, true
	defer func() {
		if l.visiting = false; failed { // or visit has panicked
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
