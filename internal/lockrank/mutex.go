//go:build !invariants

package lockrank

import "sync"

// A Mutex is a sync.Mutex of rank R. Its zero value is unlocked.
type Mutex[R Rank] struct{ sync.Mutex }

// An RWMutex is a sync.RWMutex of rank R. Its zero value is unlocked.
type RWMutex[R Rank] struct{ sync.RWMutex }

// Forget does nothing in this build. With checks, it drops the record of the mutexes that the
// calling goroutine holds. Callers use it when a simulated process has been killed, whose mutexes
// stay locked.
func Forget() {}
