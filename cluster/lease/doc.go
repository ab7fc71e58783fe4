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
// So a machine wakes once for a renewal, when the CM's message comes. The CM wakes when it is time
// for its messages, and then finds the answers to the previous ones: waking an idle processor costs
// more than the whole exchange. A request is granted again until there is a newer one, so a single
// lost message ends no lease. While a machine that may be alive has no lease, the CM asks ten times
// as often.
//
// The grantor considers a lease valid for a lease time from when it received the request. The holder
// relies on it for a lease time from when it made the request, which is earlier. Both allow
// for clocks whose rates are off by up to 1/64. So a holder stops relying on its lease before the
// grantor considers it ended, whatever messages are lost or delayed. A lease tells only about the
// past: a machine whose lease is valid now was a member of the configuration until now.
//
// The CM's own lease lasts while it holds leases from enough machines: together with the CM they
// must be a majority. The CM never grants a lease for longer than its own. So a machine that is no
// longer a member has no lease left once the leases that the next configuration's members granted to
// the last CM have run out.
//
// A keeper may go on when nothing else of its machine does. So the machine calls [Keeper].Beat
// while it works. The keeper renews only if the last beat is recent: less than most of a lease ago.
// A machine that hangs is suspected within two leases of its last beat. A machine that has stood
// still as a whole finds that leases have run out because it took no part: it exchanges messages
// once more before it suspects anybody.
//
// Between hosts the messages are datagrams over UDP ([Line]). Each has a code (SipHash-2-4 of
// 128 bits), and a number that counts once. The key of the code is one that the receiver has
// handed out to the sender over a connection with TLS. Keys last for a life of the two
// machines. A thread of C cannot use the connections themselves: Go has their keys, and a lost
// packet would hold up all later messages. To machines that hand out no keys, Go sends notices,
// as the keeper over calls does. Meanwhile leases last as long as with that keeper
// ([LengthCalls]), and the CM's messages tell that to all others.
//
// The rules are in core.go, without clock, goroutines and messages. A [Keeper]
// drives them: one over the calls of package rdma/call, for the simulator and for
// builds without cgo, and one that is a thread of C, because no goroutine is
// punctual while a program is busy. [Together] makes the keepers of machines in one process, which
// exchange no messages.
package lease
