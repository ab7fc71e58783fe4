// Package lease detects machines that fail (SOSP'15 section 5.1).
//
// Every machine other than the CM holds a lease at the CM, and the CM holds one
// at every other machine. They are renewed every fifth of the lease time, by
// datagrams, in a three-way handshake:
//
//	machine                                  CM
//	   --- request (sent m) ------------------>   grants: notes that m was heard
//	   <-- grant (echo m), request (sent c) ---
//	   --- grant (echo c) --------------------->
//
// Whoever grants a lease waits for a lease time from when it granted; whoever
// holds one relies on it for a lease time from when it asked, which is earlier,
// and both allow for clocks whose rates are off by up to 1/64. So a machine stops
// relying on its lease before the other believes that it has ended, whatever is
// lost or delayed. What a lease says is of use only after the fact: a machine
// whose lease is valid now was a member of the configuration until now.
//
// The CM's own lease holds while it has leases from so many machines that they
// are a majority with it, and it never grants one for longer than it holds its own.
// So when leases at the members of the next configuration have run out, all
// leases of all machines that are in it no longer have.
//
// The rules are in core.go, without clock, goroutines and messages. A [Keeper]
// drives them: one over the calls of package rdma/call, for the simulator and for
// builds without cgo, and one that is a thread of C, because no goroutine is
// punctual while a program is busy.
package lease
