package clock

import _ "unsafe" // go:linkname

// Processor is System.Processor without the cost of a call through the interface. It returns the
// number of the P that the calling goroutine runs on. The runtime keeps these
// two functions accessible for this purpose (go.dev/issue/67401). The calls cost about 2 ns; an
// atomic addition to a cache line that two cores write costs 50.
func Processor() int {
	p := procPin()
	procUnpin()
	return p
}

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
