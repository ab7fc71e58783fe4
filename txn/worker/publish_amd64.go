//go:build !race

package worker

// publish stores v in a word that only the caller writes, and that others load with sync/atomic. It
// is a release: a goroutine that loads v also sees all earlier stores of the caller, and the
// caller's earlier loads are done. On this processor every store is a release. atomic.StoreUint64
// does more: it is an XCHG, which takes 5 ns, because no later load may begin before the store is
// visible. That is not needed here.
func publish(word *uint64, v uint64) { *word = v }
