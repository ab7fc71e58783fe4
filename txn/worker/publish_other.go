//go:build !amd64 || race

package worker

import "sync/atomic"

// publish stores v in a word that only the caller writes, and that others load with sync/atomic.
func publish(word *uint64, v uint64) { atomic.StoreUint64(word, v) }
