// Package membership decides who is a member of an instance (SOSP'15 sections 5.1 and
// 5.2). A Machine is one machine's part in it: it applies the configurations that the CM
// sends, suspects machines whose leases have run out or that have died, and, at the CM,
// moves the instance on:
//
//	1 suspect    a lease runs out, a machine dies, a call meets another life   suspicion.go
//	2 probe      M --READ--> all                  a majority must answer       probe.go
//	4 remap      cluster.Configuration: Without, With, Forget, WithRoom       reconfiguration.go
//	3 update     M --compare and swap--> store    M is the CM from here on     reconfiguration.go
//	5 send       CM --NEW-CONFIG--> all           with all regions' replicas   distribution.go
//	6 apply      all --NEW-CONFIG-ACK--> CM       requests are blocked from    newconfig.go
//	             here on
//	7 commit     CM --NEW-CONFIG-COMMIT--> all    after the leases of those    distribution.go
//	             left out have run out
//
// Then transactions are recovered: each machine tells the CM when its regions are active
// (REGIONS-ACTIVE), and the CM tells all when all are (ALL-REGIONS-ACTIVE; activation.go).
//
// Step 4 comes before step 3: the stored configuration has the regions' mapping in it, which
// the paper's CM sends without storing it.
//
// M is the CM, or one of the machines that follow it on a ring if the CM is suspected
// (backup.go). Besides, a machine starts, meets others that have lost their processes and
// not their memory, or joins (start.go, together.go, join.go), and changes a configuration
// without another number: regions, their replicas that are filled, the root (region.go).
package membership
