// Package call carries control messages between machines: configurations, votes, JOIN. They are rare
// and small, and must get through while connections and logs are being made or broken. Data is never
// sent this way, but by one-sided operations.
//
//	caller                                      called
//	  Call ------- request (datagram) ---------> handler, on a goroutine
//	         2 ms: request again, if need be       |
//	  reply <------ reply (datagram) ------------- returns
//
// An [Endpoint] uses the datagrams of a machine's NIC, which may be lost, repeated and reordered.
// It sends a request again until the request is answered. A copy that arrives while the handler works
// on the first is answered with "running"; a copy that arrives later runs the handler again. Handlers
// must therefore be idempotent: to run twice, or late, has the same effect as to run once.
//
// A call may wait without end. [Endpoint.Watch] reports machines that send neither an answer
// nor "running" during a call.
//
// # Lives
//
// A machine that has been restarted counts as another machine under the same name. Each life draws an
// incarnation, and a [Peer] names a life. If the machine that receives a call is in another life, the
// caller gets [ErrOtherLife] at once. A call to [AnyLife] is handled by whichever life is present: a
// machine that sends JOIN cannot know the life of the CM. Replies go to the life that called.
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
// lowest and highest are the protocol versions that the sender speaks ([protocol.Range]); 0 and 0
// mean a program that does not report them. A call between machines that share no version fails
// with [protocol.ErrRange], at whichever of the two detects it, and the handler does not run.
package call
