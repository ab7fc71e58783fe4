// Package membership decides which machines are members of an instance (SOSP'15 sections 5.1 and
// 5.2). A Machine is one machine's part in that: it applies the configurations that the CM sends,
// suspects machines whose leases have run out or that have died, and, at the CM, moves the instance
// to its next configuration:
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
// (REGIONS-ACTIVE), and the CM tells all machines when all regions are (ALL-REGIONS-ACTIVE;
// activation.go).
//
// Step 4 comes before step 3: the stored configuration contains the mapping of regions. The paper's
// CM sends the mapping without storing it.
//
// M is the CM, or, if the CM is suspected, one of the machines that follow it on a ring
// (backup.go). A starting machine begins an instance, restarts together with others that have lost
// their processes but not their memory, or joins (start.go, together.go, join.go). Some changes
// keep the configuration's number: new regions, filled replicas, the root (region.go).
package membership
