//go:build !invariants

package lockrank

import "sync"

// A Mutex is a sync.Mutex of rank R. Its zero value is unlocked.
type Mutex[R Rank] struct{ sync.Mutex }

// An RWMutex is a sync.RWMutex of rank R. Its zero value is unlocked.
type RWMutex[R Rank] struct{ sync.RWMutex }

// Forget says that the calling goroutine ends, or goes on to other work, and that the mutexes
// that it holds stay locked: a simulated process has been killed.
func Forget() {}
