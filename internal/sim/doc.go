// Package sim simulates the environment of a cluster: time, randomness, goroutines,
// network cards, and memory that outlives a process. The code above it is the
// production code, unchanged, which reaches its environment through a clock.Clock
// and an rdma.NIC.
//
//	World             virtual time, one queue of events, one seed
//	  Machine         NVRAM, a clock that drifts, a failure domain
//	    Process       one life of the machine: a clock.Clock, routines, an rdma.NIC
//	      routine     a goroutine, as a coroutine: one runs at a time
//
// A World's run is a function of its seed and of the code that runs in it. Each
// event is a wake-up of a routine, a step of an RDMA operation, or a datagram that
// arrives. Their delays are drawn, so that the seed determines the interleaving,
// and time jumps from one event to the next. Every event is mixed into a hash: two
// runs with one seed have the same hash.
//
// # Faults
//
//   - Machine.Kill ends its process: its routines are unwound by a panic out of
//     their next wait. Its memory is kept as it was at that moment, for the next
//     Boot; code of the dead process that still runs to its next wait writes
//     into a copy that nobody looks at. Machine.Destroy loses the memory too.
//     World.PowerCut does either to all machines at once.
//   - Machine.Pause stops a process's routines for a while. Its memory stays
//     readable and writable by others, as with a real NIC. Machine.Hang stops all
//     routines but those aside, such as the keeper of the machine's leases.
//     Machine.Slow delays each turn of the routines.
//   - World.Cut loses what is sent from one machine to another, in that
//     direction only, until World.Mend. World.Spike delays it.
//   - Datagrams can get lost and overtake each other at any time. In a World.Storm
//     they also arrive twice, or very late.
//   - World.Trouble makes rare conditions happen, at the points that the code has for
//     them (clock.Trouble), and makes some waits end before their time.
//
// # Processors
//
// Normally code takes no time, only waits do, and a machine is never too busy. With
// Options.Processors, a machine has that many processors, and the code that a
// routine runs between two waits occupies one of them for its cost: Options.Costs,
// and the costs that hooks add with Process.Work. See turn. Aside runs on its own
// processor. Options.Bandwidth bounds what a card sends.
//
// # The network card
//
// Operations of one queue pair take effect in order, after random delays. A READ
// or WRITE of several lines may take its lines, in rising order, at different
// moments: a READ sees an object change between two lines, and a crash leaves a
// prefix of a WRITE. If an operation's acknowledgement is lost, the operation
// fails although it has taken effect. A doorbell runs the peer's bell on a
// routine of its own.
package sim
