//go:build invariants

package lockrank

import "sync"

// A Mutex is a sync.Mutex of rank R. Its zero value is unlocked.
type Mutex[R Rank] struct {
	mu sync.Mutex
	by uintptr // the goroutine that has locked it; another one may unlock it
}

// Lock locks m.
func (m *Mutex[R]) Lock() {
	var rank R
	g := goroutine()
	check(g, rank)
	m.mu.Lock()
	m.by = g
	hold(g, m, rank)
}

// TryLock locks m if it is unlocked, and reports whether it did. It does not wait, so it
// may be called in any order.
func (m *Mutex[R]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	var rank R
	m.by = goroutine()
	hold(m.by, m, rank)
	return true
}

// Unlock unlocks m.
func (m *Mutex[R]) Unlock() {
	release(m.by, m)
	m.by = 0
	m.mu.Unlock()
}

// An RWMutex is a sync.RWMutex of rank R. Its zero value is unlocked.
type RWMutex[R Rank] struct {
	mu sync.RWMutex
}

// Lock locks m for writing.
func (m *RWMutex[R]) Lock() {
	var rank R
	check(goroutine(), rank)
	m.mu.Lock()
	hold(goroutine(), m, rank)
}

// Unlock ends Lock, on the same goroutine.
func (m *RWMutex[R]) Unlock() {
	release(goroutine(), m)
	m.mu.Unlock()
}

// RLock locks m for reading.
func (m *RWMutex[R]) RLock() {
	var rank R
	check(goroutine(), rank)
	m.mu.RLock()
	hold(goroutine(), m, rank)
}

// RUnlock ends RLock, on the same goroutine.
func (m *RWMutex[R]) RUnlock() {
	release(goroutine(), m)
	m.mu.RUnlock()
}
