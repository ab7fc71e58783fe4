// Package call carries control messages between machines: what is rare, small,
// and must work while connections and logs are being made or broken
// (configurations, votes, JOIN). Data never travels this way but by one-sided
// operations.
//
//	caller                                      called
//	  Call ------- request (datagram) ---------> handler, on a goroutine
//	         2 ms: request again, if need be       |
//	  reply <------ reply (datagram) ------------- returns
//
// An [Endpoint] sits on the datagrams of a machine's NIC, which lose, repeat and
// reorder. A call is sent again until it is answered; a copy that arrives while
// the handler works on the first is answered with "running", one that arrives later
// runs the handler again. Handlers are therefore idempotent: doing it twice, or late, is
// as good as doing it once.
//
// A call may wait without end. [Endpoint.Watch] reports machines that send neither an answer
// nor "running" during a call.
//
// # Lives
//
// A machine that was started again is another one under the same name. Each life draws an
// incarnation, and a [Peer] names a life. A call that is meant for one life is not handled by
// another: the caller gets [ErrOtherLife] at once. A call to [AnyLife] is handled by the
// present life, whichever it is: the sender of JOIN cannot know it. Replies go to the life
// that called.
//
// # The datagram
//
//	| layout 1 | type 1 | kind 1 | status 1 | lowest 1 | highest 1 | reserved 2 |
//	| call 8 | sender's incarnation 8 | addressee's incarnation 8 | body |
//
// All numbers are little endian. Other datagrams are dropped. The layout is 1 in every version of
// the protocol, so that all can read who calls.
//
// # Versions
//
// lowest and highest are the versions of the protocol that the sender speaks
// ([protocol.Range]); 0 and 0 are those of programs that do not say so. A call between machines
// that have none in common fails with [protocol.ErrRange], at whichever of the two notices,
// and the handler does not run.
package call
