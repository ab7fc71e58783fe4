//go:build invariants

package lockrank

import (
	"fmt"
	"sync"

	"github.com/farmsql/farmsql/internal/invariant"
)

// shards is the number of shards of held. Goroutines are spread over them by the address of their state, without
// the low bits, in which such addresses hardly differ.
const shards = 64

// held are the mutexes that each goroutine holds.
var held [shards]struct {
	sync.Mutex
	by   map[uintptr]*holdings
	free []*holdings
}

// holdings are the mutexes that one goroutine holds, in locking order.
type holdings []holding

type holding struct {
	mutex any
	rank  Rank
}

// places maps each rank to its place in the order.
var places = func() map[Rank]int {
	all := make(map[Rank]int, len(order))
	for i, r := range order {
		all[r] = i
	}
	return all
}()

// before reports whether a goroutine that holds a mutex of rank a may lock one of rank b.
func before(a, b Rank) bool {
	_, isGiving := b.(Giving) // a goroutine may lock several of rank Giving, in the order of their machines
	return places[a] < places[b] || (isGiving && a == b)
}

// check panics if the order forbids a goroutine to lock a mutex of this rank while it holds
// its mutexes.
func check(g uintptr, rank Rank) {
	s := &held[(g>>8)%shards]
	s.Lock()
	defer s.Unlock()
	if h := s.by[g]; h != nil {
		for _, x := range *h {
			if !before(x.rank, rank) {
				invariant.Violated("mutexes are locked in the order of their ranks", fmt.Sprintf("%T while %T is held", rank, x.rank), "the other way round")
			}
		}
	}
}

// hold notes that a goroutine has locked a mutex.
func hold(g uintptr, mutex any, rank Rank) {
	s := &held[(g>>8)%shards]
	s.Lock()
	defer s.Unlock()
	h := s.by[g]
	if h == nil {
		if s.by == nil {
			s.by = make(map[uintptr]*holdings)
		}
		if n := len(s.free); n > 0 {
			h, s.free = s.free[n-1], s.free[:n-1]
		} else {
			h = new(holdings)
		}
		s.by[g] = h
	}
	*h = append(*h, holding{mutex, rank})
}

// release notes that a goroutine has unlocked a mutex.
func release(g uintptr, mutex any) {
	s := &held[(g>>8)%shards]
	s.Lock()
	defer s.Unlock()
	h := s.by[g]
	if h == nil {
		return // Forget has dropped the record
	}
	for i := len(*h) - 1; i >= 0; i-- {
		if (*h)[i].mutex == mutex {
			copy((*h)[i:], (*h)[i+1:])
			*h = (*h)[:len(*h)-1]
			break
		}
	}
	if len(*h) == 0 {
		delete(s.by, g)
		s.free = append(s.free, h)
	}
}

// Forget drops the record of the mutexes that the calling goroutine holds. Call it when a
// simulated process has been killed: the goroutine ends, or does other work, and the mutexes
// stay locked.
func Forget() {
	s := &held[(goroutine()>>8)%shards]
	s.Lock()
	defer s.Unlock()
	delete(s.by, goroutine())
}
