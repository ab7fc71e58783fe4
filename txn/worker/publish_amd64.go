//go:build !race

package worker

// publish stores v in a word that only the caller writes, and that others load with sync/atomic.
// They see all that the caller has done before; its loads are done, too. On this processor every
// store is one like that. atomic.StoreUint64 is more: an XCHG, after which no load may begin before
// the store is visible, and which takes 5 ns for that. Nobody waits for this store.
func publish(word *uint64, v uint64) { *word = v }
