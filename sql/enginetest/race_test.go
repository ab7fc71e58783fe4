//go:build race

package enginetest

// raceBuild says that the race detector is on. It keeps all memory on the heap
// and makes thousands of instances too slow and too large; what is concurrent
// below SQL has its own tests.
const raceBuild = true
