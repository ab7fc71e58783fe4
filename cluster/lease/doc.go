// Package lease detects machines that fail (SOSP'15 section 5.1).
//
// Every machine other than the CM holds a lease at the CM, and the CM holds one
// at every other machine. They are renewed every fifth of the lease time, by
// datagrams, in a three-way handshake whose third message is the first of the next:
//
//	machine                                             CM
//	   <-- grant (echo m0), request (sent c1) -----------   c1: all at once
//	   --- grant (echo c1), request (sent m1) ---------->   notes that m1 was heard
//	                                                        a fifth of a lease later
//	   <-- grant (echo m1), request (sent c2) -----------   c2
//	   --- grant (echo c2), request (sent m2) ---------->
//
// So a machine wakes once for a renewal, when the CM's message comes, and the CM
// when it is time for its messages: it finds the answers to the last ones then. An
// idle processor that is woken costs more than the whole exchange. A request is
// granted again until there is a newer one, so one lost message ends no lease.
// As long as somebody who may be there has no lease the CM asks ten times as often.
//
// Whoever grants a lease waits for a lease time from when it heard the request;
// whoever holds one relies on it for a lease time from when it asked, which is
// earlier, and both allow for clocks whose rates are off by up to 1/64. So a machine stops
// relying on its lease before the other believes that it has ended, whatever is
// lost or delayed. What a lease says is of use only after the fact: a machine
// whose lease is valid now was a member of the configuration until now.
//
// The CM's own lease holds while it has leases from so many machines that they
// are a majority with it, and it never grants one for longer than it holds its own.
// So when leases at the members of the next configuration have run out, all
// leases of all machines that are in it no longer have.
//
// A keeper may go on when nothing else of its machine does. So it is told when the machine
// works ([Keeper].Beat), and renews only while that is not most of a lease ago. What hangs
// is suspected within two leases of its last beat. What has stood still as a whole finds
// leases run out because it has not taken part: it asks and listens once more before it
// suspects anybody.
//
// The rules are in core.go, without clock, goroutines and messages. A [Keeper]
// drives them: one over the calls of package rdma/call, for the simulator and for
// builds without cgo, and one that is a thread of C, because no goroutine is
// punctual while a program is busy. [Together] makes those of machines in one process, which
// exchange nothing.
package lease
