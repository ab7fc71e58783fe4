//go:build race

package enginetest

// raceBuild says that the race detector is on. It keeps all memory on the heap
// and makes thousands of instances slow and large; what is concurrent
// below SQL has its own tests.
const raceBuild = true
