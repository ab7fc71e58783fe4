package hash

import (
	"bytes"

	"github.com/farmsql/farmsql/internal/clock"
	"github.com/farmsql/farmsql/internal/lockrank"
	"github.com/farmsql/farmsql/internal/prefetch"
)

// combining combines operations on the same key that arrive at the same time. A handle has
// two: one for operations that run here, from callers on this and on other machines, and one
// for operations that it ships. So an operation that was shipped here never waits for an
// operation that this machine ships, even if two machines disagree on which is the key's primary.
//
// Keys are divided into parts by their hash. Each part has a lock on cache lines of its own:
// operations on different keys seldom want the same lock. There are only as many parts as the
// processors need, because each part that is used takes a line of the cache.
type combining []combiningPart

// The number of parts is a power of two. It is at least combiningPartsMin, so that lists are short also
// where many operations wait for other machines.
const (
	combiningPartsMin = 8
	combiningPartsMax = 64
)

// A combiningPart holds the requests that are changing their keys, in lists by the keys' hash. It
// fills one cache line. A request that is alone in its list touches no other line.
type combiningPart struct {
	mu       lockrank.Mutex[lockrank.Leaf]
	changing [combiningLists]*request
	_        prefetch.Pad
}

const combiningLists = prefetch.LineBytes/8 - 1

// A request is one caller's operations on a key. Only one request at a time changes a key. It is in a list of its part,
// and later requests for the key are in its field waiting. When it is done, the first of these takes its place in the
// list, and the others wait for the first.
type request struct {
	key []byte
	ops []single
	one [1]single // the memory of ops if there is one
	err error

	list    uint8    // the number of its list in its part
	next    *request // in its list
	waiting []*request
	// turn is set once: either the request is settled, or its caller must now do it,
	// together with all requests that have arrived since.
	turn    clock.Event
	settled bool
}

// newRequest returns a request of one operation.
func newRequest(key []byte, op single) *request {
	r := &request{key: key, one: [1]single{op}}
	r.ops = r.one[:]
	return r
}

// newCombining returns parts for the given number of processors.
func newCombining(processors int) combining {
	n := combiningPartsMin
	for n < processors && n < combiningPartsMax {
		n *= 2
	}
	return make(combining, n)
}

// place returns the part of r's key, and sets r.list.
func (c combining) place(r *request) *combiningPart {
	h := sum(0, r.key)
	r.list = uint8(((h >> 32) * combiningLists) >> 32) // by the upper half of the hash, the part by the lower
	return &c[h&uint64(len(c)-1)]
}

// combine does the operations of r: either it calls do with them, together with the operations of
// all waiting requests on the same key, or it waits until another caller has done that. alone says
// that all operations passed to do are r's.
func (tb *Table) combine(parts combining, r *request, do func(ops []single, alone bool) error) error {
	c := parts.place(r)
	if c.join(tb.m.Clock(), r) {
		r.turn.Wait()
		if r.settled {
			return r.err
		}
	}
	if others := c.take(r); len(others) > 0 {
		tb.stats.combined.Add(uint64(len(others)))
		r.doWith(others, do)
	} else {
		r.err = do(r.ops, true)
	}
	c.leave(r)
	return r.err
}

// doWith calls do with the operations of r and of others, and settles the others.
func (r *request) doWith(others []*request, do func(ops []single, alone bool) error) {
	all := append([]single{}, r.ops...)
	for _, other := range others {
		all = append(all, other.ops...)
	}
	r.err = do(all, false)
	all = all[copy(r.ops, all):] // each request takes back its operations, which hold the results
	for _, other := range others {
		all = all[copy(other.ops, all):]
		other.err, other.settled = r.err, true
		other.turn.Set()
	}
}

// join makes r wait, and returns true, if another request is changing the key. Otherwise it returns
// false: it is r's turn.
func (c *combiningPart) join(cl clock.Clock, r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &c.changing[r.list]
	for other := *list; other != nil; other = other.next {
		if bytes.Equal(other.key, r.key) {
			r.turn = cl.NewEvent()
			other.waiting = append(other.waiting, r)
			return true
		}
	}
	r.next, *list = *list, r
	return false
}

// take removes and returns the requests that wait for r, whose turn it is. It returns none if r has not
// waited itself.
func (c *combiningPart) take(r *request) (others []*request) {
	if r.turn == nil {
		return nil // requests that have arrived since join get their turn after r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	others, r.waiting = r.waiting, nil
	return others
}

// leave takes r, which is done, from its list. It gives the turn to the first request that waits for r,
// and makes the others wait for that one.
func (c *combiningPart) leave(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := &c.changing[r.list]
	for *at != r {
		at = &(*at).next
	}
	if len(r.waiting) == 0 {
		*at = r.next
		return
	}
	first := r.waiting[0]
	first.waiting, first.next = r.waiting[1:], r.next
	*at = first
	first.turn.Set()
}
